"""How much of a Kafka source waits: where its topics end, against the checkpoint of each model that streams from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import Manifest, Source, Target
from engine.plan.deployed.state_folder import table_state
from engine.sources import KINDS, Place, answers_of
from engine.state import checkpoint as spark_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def waiting(session: SparkSession, manifest: Manifest, target: Target, source: Source, place: Place) -> dict[str, int]:
    """Offsets of a source that are not in a model's table yet, by model; empty for what is not Kafka.

    The marks of transactions are offsets as well; a model that was never built waits for all there is.

    Raises:
        EngineError: the broker cannot be asked.
    """
    readers = [m for m in manifest.models if any(i.node == source.id and i.stream for i in m.inputs)]
    if not answers_of(source.spec.format).has_topics or not readers:
        return {}
    there = KINDS[source.spec.format].position(session, source.spec, place)
    ends = {(topic, p): span for topic, found in there.items() for p, span in found.items() if p != "id"}
    counts = {}
    for model in readers:
        folder = table_state(target, model)
        state = folder.load()
        stands = spark_checkpoint.standing(folder.checkpoint(state.generation)) if state else []
        read = {
            (topic, p): offset for stand in stands for topic, found in _offsets(stand) for p, offset in found.items()
        }
        counts[model.name] = sum(end - max(first, read.get(place_, first)) for place_, (first, end) in ends.items())
    return counts


def _offsets(stand: object) -> list[tuple[str, dict[str, int]]]:
    """Those of Spark's Kafka source, {"topic": {"0": 17}}; other sources have others."""
    items = stand.items() if isinstance(stand, dict) else ()
    return [(topic, found) for topic, found in items if isinstance(found, dict)]
