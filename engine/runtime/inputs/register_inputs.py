"""The inputs of a model as Spark views: streams with watermark and dedup, static sides as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Input, Manifest, Model, Source, Watermark
from engine.compile.nodes.model_settings import OnNull, OnUpstreamDelete
from engine.errors import RunError, errors_at
from engine.lake.snapshot_history import table_stream
from engine.plan.tables.upstream_tables import TableReading
from engine.relations import quoted
from engine.runtime.inputs.watermark_lag import Timed, observed, timed
from engine.runtime.quality.bad_records import Watched
from engine.sources import KINDS, ORIGIN, OnBadRecord, Place, limited, mark_bad_records, source_traits, table_traits
from engine.sources.spec import BadRecordLimit
from engine.times import in_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(
    session: SparkSession,
    manifest: Manifest,
    model: Model,
    place: Place,
    *,
    bounded: bool,
    tables: Mapping[str, TableReading] | None = None,
    instead: Callable[[Input], DataFrame | None] | None = None,
    since: int | None = None,
    events_from: int | None = None,
) -> tuple[Watched, ...]:
    """Make the temporary views by which the compiled SQL names its inputs; return those whose bad records are counted.

    `bounded`: streams are read as a batch too: no watermarks, dedup over all rows. `tables`: where tables that are read
    as streams begin or continue; left out, with what is left of their history. `since` and `events_from`
    (milliseconds): files and events of streams count from then on. `instead` gives the rows of an input in place of
    what it names.
    """
    watched_inputs = []
    times = {item.view: item for item in timed(model)} if not bounded else {}
    for item in model.inputs:
        if not item.stream and isinstance(manifest.nodes[item.node], Model):
            continue
        reading = (tables or {}).get(item.node)
        frame = instead(item) if instead else None
        if frame is None:
            frame = _read_input(session, manifest, item, place, reading, bounded=bounded)
        time = _skipped_by(manifest.nodes[item.node]) if since is not None and item.stream else ""
        if time:
            frame = frame.where(f"unix_millis({ORIGIN}.{time}) >= {since}")
        for condition in _applied_when(manifest.nodes[item.node], item, model):
            frame = mark_bad_records.without_marks(frame, condition)
        mark = _mark(frame, item)
        if mark is not None:
            frame = _with_marked_times(frame, item, mark)
        if mark_bad_records.marked(frame):
            once = item.stream or not model.streaming
            watched_input = Watched(item.name, item.view, _policy(item, manifest), once, _limit(item, manifest))
            frame = mark_bad_records.without_bad(frame, item.name, watched_input.observation, watched_input.policy)
            watched_inputs.append(watched_input)
        if mark is not None:
            frame = _event_time(frame, item, mark, times.get(item.view), bounded=bounded)
            if events_from is not None:
                frame = frame.where(f"unix_millis({quoted(mark.column)}) >= {events_from}")
        frame = frame if item.metadata else frame.drop(ORIGIN)
        frame.createOrReplaceTempView(item.view.strip("`"))
    return tuple(watched_inputs)


def refresh_static(session: SparkSession, manifest: Manifest, model: Model) -> None:
    """Let the static sides of a stream see the files that are there by now; Spark lists them once a query."""
    for item in model.inputs:
        if not item.stream and isinstance(manifest.nodes[item.node], Source):
            session.catalog.refreshTable(item.view)


def _mark(frame: DataFrame, item: Input) -> Watermark | None:
    mark = item.watermark if item.stream else None
    if mark is None or mark.expression is not None:
        return mark
    return replace(mark, column=next((n for n in frame.columns if n.lower() == mark.column.lower()), mark.column))


def _skipped_by(node: object) -> str:
    return source_traits(node.spec.format).skipped_by if isinstance(node, Source) else ""


def _with_marked_times(frame: DataFrame, item: Input, mark: Watermark) -> DataFrame:
    frame = mark_bad_records.with_event_time(frame, mark.column, mark.expression, mark.max_future)
    if not item.needs_time:
        return frame
    drop = mark.on_null is OnNull.DROP
    return mark_bad_records.with_null_times(frame, mark.column, mark.expression, drop=drop)


def _applied_when(node: object, item: Input, model: Model) -> Iterator[str]:
    """Conditions on records of a change feed that are bad unless the table applies or stores them, as it does."""
    feed = source_traits(node.spec.format).change_feed(node.spec) if isinstance(node, Source) else None
    if feed is None or item.through:
        return
    write, origins = model.write, {(origin.node, origin.column.lower()) for c in model.columns for origin in c.origins}
    for column, condition, is_merged in (
        (feed.unavailable, feed.unavailable and f"{feed.unavailable} is not null", write.unavailable is not None),
        (feed.exclude[0], feed.truncate_when, write.truncate_when is not None),
    ):
        if condition and (is_merged if write.unique_key else (item.node, column) in origins):
            yield condition


def _policy(item: Input, manifest: Manifest) -> OnBadRecord:
    node = manifest.nodes[item.node]
    return item.on_bad_record or (node.spec.on_bad_record if isinstance(node, Source) else OnBadRecord.FAIL)


def _limit(item: Input, manifest: Manifest) -> BadRecordLimit:
    node = manifest.nodes[item.node]
    return node.spec.max_bad_records if isinstance(node, Source) else BadRecordLimit()


def _read_input(
    session: SparkSession, manifest: Manifest, item: Input, place: Place, reading: TableReading | None, *, bounded: bool
) -> DataFrame:
    node = manifest.nodes[item.node]
    if isinstance(node, Source):
        if reading is not None:
            skip = item.on_upstream_delete is OnUpstreamDelete.IGNORE
            stream = table_traits(node.spec).stream
            return stream(session, node.spec, place, reading.start, reading.has_begun, skip)
        spec = limited(node.spec, item.max_files_per_trigger)
        kind = KINDS[spec.format]
        read_frame = kind.read_stream if item.stream and not bounded else kind.read_batch
        with errors_at(node.location):
            kind.check(spec, place)
            return read_frame(session, spec, place)
    if not isinstance(node, Model):
        raise TypeError(item.node)
    if bounded:
        return session.table(node.relation.sql)
    return _table(session, str(node.relation), item, reading)


def _table(session: SparkSession, name: str, item: Input, reading: TableReading | None) -> DataFrame:
    start, has_begun = (reading.start, reading.has_begun) if reading else (None, False)
    skip = item.on_upstream_delete is OnUpstreamDelete.IGNORE
    return table_stream(session, name, start, has_begun=has_begun, skip_deletes=skip, options={})


def _event_time(frame: DataFrame, item: Input, mark: Watermark, several: Timed | None, *, bounded: bool) -> DataFrame:
    from pyspark.sql.types import TimestampType

    kinds = {f.name: f.dataType for f in frame.schema.fields}
    if mark.column not in kinds:
        names = ", ".join(kinds)
        raise RunError("query-failed", f"the stream '{item.name}' has no column '{mark.column}' for its watermark",
                       f"It has: {names}.")  # fmt: skip
    if not isinstance(kinds[mark.column], TimestampType):
        kind = kinds[mark.column].simpleString()
        cast = f"cast({mark.expression or mark.column} as timestamp)"
        hint = f"Write '{cast} as {mark.column} delay {in_words(mark.delay)}'."
        raise RunError("query-failed", f"the watermark column '{mark.column}' is {kind}, not timestamp", hint)
    if bounded:
        return frame.dropDuplicates(list(item.dedup)) if item.dedup else frame
    frame = observed(frame, several, mark.column) if several is not None else frame
    frame = frame.withWatermark(mark.column, mark.delay)
    return frame.dropDuplicatesWithinWatermark(list(item.dedup)) if item.dedup else frame
