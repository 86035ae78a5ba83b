"""The rules of a model's writer, in builds and in unit tests alike."""

from __future__ import annotations

from engine.compile import Model
from engine.runtime.quality import expectations
from engine.runtime.quality.bad_records import Watched
from engine.runtime.quality.quarantine import Quarantine
from engine.runtime.spark_support.repeatable import repeatable
from engine.runtime.writer.kept_batches import KeptBatches
from engine.runtime.writer.micro_batch_writer import Rules
from engine.state.state_path import StatePath


def rules_of(model: Model, watched: tuple[Watched, ...], quarantine: Quarantine | None, batches: StatePath) -> Rules:
    """Return what must be known of a batch before its commit; `batches` keeps those that cannot be computed again."""
    several = expectations.splits(model.expectations) or model.write.delete_when is not None
    kept = KeptBatches(batches, model.fingerprint) if several and not repeatable(model) else None
    return Rules(watched, model.expectations, quarantine, kept)
