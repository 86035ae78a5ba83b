"""Spark stores the aggregates of a group by position: an edited SELECT list runs in the order of the state.

The order is recorded when a checkpoint begins (`sources.json`), as aggregates over the columns of the inputs, and with
each later query in the names of that query. So an edit is compared with what the state holds, whatever became of the
text with which it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.stateful.aggregate_order import aggregate_orders, reorderings
from engine.compile.stateful.stateful_steps import UnprovableError, meaning
from engine.compile.stateful.stored_order import Groups, same_order
from engine.errors import Location, StateError
from engine.plan.changed_query import with_present_names
from engine.plan.comparison import StreamsRead
from engine.plan.deployed.deployed_facts import LastWriter
from engine.plan.deployed.recorded_streams import recorded
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.stream_sources import present_streams
from engine.runtime.spark_support.aggregate_trees import stored_aggregates
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.runtime.streams.groups_left_out import with_groups_left_out
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OrderedQuery:
    """A query whose aggregates come in the order of its state.

    Attributes:
        model: with the text that runs.
        frame: the rows of that.
        order: what its generation records; None: nothing in its state has an order.
    """

    model: Model
    frame: DataFrame
    order: _Facts | None


def in_order_of_state(
    run: Run, session: SparkSession, model: Model, folder: TableState, state: ModelState | None
) -> OrderedQuery:
    """Return a query whose aggregates come in the order in which its state holds them.

    Args:
        run: under way.
        session: with the model's inputs registered.
        model: that may resume.
        folder: of its state.
        state: that the query resumes; None: its state begins.

    Raises:
        StateError: `model-changed`: no order of the SELECT list gives that of the state, or that is not known.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    if "state" not in model.facts:
        return OrderedQuery(model, session.sql(model.sql), None)
    known = recorded(folder, state.generation) if state is not None and state.fingerprint else None
    order = known.order if known is not None else None
    if order is not None and (order["fingerprint"], order["spark"]) == (model.fingerprint, session.version):
        ran = replace(model, sql=order["sql"]) if order["moved"] else model
        return OrderedQuery(ran, session.sql(ran.sql), order)
    frame = session.sql(model.sql)
    now = _groups(model, frame)
    before = _before(run, model, folder, state, frame) if state is not None and state.fingerprint else None
    if before is None or not (now or before["groups"]):
        return OrderedQuery(model, frame, _record(model, now, frame) if now else None)
    if now is not None and _fits(before, now, model):
        return OrderedQuery(model, frame, _record(model, now, frame))
    for text in _reordered(before, model):
        other = replace(model, sql=text)
        frame = session.sql(text)
        now = _groups(other, frame)
        if now is not None and _fits(before, now, other):
            return OrderedQuery(other, frame, {**_record(other, now, frame), "moved": True})
    message = f"the aggregates of '{model.name}' are in another order than in its state, which stores them by position"
    hint = f"Restore the order of the columns, or rebuild the table: engine build -f -s {model.name}"
    raise _changed(model, message, hint)


def _record(model: Model, groups: Groups, frame: DataFrame) -> dict[str, Any]:
    made = {"groups": groups, "fingerprint": model.fingerprint, "spark": frame.sparkSession.version, "moved": False}
    return {**model.facts["state"], "sql": model.sql, **made}


def _groups(model: Model, frame: DataFrame) -> Groups | None:
    """The aggregates of a query in the form in which it runs."""
    return stored_aggregates(with_groups_left_out(model, frame).frame, _views(model.facts["state"]))


def _views(facts: _Facts) -> dict[str, int]:
    """The number of each input of a query, by the name that its SQL has for it."""
    return {str(item["view"]).replace("`", "").lower(): number for number, item in enumerate(facts["inputs"])}


def _before(run: Run, model: Model, folder: TableState, state: ModelState, frame: DataFrame) -> _Facts | None:
    """The query that has the order of a state, with the names of now and its `groups`; None: it is that of now.

    Of a checkpoint that a version began that recorded no order, it is derived from the text.
    """
    facts = folder.facts(state)
    if facts is None or "state" not in facts:
        # The plan compares such facts as text: it is the same.
        return None
    known = recorded(folder, state.generation)
    writer = LastWriter(state.fingerprint, facts, known)
    read = StreamsRead.of(model, writer, present_streams(run, model, known.streams if known is not None else ()))
    named = with_present_names(run.manifest, model, facts, writer, read)
    if known is not None and known.order is not None:
        return dict(named["began"])
    if state.fingerprint == model.fingerprint and "began" not in named:
        groups = stored_aggregates(frame, _views(model.facts["state"]))
        return None if groups is None else {**named["state"], "groups": groups}
    began = named.get("began") or named["state"]
    with _earlier_views(frame.sparkSession, model, began) as session:
        try:
            groups = stored_aggregates(session.sql(str(began["sql"])), _views(began))
        except spark_exceptions():
            groups = None
    if groups is not None:
        return {**began, "groups": groups}
    message = (
        f"the state of '{model.name}' was begun by an earlier version, which did not record the order of its "
        "aggregates, and the query with which it began cannot be read any more"
    )
    hint = (
        "Restore the query and its sources as they were when it was last built, build once, and repeat the edit; or "
        f"rebuild the table: engine build -f -s {model.name}"
    )
    raise _changed(model, message, hint)


@contextmanager
def _earlier_views(session: SparkSession, model: Model, began: _Facts) -> Iterator[SparkSession]:
    """A session in which the inputs have the names, also of their columns, that an earlier query has for them."""
    views = {item.name: item.view.strip("`") for item in model.inputs if "." not in item.view}
    frames = {view: session.table(f"`{view}`") for view in views.values()}
    earlier = {}
    for item in began["inputs"]:
        view, name = views.get(str(item["name"])), str(item["view"]).strip("`")
        if view is not None:
            names = {new: old for old, new in (item.get("renamed") or {}).items()}
            earlier[name] = frames[view].withColumnsRenamed(names)
    for name, frame in earlier.items():
        frame.createOrReplaceTempView(name)
    try:
        yield session
    finally:
        for name in earlier:
            session.catalog.dropTempView(name)
        for view, frame in frames.items():
            frame.createOrReplaceTempView(view)


def _fits(before: _Facts, now: Groups, model: Model) -> bool:
    """Whether a query has its aggregates in the order of the state."""
    said = {**model.facts["state"], "sql": model.sql}
    same = same_order(before["groups"], before["inputs"], now, said["inputs"])
    if same is not None:
        return same
    try:
        return aggregate_orders(meaning(before)) == aggregate_orders(meaning(said))
    except UnprovableError:
        return False


def _reordered(before: _Facts, model: Model) -> list[str]:
    try:
        return reorderings(model.sql, meaning(before), meaning({**model.facts["state"], "sql": model.sql}))
    except UnprovableError:
        return []


def _changed(model: Model, message: str, hint: str) -> StateError:
    return StateError("model-changed", message, hint, node=model.name, location=Location(model.file))
