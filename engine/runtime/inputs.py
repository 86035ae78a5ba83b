"""The inputs of a model as Spark views: streams with watermark and dedup, static sides as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Input, Manifest, Model, Source
from engine.errors import RunError
from engine.sources import KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(session: SparkSession, manifest: Manifest, model: Model, root: Path, *, bounded: bool) -> None:
    """Make the temporary views by which the compiled SQL names its inputs.

    Args:
        session: the model's own session.
        manifest: for the nodes read.
        model: whose inputs.
        root: the project's folder.
        bounded: read streams as a batch too (for `show`): watermarks mean nothing then, and dedup is over
            all rows.
    """
    for item in model.inputs:
        if not item.stream and isinstance(manifest.nodes[item.node], Model):
            continue
        frame = _read(session, manifest, item, root, bounded=bounded)
        if item.stream:
            frame = _event_time(frame, item, bounded=bounded)
        frame.createOrReplaceTempView(item.view.strip("`"))


def _read(session: SparkSession, manifest: Manifest, item: Input, root: Path, *, bounded: bool) -> DataFrame:
    node = manifest.nodes[item.node]
    if isinstance(node, Source):
        kind = KINDS[node.spec.format]
        kind.check(node.spec, root)
        frame: DataFrame = (
            kind.read_stream(session, node.spec, root, item.max_files_per_trigger)
            if item.stream and not bounded
            else kind.read_batch(session, node.spec, root)
        )
        return frame
    if not isinstance(node, Model):
        raise TypeError(item.node)
    if bounded:
        return session.table(node.relation.sql)
    # Without a limit a micro-batch takes whole commits, all that wait (design.md §4.1).
    return session.readStream.format("iceberg").load(str(node.relation))


def _event_time(frame: DataFrame, item: Input, *, bounded: bool) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.types import TimestampType

    mark = item.watermark
    if mark is None:
        return frame
    if mark.expression is not None:
        frame = frame.withColumn(mark.column, functions.expr(mark.expression))
    kinds = {f.name: f.dataType for f in frame.schema.fields}
    if mark.column not in kinds:
        names = ", ".join(kinds)
        raise RunError("query-failed", f"the stream '{item.name}' has no column '{mark.column}' for its watermark",
                       f"It has: {names}.")  # fmt: skip
    if not isinstance(kinds[mark.column], TimestampType):
        kind = kinds[mark.column].simpleString()
        hint = f"Write 'cast({mark.expression or mark.column} as timestamp) as event_time delay {mark.delay}'."
        raise RunError("query-failed", f"the watermark column '{mark.column}' is {kind}, not timestamp", hint)
    if bounded:
        return frame.dropDuplicates(list(item.dedup)) if item.dedup else frame
    frame = frame.withWatermark(mark.column, mark.delay)
    return frame.dropDuplicatesWithinWatermark(list(item.dedup)) if item.dedup else frame
