"""The inputs of a model as Spark views: streams with watermark and dedup, static sides as they are now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.compile import Input, Manifest, Model, Source, Watermark
from engine.errors import RunError
from engine.runtime.bad_records import Watched
from engine.sources import BAD, KINDS, ORIGIN, OnBadRecord, Place, limited, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


CORE = ("core",)


def jar_sets(manifest: Manifest, models: Iterable[Model]) -> tuple[str, ...]:
    """The sets of jars that a session needs to run some models."""
    read = (manifest.nodes[item.node] for model in models for item in model.inputs)
    specs = [node.spec for node in read if isinstance(node, Source)]
    return (*CORE, *sorted({name for spec in specs for name in KINDS[spec.format].jars(spec)}))


def register(
    session: SparkSession, manifest: Manifest, model: Model, place: Place, *, bounded: bool
) -> tuple[Watched, ...]:
    """Make the temporary views by which the compiled SQL names its inputs.

    Args:
        session: the model's own session.
        manifest: for the nodes read.
        model: whose inputs.
        place: the project's folder, and what the target knows.
        bounded: read streams as a batch too (for `show`): watermarks mean nothing then, and dedup is over
            all rows.

    Returns:
        The inputs whose bad records are counted.
    """
    watched = []
    for item in model.inputs:
        if not item.stream and isinstance(manifest.nodes[item.node], Model):
            continue
        frame = _read(session, manifest, item, place, bounded=bounded)
        mark = item.watermark if item.stream else None
        if mark is not None:
            frame = records.with_event_time(frame, mark.column, mark.expression, mark.max_future)
        if BAD in frame.columns:
            found = Watched(item.name, item.view, _policy(item, manifest), once=item.stream or not model.streaming)
            frame = records.without_bad(frame, item.name, found.observation, found.policy)
            watched.append(found)
        if mark is not None:
            frame = _event_time(frame, item, mark, bounded=bounded)
        frame = frame if item.metadata else frame.drop(ORIGIN)
        frame.createOrReplaceTempView(item.view.strip("`"))
    return tuple(watched)


def refresh_static(session: SparkSession, manifest: Manifest, model: Model) -> None:
    """Let the static sides of a stream see the files that are there by now; Spark lists them once a query."""
    for item in model.inputs:
        if not item.stream and isinstance(manifest.nodes[item.node], Source):
            session.catalog.refreshTable(item.view)


def _policy(item: Input, manifest: Manifest) -> OnBadRecord:
    node = manifest.nodes[item.node]
    return item.on_bad_record or (node.spec.on_bad_record if isinstance(node, Source) else OnBadRecord.FAIL)


def _read(session: SparkSession, manifest: Manifest, item: Input, place: Place, *, bounded: bool) -> DataFrame:
    node = manifest.nodes[item.node]
    if isinstance(node, Source):
        spec = limited(node.spec, item.max_files_per_trigger)
        kind = KINDS[spec.format]
        kind.check(spec, place)
        read = kind.read_stream if item.stream and not bounded else kind.read_batch
        return read(session, spec, place)
    if not isinstance(node, Model):
        raise TypeError(item.node)
    if bounded:
        return session.table(node.relation.sql)
    # Without a limit a micro-batch takes whole commits, all that wait (design.md §4.1).
    return session.readStream.format("iceberg").load(str(node.relation))


def _event_time(frame: DataFrame, item: Input, mark: Watermark, *, bounded: bool) -> DataFrame:
    from pyspark.sql.types import TimestampType

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
