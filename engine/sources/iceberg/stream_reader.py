"""Reading an Iceberg table as a stream, with the rows of its seed before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.lake.quoted_names import quoted
from engine.sources.iceberg.snapshot_history import FROM, Start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SKIP_DELETES = "streaming-skip-delete-snapshots"


def table_stream(
    session: SparkSession,
    name: str,
    start: Start | None,
    *,
    begun: bool = False,
    skip_deletes: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of each commit of a table; a micro-batch takes whole commits, all unread ones.

    Args:
        session: that reads.
        name: of the table, with its catalog.
        start: where the stream begins; None: with the first commit that the table knows.
        begun: the checkpoint is in the table. The time to begin from is left out then, because Iceberg measures
            the newest commit against it also when it continues (iceberg#10156).
        skip_deletes: snapshots that only delete are skipped.
        options: of Iceberg's reader.
    """
    chosen = dict(options or {})
    if start is not None and start.at is not None and not begun:
        chosen[FROM] = str(start.at)
    if skip_deletes:
        chosen[SKIP_DELETES] = "true"
    frame = session.readStream.format("iceberg").options(**chosen).load(name)
    if start is None or start.seed is None:
        return frame
    return _like(session.readStream.format("iceberg").load(start.seed), frame).union(frame)


def _like(seed: DataFrame, frame: DataFrame) -> DataFrame:
    """The seed with the columns that the table has by now; those that it got later are NULL in older rows."""
    from pyspark.sql import functions as f

    known = set(seed.columns)
    return seed.select(
        *(
            f.col(quoted(field.name)) if field.name in known else f.lit(None).cast(field.dataType).alias(field.name)
            for field in frame.schema.fields
        )
    )
