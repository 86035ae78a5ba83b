"""`engine backfill`: the rows of a range are computed again by the query of now, and take the place of those there.

The input is what the stream has read and committed; its checkpoint, its offsets and model.json stay as they are, so
that it continues as if nothing had happened. Each commit replaces the rows of some days, and can be repeated: a day
whose rows are those of the query is left alone, which is how the same command finishes after a kill. Streams of the
table are moved behind each commit; the locks of all of them are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import OnFail, OnSchemaChange
from engine.errors import RunError
from engine.lake.changes.range_replacement import replace_range
from engine.lake.commit_guard import ExpectedTable
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import BACKFILL, TableFacts
from engine.plan.actions.state_checks import check_table
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.recorded_streams import recorded
from engine.runtime.backfill.backfill_request import TimeRange, check_model
from engine.runtime.backfill.changed_days import Day, days_of, pieces
from engine.runtime.backfill.pass_readers import check_unread, pass_readers
from engine.runtime.backfill.read_input import ReadInput, rejected
from engine.runtime.context.repeated_markers import repeated_markers
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.operations.drop_table import check_finished
from engine.runtime.quality import expectations
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.frame_schema import match_table
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from engine.runtime.streams.stream_query import open_session
from engine.state import ModelState, Phase

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEFT_OUT = (OnFail.DROP, OnFail.QUARANTINE)


@dataclass(frozen=True, slots=True)
class ReplacedRange:
    within: TimeRange
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Backfill:
    """What one command replaces.

    Attributes:
        left_out: how many rows of the query fail an expectation that drops or quarantines them.
        rows: that take the place of those that are there; kept while the command runs.
    """

    run: Run
    model: Model
    within: TimeRange
    days: tuple[Day, ...]
    ranges: tuple[ReplacedRange, ...]
    left_out: int
    table: TableFacts
    rows: DataFrame = field(repr=False)

    @property
    def fewer(self) -> tuple[Day, ...]:
        return tuple(day for day in self.days if day.after < day.before)


@contextmanager
def looked(run: Run, model: Model, within: TimeRange, most: int, *, dry_run: bool) -> Iterator[Backfill]:
    """Compute the rows of a range, and find out what they replace; they are released at the end.

    `run`: with the session and, unless nothing will be changed, the locks of the model and its streams.
    `most`: rows of a commit, unless a day has more.

    Raises:
        StateError: `backfill-rejected`, `backfill-unread`, `source-gap`; nothing was changed.
        RunError: the query failed, or `expectation-failed`.
    """
    with ExitStack() as stack, _explained(model):
        check_model(model)
        state = _finished(run, model)
        table = _table(run, model)
        if not dry_run:
            # What an earlier command was killed before.
            pass_readers(run, model, table)
            check_unread(run, model, table)
        rows = open_rows(run, model, state, within, stack).persist()
        stack.callback(rows.unpersist)
        left_out = _checked(model, rows)
        kept = rows.where(~expectations.failing_any(model.expectations, _LEFT_OUT)).drop(expectations.FAILED)
        days = days_of(_there(kept.sparkSession, model, within), kept, within)
        ranges = tuple(ReplacedRange(*piece) for piece in pieces(days, within, most))
        yield Backfill(run, model, within, days, ranges, left_out, table, kept)


@contextmanager
def _explained(model: Model) -> Iterator[None]:
    try:
        yield
    except spark_exceptions() as error:
        raise RunError.of(diagnose(error, model)) from error


def _finished(run: Run, model: Model) -> ModelState:
    folder, build = run.state(model), f"engine build -s {model.name}"
    check_finished([folder])
    state = folder.load()
    if state is None or state.batch is None or state.phase is not Phase.PUBLISHED:
        raise rejected(model, f"'{model.name}' has not been built yet", f"Build it: {build}")
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    check_table(model, state, checkpoint, run.lake.table(model.relation.schema, model.relation.name))
    begun = folder.pending() is not None or bool(folder.journal.all())
    if begun or checkpoint.started != checkpoint.committed or checkpoint.committed != state.batch:
        message = f"a micro-batch, a full refresh or a rollback of '{model.name}' was begun and is not finished"
        raise rejected(model, message, f"Finish it first: {build}")
    if state.fingerprint != model.fingerprint:
        message = f"'{model.name}' has changed since it was built, and its new rows are still to be written"
        raise rejected(model, message, f"Build it first: {build}")
    if state.begin:
        raise rejected(model, f"the checkpoint of '{model.name}' was reset: what was read before it is not known")
    return state


def _table(run: Run, model: Model) -> TableFacts:
    table = run.lake.table(model.relation.schema, model.relation.name)
    if table is None or not table.history:
        raise rejected(model, f"{model.relation} has no rows yet")
    return table


def _there(session: SparkSession, model: Model, within: TimeRange) -> DataFrame:
    session.catalog.refreshTable(model.relation.sql)
    return session.table(model.relation.sql).where(within.condition)


def _checked(model: Model, rows: DataFrame) -> int:
    """How many rows fail an expectation that keeps them out of the table.

    Raises:
        RunError: `expectation-failed`.
    """
    from pyspark.sql import functions as f

    failing = [
        f.count_if(expectations.failing_any(model.expectations, policies)) for policies in (_LEFT_OUT, (OnFail.FAIL,))
    ]
    left_out, failed = rows.agg(*failing).collect()[0]
    if failed:
        names = ", ".join(check.name for check in model.expectations if check.on_fail is OnFail.FAIL)
        message = f"{failed:,} rows of the range fail an expectation with on_fail: fail ({names})"
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
    for one in backfill.ranges:
        facts = _table(run, model)
        expected = ExpectedTable(model.name, backfill.table.uuid, snapshot)
        if facts.snapshot != snapshot:
            message = f"{model.relation} was changed by another writer since its rows were compared"
            raise RunError("commit-conflict", message, "Run the command again.", node=model.name)
        markers = {**repeated_markers(run, model, facts), BACKFILL: str(one.within)}
        kill_points.reach("backfilling", name)
        commit = replace_range(
            backfill.rows.sparkSession, model.relation.sql, one.within.condition,
            backfill.rows.where(one.within.condition), markers, expected, model.write.write_options,
        )  # fmt: skip
        snapshot = commit.snapshot
        kill_points.reach("backfilled", name)
        pass_readers(run, model, _table(run, model))
        yield one


def open_rows(run: Run, model: Model, state: ModelState, within: TimeRange, stack: ExitStack) -> DataFrame:
    """Return the rows of a range, each with the expectations that it fails (`expectations.FAILED`).

    `state`: of its generation; all that was begun is finished.

    Raises:
        StateError: `backfill-rejected`, `source-gap`: the input cannot be read again.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    folder, session = run.state(model), open_session(run, model)
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    known = recorded(folder, state.generation)
    if checkpoint.committed is None or known is None:
        raise rejected(model, f"'{model.name}' has read nothing, or its state does not say what")
    streams = known.streams
    place = replace(run.place, settled=dict(state.settled))
    read = ReadInput(run, model, state, session, checkpoint.path, checkpoint.committed, streams, stack)
    register(session, run.manifest, model, place, bounded=True, instead=read.rows)
    frame = table_setup.checked_frame(session, model)
    marked = expectations.marked_rows(frame, model.expectations)
    return _as_table(session, model, marked).where(within.condition)


def _as_table(session: SparkSession, model: Model, frame: DataFrame) -> DataFrame:
    """The rows with the columns of the table; those that the query gives no more are NULL."""
    from pyspark.sql import functions as f

    rows = table_setup.columns_of(model, frame.drop(expectations.FAILED))
    match = match_table(rows, model.relation.sql)
    ignored = model.write.on_schema_change is OnSchemaChange.IGNORE
    if match.incompatible or match.promoted or (match.added and not ignored):
        hint = f"Build it first: engine build -s {model.name}"
        raise rejected(model, f"{model.relation} does not have the columns of the query yet", hint)
    given = {name.lower() for name in rows.columns}
    columns = [
        (f.col(quoted(field.name)) if field.name.lower() in given else f.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in session.table(model.relation.sql).schema.fields
    ]
    return frame.select(*columns, expectations.FAILED)
