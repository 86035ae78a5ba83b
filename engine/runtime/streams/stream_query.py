"""A model's query over its inputs, as Spark's analyser has it: nothing is started, read or written.

Spark keeps `dedup` keys as one row, by position: two keys of one type in another order are other keys (measured, Spark
4.1.4: duplicates are written and new rows dropped). A new generation records one order, however the header has it
(`sources.json`); an older one continues in the order of its state.

Aggregates of a group are stored by position too: an edited SELECT list runs in the order of the state, recorded as
aggregates over the columns of the inputs when the checkpoint begins and with each later query in its names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.compile import Input, Model
from engine.compile.nodes.facts import StateFacts, StateOrder, read_facts
from engine.compile.nodes.model_settings import StateProvider
from engine.compile.stateful.aggregate_order import aggregate_orders, reorderings
from engine.compile.stateful.stateful_steps import UnprovableError, meaning_of_state
from engine.compile.stateful.stored_order import Groups, same_order
from engine.errors import Location, StateError
from engine.plan import ActionKind
from engine.plan.changed_query import with_present_names
from engine.plan.comparison import StreamsRead
from engine.plan.deployed.checkpoint_facts import RECORD, read_source_record
from engine.plan.deployed.deployed_facts import LastWriter, earlier_names
from engine.plan.tables.upstream_tables import TableReading
from engine.runtime.context.run_context import Run
from engine.runtime.inputs import stream_sources
from engine.runtime.inputs.register_inputs import register
from engine.runtime.inputs.stream_sources import present_streams
from engine.runtime.lifecycle import reset_checkpoint
from engine.runtime.quality.bad_records import Watched
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support import hooks
from engine.runtime.spark_support.aggregate_trees import stored_aggregates
from engine.runtime.streams.groups_left_out import with_groups_left_out
from engine.sources import Place
from engine.spark.internals.plans import join_as_sql
from engine.state import ModelState, TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class OrderedQuery:
    """A query whose aggregates come in the order of its state.

    `model`: with the text that runs. `frame`: the rows of that. `order`: what its generation records; None: nothing in
    its state has an order.
    """

    model: Model
    frame: DataFrame
    order: StateOrder | None


def in_order_of_state(
    run: Run, session: SparkSession, model: Model, folder: TableState, state: ModelState | None
) -> OrderedQuery:
    """Return a query whose aggregates come in the order in which its state holds them.

    `state` None: it begins.

    Raises:
        StateError: `model-changed`: no order of the SELECT list gives that of the state, or that is not known.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    if model.facts.state is None:
        return OrderedQuery(model, session.sql(model.sql), None)
    stream_record = read_source_record(folder, state.generation) if state is not None and state.fingerprint else None
    order = stream_record.order if stream_record is not None else None
    if order is not None and (order.fingerprint, order.spark) == (model.fingerprint, session.version):
        ran = replace(model, sql=order.sql) if order.moved else model
        return OrderedQuery(ran, session.sql(ran.sql), order)
    frame = session.sql(model.sql)
    groups = _groups(model, frame)
    began = _query_of_state(run, model, folder, state, groups) if state is not None and state.fingerprint else None
    if began is None or not (groups or began.groups):
        return OrderedQuery(model, frame, _record(model, groups, frame) if groups else None)
    if groups is not None and _has_order(began, groups, model):
        return OrderedQuery(model, frame, _record(model, groups, frame))
    for text in _reordered(began, model):
        reordered = replace(model, sql=text)
        frame = session.sql(text)
        groups = _groups(reordered, frame)
        if groups is not None and _has_order(began, groups, reordered):
            return OrderedQuery(reordered, frame, _record(reordered, groups, frame, moved=True))
    message = f"the aggregates of '{model.name}' are in another order than in its state, which stores them by position"
    hint = f"Restore the order of the columns, or rebuild the table: engine build -f -s {model.name}"
    raise _model_changed(model, message, hint)


def _record(model: Model, groups: Groups, frame: DataFrame, *, moved: bool = False) -> StateOrder:
    inputs, spark = _state(model).inputs, frame.sparkSession.version
    return StateOrder(
        sql=model.sql, inputs=inputs, groups=groups, fingerprint=model.fingerprint, spark=spark, moved=moved
    )


def _state(model: Model) -> StateFacts:
    """What the state of a model that has one is made of, with the text that runs."""
    return StateFacts(model.sql, model.facts.state.inputs if model.facts.state is not None else ())


def _groups(model: Model, frame: DataFrame) -> Groups | None:
    return stored_aggregates(with_groups_left_out(model, frame).frame, _views(_state(model)))


def _views(facts: StateFacts) -> dict[str, int]:
    return {item.view.replace("`", "").lower(): number for number, item in enumerate(facts.inputs)}


def _query_of_state(
    run: Run, model: Model, folder: TableState, state: ModelState, groups: Groups | None
) -> StateOrder | None:
    """The query that has the order of a state, with the names of now and its `groups`; None: the state has no order."""
    facts = read_facts(folder.facts(state))
    if facts is None or facts.state is None:
        # The plan compares such facts as text: it is the same.
        return None
    stream_record = read_source_record(folder, state.generation)
    if stream_record is not None and stream_record.order is not None:
        writer = LastWriter(state.fingerprint, facts, stream_record)
        streams_read = StreamsRead.compare(model, writer, present_streams(run, model, stream_record.streams))
        began = with_present_names(run.manifest, model, facts, writer, streams_read).began
        return began if isinstance(began, StateOrder) else None
    if not groups:
        return None
    message = f"the state of '{model.name}' does not record the order of its aggregates, which it stores by position"
    path = folder.generation(state.generation) / RECORD
    hint = f"Restore {path} from a backup, or rebuild the table: engine build -f -s {model.name}"
    raise _model_changed(model, message, hint)


def _has_order(began: StateOrder, groups: Groups, model: Model) -> bool:
    model_facts = _state(model)
    is_same_order = same_order(began.groups, began.inputs, groups, model_facts.inputs)
    if is_same_order is not None:
        return is_same_order
    try:
        return aggregate_orders(meaning_of_state(began)) == aggregate_orders(meaning_of_state(model_facts))
    except UnprovableError:
        return False


def _reordered(began: StateOrder, model: Model) -> list[str]:
    try:
        return reorderings(model.sql, meaning_of_state(began), meaning_of_state(_state(model)))
    except UnprovableError:
        return []


def _model_changed(model: Model, message: str, hint: str) -> StateError:
    return StateError("model-changed", message, hint, node=model.name, location=Location(model.file))


_OPERATORS = {"dedupe", "dedupeWithinWatermark"}


def with_dedup_order(
    model: Model,
    checkpoint: StatePath | None,
    recorded_keys: Mapping[str, Sequence[str]] | None = None,
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> Model:
    """Return the model with the keys of each input in the order of its checkpoint, or in that of a new one.

    `recorded_keys`: by the name that an input has now. `renamed`: by input, the names of now by the earlier ones in
    lower case. Raises StateError: `model-changed`: the order of the state is not known.
    """
    if not any(len(item.dedup) > 1 for item in model.inputs):
        return model
    in_state = list(_dedup_keys_in_state(checkpoint)) if checkpoint is not None else []
    inputs = []
    for item in model.inputs:
        names, columns = {key.lower(): key for key in item.dedup}, (renamed or {}).get(item.name, {})
        key_lists = [recorded_keys[item.name]] if recorded_keys and item.name in recorded_keys else in_state
        orders = [[key if key in names else columns.get(key, key).lower() for key in map(str.lower, keys)]
                  for keys in key_lists]  # fmt: skip
        order = next((keys for keys in orders if sorted(keys) == sorted(names)), None)
        if order is None and len(names) > 1 and orders:
            raise _unknown_order(model, item)
        inputs.append(replace(item, dedup=tuple(names[key] for key in order or sorted(names))))
    return replace(model, inputs=tuple(inputs))


def _unknown_order(model: Model, item: Input) -> StateError:
    message = (
        f"the order in which the state of '{model.name}' holds the dedup keys of '{item.name}' "
        f"({', '.join(item.dedup)}) is not known"
    )
    hint = (
        "Restore the names that the columns had when it was last built, or rebuild the table: "
        f"engine build -f -s {model.name}"
    )
    return StateError("model-changed", message, hint, node=model.name, location=Location(model.file))


def _dedup_keys_in_state(checkpoint: StatePath) -> Iterator[tuple[str, ...]]:
    """The keys of each dedup step, in lower case and in the order of its state; none where they cannot be read."""
    for step, name in spark_checkpoint.operator_folders(checkpoint).items():
        if name not in _OPERATORS:
            continue
        schemas = (_key_columns(schema.read_bytes()) for schema in sorted(step.glob("*/_metadata/schema")))
        yield next(filter(None, schemas), ())


def _key_columns(content: bytes) -> tuple[str, ...]:
    """The names of the first schema in Spark's file: JSON between lengths (Spark class SchemaHelper)."""
    text = content.decode("utf-8", errors="replace")
    start = text.find('{"type":"struct"')
    if start < 0:
        return ()
    try:
        schema, _ = json.JSONDecoder().raw_decode(text, start)
        return tuple(str(column["name"]).lower() for column in schema["fields"])
    except (ValueError, LookupError, TypeError):
        return ()


_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
# Spark keeps this many progress records; more than can come between two polls.
_PROGRESS_REPORTS = 100


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """The query of a streaming table.

    `run` has the sources where its generation begins them, `model` keys and aggregates in the order of the state.
    `files_from` and `events_from` (milliseconds since 1970): files and events count from then on. `order`: to be
    recorded; None: nothing has one.
    """

    run: Run
    model: Model
    session: SparkSession
    folder: TableState
    place: Place
    files_from: int | None
    events_from: int | None
    watched_inputs: tuple[Watched, ...]
    frame: DataFrame
    order: StateOrder | None = None

    def over_tables(self, tables: Mapping[str, TableReading]) -> StreamQuery:
        watched_inputs = register(
            self.session, self.run.manifest, self.model, self.place, bounded=False, tables=tables,
            since=self.files_from, events_from=self.events_from,
        )  # fmt: skip
        return replace(self, watched_inputs=watched_inputs, frame=self.session.sql(self.model.sql))


def open_session(run: Run, model: Model) -> SparkSession:
    """Return a session of the model's own, as its header wants it; its `pre_hook` has run."""
    session = run.spark.newSession()
    join_as_sql(session)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_PROGRESS_REPORTS))
    if model.operation.state_provider is StateProvider.HDFS:
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _HDFS)
    if model.state_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(model.state_partitions))
    hooks.run_pre_hook(session, model)
    return session


def open_query(
    run: Run, model: Model, session: SparkSession, folder: TableState, continued_state: ModelState | None
) -> StreamQuery:
    """Register the inputs of a model and have Spark analyse its query.

    `continued_state`: the state that the query continues, or that a reset begins; None: it begins with its first rows.

    Raises:
        StateError: `model-changed`: the query cannot have the order of its state.
        RunError: the declared columns are not those of the query.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    run, since = (
        reset_checkpoint.run_from_reset(run, model, continued_state),
        reset_checkpoint.files_from(run, model, continued_state),
    )
    model, place = _model_and_place(run, model, folder, continued_state)
    events_from = reset_checkpoint.events_from(continued_state)
    watched_inputs = register(session, run.manifest, model, place, bounded=False, since=since, events_from=events_from)
    resumed_state = continued_state if run.plan.actions[model.id].kind is ActionKind.RESUME else None
    query = in_order_of_state(run, session, model, folder, resumed_state)
    table_setup.check_declared(query.model, query.frame)
    return StreamQuery(
        run, query.model, session, folder, place, since, events_from, watched_inputs, query.frame, query.order
    )


def _model_and_place(
    run: Run, model: Model, folder: TableState, continued_state: ModelState | None
) -> tuple[Model, Place]:
    if continued_state is None:
        return with_dedup_order(model, None), replace(run.place, settled={}, folders={})
    pinned = (
        stream_sources.with_present_source_names(run, model, continued_state, folder).settled
        if continued_state.batch is not None
        else {}
    )
    ordered_model = with_dedup_order(model, None)
    if run.plan.actions[model.id].kind is ActionKind.RESUME:
        recorded_keys = stream_sources.recorded_dedup(run, model, folder, continued_state.generation)
        columns = {item.name: earlier_names(node) for item in model.inputs
                   if isinstance(node := run.manifest.nodes[item.node], Model)}  # fmt: skip
        ordered_model = with_dedup_order(model, folder.checkpoint(continued_state.generation), recorded_keys, columns)
    return ordered_model, replace(run.place, settled=dict(pinned), folders={})
