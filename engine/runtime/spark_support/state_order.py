"""Spark stores the aggregates of a group by position: an edited SELECT list runs in the order of the state.

Which order a query gives is Spark's to say: both texts, that with which the state began and the one that resumes, are
put through its optimiser before the query starts, which is done only after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.stateful.aggregate_order import aggregate_orders, reorderings
from engine.compile.stateful.stateful_steps import UnprovableError, meaning
from engine.compile.types.builtin_functions import SYNONYMS
from engine.errors import Location, StateError
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Order = list[list[str]]
_NUMBER = re.compile(r"#\d+L?")
_CALL = re.compile(r"\b\w++(?=\()")


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
    if stored is None or _resumes(session, stored, began, model):
        return model
    try:
        texts = reorderings(model.sql, meaning(began), meaning({**model.facts["state"], "sql": model.sql}))
    except UnprovableError:
        texts = []
    reordered = (replace(model, sql=text) for text in texts)
    fits = next((other for other in reordered if _resumes(session, stored, began, other)), None)
    if fits is None:
        message = (
            f"the aggregates of '{model.name}' are in another order than in its state, which stores them by position"
        )
        hint = f"Restore the order of the columns, or rebuild the table: engine build -f -s {model.name}"
        raise StateError("model-changed", message, hint, node=model.name, location=Location(model.file))
    return replace(fits, facts={**model.facts, "began": began})


def _resumes(session: SparkSession, stored: Order, began: Mapping[str, Any], model: Model) -> bool:
    """Whether a query has its aggregates in the order of the state."""
    now = _order(session, model.sql)
    if now is None or [len(group) for group in now] != [len(group) for group in stored]:
        return stored == now
    same = [_same(*groups) for groups in zip(stored, now, strict=True)]
    if None not in same or False in same:
        return False not in same
    try:
        before, after = meaning(began), meaning({**model.facts["state"], "sql": model.sql})
    except UnprovableError:
        return False
    return aggregate_orders(before) == aggregate_orders(after)


def _same(stored: list[str], now: list[str]) -> bool | None:
    """Whether two lists of aggregates have one order; None if Spark's texts do not tell.

    What is written in another way (`a > b` and `b < a`) is known by its function, where that is there once.
    """
    changed = [(one, other) for one, other in zip(stored, now, strict=True) if one != other]
    if not changed:
        return True
    before, after = zip(*changed, strict=True)
    if {*before} & {*after}:
        return False
    heads = [[text.partition("(")[0] for text in texts] for texts in (before, after)]
    if heads[0] != heads[1]:
        return False if sorted(heads[0]) == sorted(heads[1]) else None
    return True if len({*heads[0]}) == len(heads[0]) else None


def _order(session: SparkSession, sql: str) -> Order | None:
    """The aggregates of each group in Spark's own order; None if Spark cannot read the text (a view is gone, say)."""
    jvm: Any = session._jsparkSession.sessionState()  # noqa: SLF001
    try:
        analysed = session.sql(sql)._jdf.queryExecution().analyzed()  # noqa: SLF001
        plan = jvm.optimizer().execute(analysed)
    except spark_exceptions():
        return None
    nodes = [*_nodes(plan)]
    texts = _Texts({_number(alias): alias.child() for node in nodes for alias in _aliases(node)})
    found = []
    for node in nodes:
        if node.nodeName() == "Aggregate":
            calls = (call for item in _items(node.aggregateExpressions()) for call in _calls(item))
            found.append(list(dict.fromkeys(texts.of(call) for call in calls)))
    return found


@dataclass(frozen=True, slots=True)
class _Texts:
    """Spark's texts of expressions without names that are given in the query: in the columns that it reads."""

    made: Mapping[int, Any]
    known: dict[int, str] = field(default_factory=dict)

    def of(self, expression: Any) -> str:
        """The text of an expression."""
        text, attributes = str(expression.toString()), {}
        for attribute in _items(expression.references().toSeq()):
            attributes[str(attribute.toString())] = attribute
        for shown in sorted(attributes, key=len, reverse=True):
            inside = self._attribute(attributes[shown]).replace("\\", "\\\\")
            text = re.sub(rf"(?<!\w){re.escape(shown)}(?![\dL])", inside, text)
        return _CALL.sub(lambda call: SYNONYMS.get(call[0].lower(), call[0]), _NUMBER.sub("", text))

    def _attribute(self, attribute: Any) -> str:
        number = _number(attribute)
        if number not in self.known:
            made = self.made.get(number)
            self.known[number] = str(attribute.name()) if made is None else self.of(made)
        return self.known[number]


def _number(named: Any) -> int:
    return int(named.exprId().id())


def _aliases(node: Any) -> Iterator[Any]:
    return (one for one in _items(node.expressions()) if one.getClass().getSimpleName() == "Alias")


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
