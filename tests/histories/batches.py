"""Which files each micro-batch read, and with which watermark it began, from the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from engine.state import checkpoint as spark_checkpoint
from engine.state import file_log
from tests.histories.kinds import FEED


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch: its number, the names of its files below `landing/`, the watermark in microseconds."""

    number: int
    files: tuple[str, ...]
    watermark: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as it is on disk.

    Attributes:
        query: Spark's id.
        batches: those that were planned.
        committed: the last one that Spark holds for done; -1: none.
        listed: all files of the logs, in the order in which they were listed, also those of no micro-batch yet.
    """

    query: str | None
    batches: tuple[Batch, ...]
    committed: int
    listed: tuple[str, ...]


def read(folder: Path) -> Checkpoint:
    """Read a checkpoint; Spark keeps what it notes of a hundred micro-batches."""
    begun, done = spark_checkpoint.last_started(folder), spark_checkpoint.last_committed(folder)
    sources = file_log.file_sources(folder)
    logs = {source: list(file_log.logged(folder, source)) for source in sources}
    batches, ends = [], dict.fromkeys(sources, -1)
    for number in range(0 if begun is None else begun + 1):
        files = []
        for source in sources:
            end = max(file_log.reaches(folder, source, number), ends[source])
            files += [landed(file.uri) for file in logs[source] if ends[source] < file.entry <= end]
            ends[source] = end
        files += list(_records(folder, number))
        said = json.loads((folder / "offsets" / str(number)).read_text().splitlines()[1])
        batches.append(Batch(number, tuple(files), int(said["batchWatermarkMs"]) * 1000))
    listed = tuple(landed(file.uri) for log in logs.values() for file in log)
    listed += tuple(name for batch in batches for name in batch.files if name.startswith(f"{FEED}/"))
    return Checkpoint(spark_checkpoint.query_id(folder), tuple(batches), -1 if done is None else done, listed)


def _records(folder: Path, number: int) -> Iterator[str]:
    """The records of the topic that a micro-batch reads, each by its partition and offset."""
    before = spark_checkpoint.beginnings(folder) if number == 0 else spark_checkpoint.source_offsets(folder, number - 1)
    begins, ends = (_offsets(found) for found in (before, spark_checkpoint.source_offsets(folder, number)))
    for partition, end in sorted(ends.items()):
        for offset in range(begins.get(partition, 0), end):
            yield f"{FEED}/{partition}-{offset}"


def _offsets(found: list[dict[str, Any]]) -> dict[str, int]:
    topics = [one for source in found for one in source.values() if isinstance(one, dict)]
    return {partition: offset for one in topics for partition, offset in one.items()}


def landed(uri: str) -> str:
    """`events/0001.json`, wherever the project lies."""
    return unquote(urlparse(uri).path).partition("/landing/")[2]
