"""How a model differs from what wrote its table last, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.compile import Model
from engine.compile.config.session_settings import FROZEN
from engine.compile.nodes.facts import Facts
from engine.errors import Diagnostic
from engine.plan import source_changes
from engine.plan.deployed.deployed_facts import LastWriter
from engine.plan.source_changes import StreamSource
from engine.spark_options import PINNED

_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PROVIDERS = {"RocksDBStateStoreProvider": "rocksdb", "HDFSBackedStateStoreProvider": "hdfs"}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What changed: sentences on what other rows come from, and on what has no effect on existing state."""
    changed, frozen = [], []
    confs = old.get("conf", {}), new.get("conf", {})
    for key in sorted({*confs[0], *confs[1]}):
        values = [conf.get(key, "its default") for conf in confs]
        # What is pinned has one value, whether a target repeats it or not.
        if values[0] == values[1] or key in PINNED:
            continue
        if key == FROZEN:
            frozen.append(f"the setting '{key}' changed; the checkpoint keeps its first value")
        else:
            changed.append(f"the setting '{key}' changed from {values[0]} to {values[1]}")
    if old.get("pre_hook", []) != new.get("pre_hook", []):
        was, now = ("; ".join(settings.get("pre_hook", [])) or "nothing" for settings in (old, new))
        changed.append(f"'pre_hook' changed from {was} to {now}")
    return changed, frozen


def state_store_notes(model: Model, frozen: Mapping[str, str]) -> tuple[str, ...]:
    """Return what `state_store` says that the checkpoint does not follow (Spark class OffsetSeqMetadata)."""
    if not model.stateful:
        return ()
    declared = {"partitions": model.state_partitions, "provider": model.operation.state_provider}
    provider = frozen.get(_PROVIDER, "").rpartition(".")[2]
    in_checkpoint = {"partitions": frozen.get(_PARTITIONS), "provider": _PROVIDERS.get(provider)}
    return tuple(
        f"state_store.{key} is {value} now, but the checkpoint keeps {in_checkpoint[key]}; to apply it: "
        f"engine build -f -s {model.name}"
        for key, value in declared.items()
        if value is not None and in_checkpoint[key] not in {None, str(value)}
    )


class Change(StrEnum):
    NEW = "new"
    UNCHANGED = "unchanged"
    FORWARD = "forward"
    ADDITIVE = "additive"
    REBUILT = "rebuilt"
    STATE_BREAKING = "state-breaking"
    SOURCE_CHANGED = "source-changed"
    IDENTITY_CHANGED = "identity-changed"
    KEY_CHANGED = "key-changed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a model differs from its last writer; `refusal`: why it cannot continue with that; None: it can."""

    change: Change
    reasons: tuple[str, ...] = ()
    refusal: Diagnostic | None = None
    kind_changed: bool = False
    discarded: str = ""
    before: Facts | None = None


@dataclass(frozen=True, slots=True)
class StreamsRead:
    before: Sequence[StreamSource]
    now: Sequence[StreamSource]
    difference: str | None

    @classmethod
    def compare(cls, model: Model, writer: LastWriter, streams: Sequence[StreamSource] | None) -> StreamsRead:
        """Compare what a checkpoint has recorded with what a query reads now; without a record the facts."""
        recorded_sources = writer.recorded_sources
        if recorded_sources is not None and streams is not None:
            reason = source_changes.difference(recorded_sources.streams, streams, ordered=recorded_sources.textual)
            return cls(recorded_sources.streams, streams, reason)
        before = source_changes.of_facts(writer.facts) if writer.facts else ()
        now = source_changes.of_facts(model.facts) if writer.facts else ()
        return cls(before, now, source_changes.difference(before, now, ordered=False))
