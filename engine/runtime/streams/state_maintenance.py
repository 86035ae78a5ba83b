"""Compaction of the state store at the end of a bounded build.

Spark writes what a micro-batch changed in the state as a changelog, and leaves it to a task that runs once a minute to
upload snapshots in their place and to remove what is older than `spark.sql.streaming.minBatchesToRetain`. A build that
takes less never gets there: its checkpoint grew by every changelog, and each start read all of them again. On a
cluster the stores are in the executors, which no driver can ask: there the task runs more often (`session_conf`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.spark.internals.queries import compact_stores
from engine.state.state_path import StatePath, spark_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger("engine.runtime")


def compact(session: SparkSession, query: StreamingQuery, checkpoint: StatePath) -> None:
    """Run Spark's maintenance of each store that a query has used, and close it; the query has ended.

    A store that cannot be compacted now is compacted by a later build: that is logged, and no fault of the build.
    """
    try:
        compact_stores(session, query, f"{spark_location(checkpoint)}/state", _stores(checkpoint))
    except spark_exceptions():
        _log.warning("the state in %s was not compacted", checkpoint, exc_info=True)


def _stores(checkpoint: StatePath) -> Iterator[tuple[int, int, str]]:
    """The stores that a checkpoint may have: `state/<operator>/<partition>`, with the name of all but the default."""
    for partition in sorted((checkpoint / "state").glob("[0-9]*/[0-9]*")):
        for name in ("default", *(path.name for path in partition.iterdir() if path.is_dir())):
            yield int(partition.parent.name), int(partition.name), name
