"""The aggregates of a query in the order in which Spark's state holds them, as data.

The order is read off the optimised plan (CollapseProject may compute the items of an outer SELECT in the group itself),
what each aggregate is off the analysed plan, down to the columns of the views; Spark's ids join both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.compile.stateful.stored_order import COLUMN, Groups, Tree, told_apart
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals import plans
from engine.spark.internals.handles import each
from engine.spark.internals.plans import calls_of, nodes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Between the columns that a plan gives, in one string; no name has it.
_MARK = "\x1f"
_OUTPUT = re.compile(r"(.*)#(\d+)L?(?:-T-?\d+ms)?", re.DOTALL)
_CALL = "AggregateExpression"
# What is alone in its group has no order.
_ONLY: Tree = ["only", {}, []]
# Ids of a session, and what says nothing of a value.
_DROPPED = {
    "class", "num-children", "child", "exprId", "resultId", "qualifier", "metadata", "explicitMetadata",
    "nonInheritableMetadataKeys", "nullable", "mutableAggBufferOffset", "inputAggBufferOffset", "timeZoneId",
}  # fmt: skip


def stored_aggregates(frame: DataFrame, views: Mapping[str, int]) -> Groups | None:
    """Return the aggregates of each group that keeps state, as Spark stores them; None: Spark cannot optimise it.

    `views`: the number of each input, by its name in the SQL, in lower case and without backticks.
    """
    analysed = plans.analysed(frame)
    try:
        plan = plans.optimised(frame.sparkSession, analysed)
    except spark_exceptions():
        return None
    groups = [calls for node in nodes_of(plan) if node.nodeName() == "Aggregate" and node.isStreaming()
              and (calls := _distinct(node))]  # fmt: skip
    if all(len(calls) == 1 for calls in groups):
        return ((_ONLY,),) * len(groups)
    named_trees = _NamedTrees(views)
    named_trees.read(analysed)
    texts = partial(_texts, analysed)
    return tuple(told_apart([(named_trees.call(call), _result_id(call)) for call in calls], texts) for calls in groups)


def _distinct(node: Any) -> list[Any]:
    by_hash: dict[int, list[Any]] = {}
    calls = []
    for item in each(node.aggregateExpressions()):
        for call in calls_of(item):
            same_hash = by_hash.setdefault(call.canonicalized().semanticHash(), [])
            if not any(call.semanticEquals(known_call) for known_call in same_hash):
                same_hash.append(call)
                calls.append(call)
    return calls


@dataclass(slots=True)
class _NamedTrees:
    """What the columns and aggregates of an analysed plan are made of, by the ids that Spark gave them."""

    views: Mapping[str, int]
    columns: dict[int, Tree] = field(default_factory=dict)
    readings: Counter[int] = field(default_factory=Counter)
    calls: dict[int, Tree] = field(default_factory=dict)
    ctes: dict[int, list[Tree]] = field(default_factory=dict)
    references: Counter[int] = field(default_factory=Counter)

    def call(self, aggregate: Any) -> Tree:
        return self.calls.get(_result_id(aggregate)) or self._tree(aggregate)

    def read(self, node: Any) -> None:
        name = node.nodeName()
        if name == "SubqueryAlias" and (number := self._view(node)) is not None:
            for column, expression in _output(node):
                self.columns[expression] = [COLUMN, number, column, self.readings[number]]
            self.readings[number] += 1
            return
        below = list(each(node.children()))
        for child in below:
            self.read(child)
        for expression in each(node.expressions()):
            tree = self._tree(expression)
            if expression.getClass().getSimpleName() == "Alias":
                self.columns[int(expression.exprId().id())] = tree[2][0]
        self._pass_on(node, name, below)

    def _pass_on(self, node: Any, name: str, below: Sequence[Any]) -> None:
        output = list(_output(node))
        if name == "CTERelationDef":
            self.ctes[int(node.id())] = [self._column(number, column) for column, number in output]
        elif name == "CTERelationRef":
            self._refer(int(node.cteId()), output)
        elif name == "Union":
            sides = [[self._column(number, column) for column, number in _output(child)] for child in below]
            for index, (_, number) in enumerate(output):
                self.columns[number] = [name, {}, [side[index] for side in sides]]
        for index, (column, number) in enumerate(output):
            # A generator's columns, say: known by the step and their place.
            self.columns.setdefault(number, [name, {"place": index, "name": column}, []])

    def _refer(self, cte: int, output: Sequence[tuple[str, int]]) -> None:
        reading = self.references[cte]
        self.references[cte] += 1
        for (_, number), tree in zip(output, self.ctes.get(cte, ()), strict=False):
            self.columns[number] = ["reference", {"number": reading}, [tree]] if reading else tree

    def _view(self, node: Any) -> int | None:
        identifier = node.identifier()
        parts = [*map(str, each(identifier.qualifier())), str(identifier.name())]
        names = (".".join(parts[start:]).lower() for start in range(len(parts)))
        return next((self.views[name] for name in names if name in self.views), None)

    def _column(self, number: int, name: str) -> Tree:
        return self.columns.get(number) or ["?", {"name": name}, []]

    def _tree(self, expression: Any) -> Tree:
        nodes = iter(json.loads(expression.toJSON()))
        return self._next(next(nodes), nodes, {})

    def _next(self, node: Mapping[str, Any], nodes: Iterator[Mapping[str, Any]], lambdas: dict[int, int]) -> Tree:
        kind = str(node["class"]).rpartition(".")[2]
        number = int(node["exprId"]["id"]) if "exprId" in node else -1
        if kind == "AttributeReference":
            return self._column(number, str(node["name"]))
        fields = {key: self._field(value, lambdas) for key, value in node.items() if key not in _DROPPED}
        if kind == "NamedLambdaVariable":
            fields = {"number": lambdas.setdefault(number, len(lambdas))}
        if fields.get("dataType") == "binary":
            # Java's name of an object, which differs each time.
            fields.pop("value", None)
        tree: Tree = [kind, fields, [self._next(next(nodes), nodes, lambdas) for _ in range(int(node["num-children"]))]]
        if kind == _CALL:
            self.calls[int(node["resultId"]["id"])] = tree
        return tree

    def _field(self, value: Any, lambdas: dict[int, int]) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], Mapping) and "class" in value[0]:
            nodes = iter(value)
            return self._next(next(nodes), nodes, lambdas)
        if isinstance(value, list):
            return [self._field(part, lambdas) for part in value]
        if isinstance(value, Mapping):
            return {key: self._field(part, lambdas) for key, part in value.items() if key not in {"id", "jvmId"}}
        return value


def _output(node: Any) -> Iterator[tuple[str, int]]:
    for text in str(node.output().mkString(_MARK)).split(_MARK):
        if (match := _OUTPUT.fullmatch(text)) is not None:
            yield match[1], int(match[2])


def _texts(plan: Any) -> dict[int, str]:
    calls = (call for node in nodes_of(plan) for item in each(node.expressions()) for call in calls_of(item))
    return {_result_id(call): str(call.toString()) for call in calls}


def _result_id(aggregate: Any) -> int:
    return int(aggregate.resultId().id())
