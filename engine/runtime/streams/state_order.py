"""Spark stores the aggregates of a group by position: an edited SELECT list runs in the order of the state.

The order is recorded when a checkpoint begins (`sources.json`), as aggregates over the columns of the inputs, and with
each later query in the names of that query. So an edit is compared with what the state holds, whatever became of the
text with which it began.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from engine.plan.deployed.recorded_streams import RECORD, recorded
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.stream_sources import present_streams
from engine.runtime.spark_support.aggregate_trees import stored_aggregates
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

    `state`: that the query resumes; None: its state begins.

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
    before = _before(run, model, folder, state, now) if state is not None and state.fingerprint else None
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
    return stored_aggregates(with_groups_left_out(model, frame).frame, _views(model.facts["state"]))


def _views(facts: _Facts) -> dict[str, int]:
    return {str(item["view"]).replace("`", "").lower(): number for number, item in enumerate(facts["inputs"])}


def _before(run: Run, model: Model, folder: TableState, state: ModelState, now: Groups | None) -> _Facts | None:
    """The query that has the order of a state, with the names of now and its `groups`; None: the state has no order."""
    facts = folder.facts(state)
    if facts is None or "state" not in facts:
        # The plan compares such facts as text: it is the same.
        return None
    known = recorded(folder, state.generation)
    if known is not None and known.order is not None:
        writer = LastWriter(state.fingerprint, facts, known)
        read = StreamsRead.of(model, writer, present_streams(run, model, known.streams))
        return dict(with_present_names(run.manifest, model, facts, writer, read)["began"])
    if not now:
        return None
    message = f"the state of '{model.name}' does not record the order of its aggregates, which it stores by position"
    path = folder.generation(state.generation) / RECORD
    hint = f"Restore {path} from a backup, or rebuild the table: engine build -f -s {model.name}"
    raise _changed(model, message, hint)


def _fits(before: _Facts, now: Groups, model: Model) -> bool:
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
