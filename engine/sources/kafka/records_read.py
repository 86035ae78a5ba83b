"""The records that a stream has read, as a source that begins and ends there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import StateError
from engine.sources.kafka import ENDS, position
from engine.sources.kafka.kafka_options import STARTS
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# By topic and partition, as Spark's checkpoint has them.
Offsets = Mapping[str, Mapping[str, int]]


def records_read(session: SparkSession, spec: SourceSpec, place: Place, begin: Offsets, end: Offsets) -> SourceSpec:
    """Return a source of the records that a stream has read; unnamed partitions began with their first record.

    Raises:
        StateError: `source-gap`: the broker has deleted some of them.
        SetupError: the broker cannot be asked.
    """
    starts: dict[str, dict[int, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    gone = []
    for topic, partitions in position(session, spec, place).items():
        for partition, (first, _) in ((p, span) for p, span in partitions.items() if p != "id"):
            # What a partition got since it was made is unread, where the stream does not know it.
            to = int(end.get(topic, {}).get(partition, first))
            start = int(begin.get(topic, {}).get(partition, 0)) if partition in end.get(topic, {}) else first
            if start < to and start < first:
                gone.append(f"{topic}-{partition}: {start} to {min(first, to) - 1}")
            # An offset below the first record is an error for Spark, also where nothing is to be read.
            starts.setdefault(topic, {})[int(partition)] = max(start, first)
            ends.setdefault(topic, {})[partition] = max(to, first)
    if gone:
        message = f"records of '{spec.name}' that were read are no longer on the broker ({'; '.join(gone)})"
        raise StateError("source-gap", message, "A longer retention of the topic keeps them.")
    settings = {key: value for key, value in spec.settings.items() if key not in STARTS}
    return replace(spec, settings={**settings, "starting_offsets": starts, ENDS: ends})
