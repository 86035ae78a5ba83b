"""What data tests read of sources: a bounded read, which begins and ends once for all tests of a run.

Files are those that are there when the first test asks, Kafka's partitions end where they end then, a table is read at
its snapshot of the moment of each query. Nothing of it is a stream: no checkpoint, no watermark, no dedup.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.compile import DataTest, Manifest, Source
from engine.errors import errors_at
from engine.sources import BAD, KINDS, ORIGIN, Place, answers_of, mark_bad_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sources_of(manifest: Manifest, tests: Iterable[DataTest]) -> Mapping[str, Source]:
    found = (manifest.nodes[i] for test in tests for i in test.depends_on)
    return {node.id: node for node in found if isinstance(node, Source)}


@dataclass(slots=True)
class SourceRows:
    spark: SparkSession
    manifest: Manifest
    place: Place
    _session: SparkSession | None = None
    _views: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def session(self, test: DataTest) -> SparkSession:
        """The session in which a test runs: it has a view for each source that the test reads.

        Raises:
            EngineError: there is nothing to read, or it cannot be read as it is declared.
            pyspark.errors.PySparkException: Spark cannot read it.
        """
        wanted = sources_of(self.manifest, [test])
        if not wanted:
            return self.spark
        with self._guard:
            if self._session is None:
                self._session = self.spark.newSession()
            for source in (source for i, source in wanted.items() if i not in self._views):
                self._register(self._session, source)
                self._views.add(source.id)
            return self._session

    def _register(self, session: SparkSession, source: Source) -> None:
        spec, kind = source.spec, KINDS[source.spec.format]
        with errors_at(source.location):
            kind.check(spec, self.place)
            spec = answers_of(spec.format).until_now(session, spec, self.place)
            frame = kind.read_batch(session, spec, self.place)
        if BAD in frame.columns:
            frame = mark_bad_records.without_bad(
                frame, source.name, f"bad records of {source.name}", spec.on_bad_record
            )
        frame.drop(ORIGIN).createOrReplaceTempView(f"`{source.name}`")
