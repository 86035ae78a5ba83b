"""A model's query over its inputs, as Spark's analyser has it: nothing is started, read or written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.nodes.model_settings import StateProvider
from engine.plan import ActionKind
from engine.plan.deployed.column_names import earlier_names
from engine.plan.tables.upstream_tables import TableReading
from engine.runtime.context.run_context import Run
from engine.runtime.inputs import dedup_keys, stream_sources
from engine.runtime.inputs.register_inputs import register
from engine.runtime.lifecycle import reset_checkpoint
from engine.runtime.quality.bad_records import Watched
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support import hooks
from engine.runtime.streams.state_order import in_order_of_state
from engine.sources import Place
from engine.spark.internals.stream_joins import join_as_sql
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
# Spark keeps this many progress records; more than can come between two polls.
_PROGRESS_KEPT = 100


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """The query of a streaming table.

    Attributes:
        run: with the sources of the model where its generation begins them.
        model: with dedup keys and aggregates in the order of the state that it resumes.
        place: the project's folder, with what the first build of the generation pinned.
        since: files count from this time of theirs on, in milliseconds; None: all do.
        events_from: events count from this time on, in milliseconds since 1970; None: all do.
        order: of its state, to be recorded (see `state_order`); None: nothing in it has an order.
    """

    run: Run
    model: Model
    session: SparkSession
    folder: TableState
    place: Place
    since: int | None
    events_from: int | None
    watched: tuple[Watched, ...]
    frame: DataFrame
    order: Mapping[str, Any] | None = None

    def over(self, tables: Mapping[str, TableReading]) -> StreamQuery:
        """Return the query over tables that begin elsewhere than with their first commit, by node."""
        watched = register(
            self.session, self.run.manifest, self.model, self.place, bounded=False, tables=tables, since=self.since,
            events_from=self.events_from,
        )  # fmt: skip
        return replace(self, watched=watched, frame=self.session.sql(self.model.sql))


def open_session(run: Run, model: Model) -> SparkSession:
    """Return a session of the model's own, as its header wants it; its `pre_hook` has run."""
    session = run.spark.newSession()
    join_as_sql(session)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_PROGRESS_KEPT))
    if model.operation.state_provider is StateProvider.HDFS:
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _HDFS)
    if model.state_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(model.state_partitions))
    hooks.before(session, model)
    return session


def open_query(
    run: Run, model: Model, session: SparkSession, folder: TableState, known: ModelState | None
) -> StreamQuery:
    """Register the inputs of a model and have Spark analyse its query.

    `known`: the state that the query continues, or that a reset begins; None: it begins with its first rows.

    Raises:
        StateError: `model-changed`: the query cannot have the order of its state.
        RunError: the declared columns are not those of the query.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    run, since = reset_checkpoint.placed(run, model, known), reset_checkpoint.after(run, model, known)
    model, place = _as_begun(run, model, folder, known)
    events_from = reset_checkpoint.events_from(known)
    watched = register(session, run.manifest, model, place, bounded=False, since=since, events_from=events_from)
    resumed = known if run.plan.actions[model.id].kind is ActionKind.RESUME else None
    ordered = in_order_of_state(run, session, model, folder, resumed)
    table_setup.check_declared(ordered.model, ordered.frame)
    return StreamQuery(
        run, ordered.model, session, folder, place, since, events_from, watched, ordered.frame, ordered.order
    )


def _as_begun(run: Run, model: Model, folder: TableState, known: ModelState | None) -> tuple[Model, Place]:
    if known is None:
        return dedup_keys.ordered(model, None), replace(run.place, settled={}, folders={})
    settled = stream_sources.renamed(run, model, known, folder).settled if known.batch is not None else {}
    ordered = dedup_keys.ordered(model, None)
    if run.plan.actions[model.id].kind is ActionKind.RESUME:
        recorded = stream_sources.recorded_dedup(run, model, folder, known.generation)
        columns = {item.name: earlier_names(node) for item in model.inputs
                   if isinstance(node := run.manifest.nodes[item.node], Model)}  # fmt: skip
        ordered = dedup_keys.ordered(model, folder.checkpoint(known.generation), recorded, columns)
    return ordered, replace(run.place, settled=dict(settled), folders={})
