"""`engine backfill`: the rows of a range are recomputed by the query of now, and replace those in the table.

The input is what the stream has read and committed; its checkpoint, offsets and model.json stay as they are. Each
commit replaces the rows of some days, and a day that has the query's rows already is left alone: so the same command
finishes after a kill. The locks of the model and its streams are held.

A backfill makes an `overwrite` and a `replace` behind it, and a stream of the table that has read all rows before both
is moved to the second, which brings it no row. A stream with unread rows has to read them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import OnFail, OnSchemaChange
from engine.errors import Diagnostic, Location, RunError, StateError
from engine.lake.changes.range_replacement import replace_range
from engine.lake.commit_guard import ExpectedTable
from engine.lake.table_facts import BACKFILL, TableFacts
from engine.plan.actions.state_checks import check_table
from engine.plan.deployed.checkpoint_facts import read_checkpoint, read_source_record
from engine.relations import quoted
from engine.runtime.backfill.backfill_request import ReadInput, TimeRange, check_model, day_after, rejected
from engine.runtime.context.ownership import repeated_markers
from engine.runtime.context.run_context import Run
from engine.runtime.erasure.stream_positions import StreamPosition, move_past, positions, unread_faults
from engine.runtime.inputs.register_inputs import register
from engine.runtime.operations.drop_table import check_finished
from engine.runtime.quality import expectations
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.deleted_keys import match_table
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from engine.runtime.streams.stream_query import open_session
from engine.state import ModelState, Phase

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


UNREAD = "backfill-unread"


def pass_readers(run: Run, owner: Model, table: TableFacts) -> None:
    """Move the streams of a table, whose locks are held, behind the replacements that follow on what they read."""
    for position in positions(run.manifest, run.target):
        table_behind = _behind_replacements(position, owner, table)
        if table_behind is not None and move_past(position, owner, owner.relation, table_behind):
            kill_points.reach("reader moved", owner.relation.name, where=position.reader.name)


def _behind_replacements(position: StreamPosition, owner: Model, table: TableFacts) -> TableFacts | None:
    """The table as it was right after the replacements that follow on where a stream is; None: none does."""
    ids = [snapshot.id for snapshot in table.history]
    offsets = position.offsets_in(table)
    reached = {offset["snapshot_id"] for offset in offsets} if offsets else {position.initial(owner)}
    if len(reached) != 1 or (at := next(iter(reached))) not in ids:
        return None
    newer = ids.index(at)
    if any(unread_faults((position,), owner, owner.relation, _from(table, newer))):
        # It has read that snapshot in part, or is about to read more.
        return None
    last = newer
    while last and (table.history[last - 1].backfills or table.history[last - 1].rewrites_files):
        last -= 1
    return _from(table, last) if any(newer_snapshot.backfills for newer_snapshot in table.history[last:newer]) else None


def _from(table: TableFacts, newest: int) -> TableFacts:
    return replace(table, history=table.history[newest:])


def check_unread(run: Run, owner: Model, table: TableFacts) -> None:
    """Check that the streams of a table have read all of its rows.

    Raises StateError: `backfill-unread` with each stream; nothing was changed.
    """
    faults = list(_unread(run, owner, table))
    if faults:
        raise StateError.from_diagnostics(faults)


def _unread(run: Run, owner: Model, table: TableFacts) -> Iterator[Diagnostic]:
    models = {model.name: model for model in run.manifest.models}
    for fault in unread_faults(positions(run.manifest, run.target), owner, owner.relation, table):
        hint = f"It reads rows before they are replaced. Build it first: engine build -s {fault.node}"
        yield replace(fault, code=UNREAD, hint=hint).at(Location(models[fault.node or owner.name].file))


_HASH = "__hash"
# All that a table holds of a value, NULLs and microseconds too.
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Day:
    """The rows of a day (UTC) in a range; the last day that Python has stands for all later ones too."""

    day: date
    rows_before: int
    rows_after: int
    is_unchanged: bool


def days_of(rows_before: DataFrame, rows_after: DataFrame, time_range: TimeRange) -> tuple[Day, ...]:
    sums_before, sums_after = _sum_days(rows_before, time_range), _sum_days(rows_after, time_range)
    none = (0, None)
    return tuple(
        Day(
            day,
            sums_before.get(day, none)[0],
            sums_after.get(day, none)[0],
            sums_before.get(day, none) == sums_after.get(day, none),
        )
        for day in sorted({*sums_before, *sums_after})
    )


def _sum_days(frame: DataFrame, time_range: TimeRange) -> dict[date, tuple[int, object]]:
    """The number of rows of each day, and a sum that is another one for other rows."""
    from pyspark.sql import functions as f

    # Spark hashes no maps, and takes -0.0 for 0.0.
    hashed = f.xxhash64(f.to_json(f.struct("*"), _AS_JSON)).cast("decimal(38,0)").alias(_HASH)
    day = f.least(f.expr(time_range.day), f.lit(date.max)).alias("day")
    rows = frame.select(day, hashed)
    sums = rows.groupBy("day").agg(f.count(f.lit(1)), f.sum(_HASH)).collect()
    return {row[0]: (row[1], row[2]) for row in sums}


def pieces(days: Sequence[Day], time_range: TimeRange, max_rows: int) -> Iterator[tuple[TimeRange, int, int]]:
    """Yield the ranges that are replaced, each in a commit of about `max_rows`, with their rows before and after.

    A range is of whole days, or the part of a day in the range; of several days only if these follow on each other and
    have few rows.
    """
    open_days: list[Day] = []
    for day in days:
        together = max(sum(d.rows_before for d in (*open_days, day)), sum(d.rows_after for d in (*open_days, day)))
        if open_days and (day.is_unchanged or together > max_rows):
            yield _piece(open_days, time_range)
            open_days = []
        if not day.is_unchanged:
            open_days.append(day)
    if open_days:
        yield _piece(open_days, time_range)


def _piece(days: Sequence[Day], time_range: TimeRange) -> tuple[TimeRange, int, int]:
    start = max(time_range.begin, datetime.combine(days[0].day, time()))
    last, end = days[-1].day, time_range.end
    if last < date.max:
        next_day = day_after(datetime.combine(last, time()))
        end = next_day if end is None else min(end, next_day)
    return replace(time_range, begin=start, end=end), sum(d.rows_before for d in days), sum(d.rows_after for d in days)


_LEFT_OUT = (OnFail.DROP, OnFail.QUARANTINE)


@dataclass(frozen=True, slots=True)
class ReplacedRange:
    time_range: TimeRange
    rows_before: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Backfill:
    """What one command replaces.

    `left_out`: how many rows of the query fail an expectation that drops or quarantines them. `rows`: that take the
    place of those that are there; kept while the command runs.
    """

    run: Run
    model: Model
    time_range: TimeRange
    days: tuple[Day, ...]
    ranges: tuple[ReplacedRange, ...]
    left_out: int
    table: TableFacts
    rows: DataFrame = field(repr=False)

    @property
    def fewer(self) -> tuple[Day, ...]:
        return tuple(day for day in self.days if day.rows_after < day.rows_before)


@contextmanager
def compute_backfill(
    run: Run, model: Model, time_range: TimeRange, max_rows: int, *, dry_run: bool
) -> Iterator[Backfill]:
    """Compute the rows of a range, and find out what they replace; they are released at the end.

    `run` has the session and, unless nothing will be changed, the locks of the model and its streams.

    Raises:
        StateError: `backfill-rejected`, `backfill-unread`, `source-gap`; nothing was changed.
        RunError: the query failed, or `expectation-failed`.
    """
    with ExitStack() as stack, _errors_explained(model):
        check_model(model)
        state = _finished_state(run, model)
        table = _table(run, model)
        if not dry_run:
            # What an earlier command was killed before.
            pass_readers(run, model, table)
            check_unread(run, model, table)
        rows = open_rows(run, model, state, time_range, stack).persist()
        stack.callback(rows.unpersist)
        left_out = _count_left_out(model, rows)
        written_rows = rows.where(~expectations.failing_any(model.expectations, _LEFT_OUT)).drop(expectations.FAILED)
        days = days_of(_existing_rows(written_rows.sparkSession, model, time_range), written_rows, time_range)
        ranges = tuple(ReplacedRange(*piece) for piece in pieces(days, time_range, max_rows))
        yield Backfill(run, model, time_range, days, ranges, left_out, table, written_rows)


@contextmanager
def _errors_explained(model: Model) -> Iterator[None]:
    try:
        yield
    except spark_exceptions() as error:
        raise RunError.from_diagnostics(diagnose(error, model)) from error


def _finished_state(run: Run, model: Model) -> ModelState:
    folder, build = run.state(model), f"engine build -s {model.name}"
    check_finished([folder])
    state = folder.load()
    if state is None or state.batch is None or state.phase is not Phase.PUBLISHED:
        raise rejected(model, f"'{model.name}' has not been built yet", f"Build it: {build}")
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    check_table(model, state, checkpoint, run.lake.table(model.relation.schema, model.relation.name))
    is_unfinished = folder.unpublished() is not None or bool(folder.journal.open_operations())
    if is_unfinished or checkpoint.started != checkpoint.committed or checkpoint.committed != state.batch:
        message = f"a micro-batch, a full refresh or a rollback of '{model.name}' was begun and is not finished"
        raise rejected(model, message, f"Finish it first: {build}")
    if state.fingerprint != model.fingerprint:
        message = f"'{model.name}' has changed since it was built, and its new rows are still to be written"
        raise rejected(model, message, f"Build it first: {build}")
    if state.begin:
        raise rejected(model, f"the checkpoint of '{model.name}' was reset: the rows read before that are unknown")
    return state


def _table(run: Run, model: Model) -> TableFacts:
    table = run.lake.table(model.relation.schema, model.relation.name)
    if table is None or not table.history:
        raise rejected(model, f"{model.relation} has no rows yet")
    return table


def _existing_rows(session: SparkSession, model: Model, time_range: TimeRange) -> DataFrame:
    session.catalog.refreshTable(model.relation.sql)
    return session.table(model.relation.sql).where(time_range.condition)


def _count_left_out(model: Model, rows: DataFrame) -> int:
    """How many rows fail an expectation that keeps them out of the table. Raises RunError: `expectation-failed`."""
    from pyspark.sql import functions as f

    failing = [
        f.count_if(expectations.failing_any(model.expectations, policies)) for policies in (_LEFT_OUT, (OnFail.FAIL,))
    ]
    left_out, failed_rows = rows.agg(*failing).collect()[0]
    if failed_rows:
        names = ", ".join(check.name for check in model.expectations if check.on_fail is OnFail.FAIL)
        message = f"{failed_rows:,} rows of the range fail an expectation with on_fail: fail ({names})"
        raise RunError(
            "expectation-failed", message, "Nothing was replaced. Correct the query or the check.", node=model.name
        )
    return int(left_out)


def carry_out(backfill: Backfill) -> Iterator[ReplacedRange]:
    """Replace what was found, and yield each range that is done.

    Raises:
        RunError: `commit-conflict`, `query-failed`.
        StateError: the table or the lock is not what it was.
    """
    run, model, snapshot = backfill.run, backfill.model, backfill.table.snapshot
    name = model.relation.name
    for replaced_range in backfill.ranges:
        facts = _table(run, model)
        expected = ExpectedTable(model.name, backfill.table.uuid, snapshot)
        if facts.snapshot != snapshot:
            message = f"{model.relation} was changed by another writer since its rows were compared"
            raise RunError("commit-conflict", message, "Run the command again.", node=model.name)
        markers = {**repeated_markers(run, model, facts), BACKFILL: str(replaced_range.time_range)}
        kill_points.reach("backfilling", name)
        commit = replace_range(
            backfill.rows.sparkSession, model.relation.sql, replaced_range.time_range.condition,
            backfill.rows.where(replaced_range.time_range.condition), markers, expected, model.write.write_options,
        )  # fmt: skip
        snapshot = commit.snapshot
        kill_points.reach("backfilled", name)
        pass_readers(run, model, _table(run, model))
        yield replaced_range


def open_rows(run: Run, model: Model, state: ModelState, time_range: TimeRange, stack: ExitStack) -> DataFrame:
    """Return the rows of a range, each with the expectations that it fails (`expectations.FAILED`).

    Raises:
        StateError: `backfill-rejected`, `source-gap`: the input cannot be re-read.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    folder, session = run.state(model), open_session(run, model)
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    recorded_sources = read_source_record(folder, state.generation)
    if checkpoint.committed is None or recorded_sources is None:
        raise rejected(model, f"'{model.name}' has read nothing, or its state does not record it")
    streams = recorded_sources.streams
    place = replace(run.place, settled=dict(state.settled))
    read = ReadInput(run, model, state, session, checkpoint.path, checkpoint.committed, streams, stack)
    register(session, run.manifest, model, place, bounded=True, instead=read.rows)
    frame = table_setup.checked_frame(session, model)
    marked = expectations.marked_rows(frame, model.expectations)
    return _as_table(session, model, marked).where(time_range.condition)


def _as_table(session: SparkSession, model: Model, frame: DataFrame) -> DataFrame:
    """The rows with the columns of the table; those that the query gives no more are NULL."""
    from pyspark.sql import functions as f

    rows = table_setup.columns_of(model, frame.drop(expectations.FAILED))
    match = match_table(rows, model.relation.sql)
    ignored = model.write.on_schema_change is OnSchemaChange.IGNORE
    if match.incompatible or match.promoted or (match.added and not ignored):
        hint = f"Build it first: engine build -s {model.name}"
        raise rejected(model, f"{model.relation} does not have the columns of the query yet", hint)
    query_names = {name.lower() for name in rows.columns}
    columns = [
        (f.col(quoted(field.name)) if field.name.lower() in query_names else f.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in session.table(model.relation.sql).schema.fields
    ]
    return frame.select(*columns, expectations.FAILED)
