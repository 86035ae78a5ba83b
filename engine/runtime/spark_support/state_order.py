"""Spark stores the aggregates of a group by position: an edited SELECT list runs in the order of the state.

Which order a query gives is Spark's to say: both texts, that with which the state began and the one that resumes, are
put through its optimiser before the query starts, which is done only after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.stateful.aggregate_order import reorderings
from engine.compile.stateful.stateful_steps import UnprovableError, meaning
from engine.errors import Location, StateError
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Order = list[list[str]]
_NUMBER = re.compile(r"#\d+L?")


def in_order_of_state(session: SparkSession, model: Model, folder: TableState, state: ModelState | None) -> Model:
    """Return a model whose aggregates come in the order in which its state holds them.

    The facts of such a model keep the query with which the state began, for as long as the generation lives.

    Args:
        session: with the model's inputs registered.
        model: an edited query that may resume.
        folder: of its state.
        state: that the query resumes; None: it begins.

    Raises:
        StateError: `model-changed`: no order of the SELECT list gives that of the state.
    """
    facts = folder.facts(state) if state is not None and state.fingerprint else None
    if facts is None or "state" not in facts or "state" not in model.facts:
        return model
    if facts["state"] == model.facts["state"] and "began" not in facts:
        return model
    began: Mapping[str, Any] = facts.get("began") or facts["state"]
    stored = _order(session, str(began["sql"]))
    if stored is None or _same(stored, _order(session, model.sql)):
        return model
    try:
        texts = reorderings(model.sql, meaning(began), meaning({**model.facts["state"], "sql": model.sql}))
    except UnprovableError:
        texts = []
    fits = next((text for text in texts if _same(stored, _order(session, text))), None)
    if fits is None:
        message = (
            f"the aggregates of '{model.name}' are in another order than in its state, which stores them by position"
        )
        hint = f"Restore the order of the columns, or rebuild the table: engine build -f -s {model.name}"
        raise StateError("model-changed", message, hint, node=model.name, location=Location(model.file))
    return replace(model, sql=fits, facts={**model.facts, "began": began})


def _same(stored: Order, now: Order | None) -> bool:
    """Whether two queries have their aggregates in one order; where names inside differ, by the functions alone."""
    if now is None or [sorted(group) for group in stored] == [sorted(group) for group in now]:
        return stored == now
    heads = [[[text.partition("(")[0] for text in group] for group in order] for order in (stored, now)]
    return heads[0] == heads[1]


def _order(session: SparkSession, sql: str) -> Order | None:
    """The aggregates of each group in Spark's own order; None if Spark cannot read the text (a view is gone, say)."""
    jvm: Any = session._jsparkSession.sessionState()  # noqa: SLF001
    try:
        analysed = session.sql(sql)._jdf.queryExecution().analyzed()  # noqa: SLF001
        plan = jvm.optimizer().execute(analysed)
    except spark_exceptions():
        return None
    found = []
    for node in _nodes(plan):
        if node.nodeName() == "Aggregate":
            calls = (call for item in _items(node.aggregateExpressions()) for call in _calls(item))
            found.append(list(dict.fromkeys(_plain(call) for call in calls)))
    return found


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _items(plan.children()):
        yield from _nodes(child)


def _calls(expression: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield expression
        return
    for child in _items(expression.children()):
        yield from _calls(child)


def _plain(call: Any) -> str:
    """An aggregate without the numbers of its columns."""
    return _NUMBER.sub("", str(call.toString()))
