"""A name of a query means the same to its columns and to its streaming plan, which look it up each for itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain

import pytest
from sqlglot import exp

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import bind
from engine.compile.columns.walk import path
from engine.compile.streaming import StreamFacts
from engine.compile.streaming.lowering import build_plan, lower_from, lower_grouping, lower_pivots
from engine.compile.streaming.lowering.build_plan import Builder
from engine.compile.streaming.lowering.parse_statement import parse
from engine.compile.streaming.query_plan.logical_plan import (
    Aggregate,
    Generate,
    LogicalPlan,
    Projection,
    SourcePlan,
    UnionPlan,
)
from engine.compile.types.builtin_functions import SYNONYMS
from tests.analyser import queries as any_query
from tests.analyser.tables import TABLES
from tests.fuzz import grammar as streaming_query
from tests.fuzz.relations import RELATIONS

pytestmark = pytest.mark.slow

Place = tuple[str, str]
_STEPS = (SourcePlan, Projection, Aggregate, UnionPlan, Generate)
_MODULES = (build_plan, lower_from, lower_grouping, lower_pivots)
_TABLES = {name: StreamFacts(streaming=False, columns=dict(columns)) for name, columns in TABLES.items()}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[LogicalPlan]:
    """The steps that are made, those of subqueries included."""
    made: list[LogicalPlan] = []

    def noting(kind: type[LogicalPlan]) -> object:
        def make(**given: object) -> LogicalPlan:
            made.append(kind(**given))  # type: ignore[arg-type]
            return made[-1]

        return make

    for module in _MODULES:
        for kind in _STEPS:
            if hasattr(module, kind.__name__):
                monkeypatch.setattr(module, kind.__name__, noting(kind))
    return made


@pytest.mark.parametrize("seed", [1, 2])
def test_names_of_random_streaming_queries(steps: list[LogicalPlan], seed: int) -> None:
    texts = [streaming_query.query(seed, number)[0] for number in range(400)]
    _compare(texts, RELATIONS, steps)


@pytest.mark.parametrize("seed", [1, 2])
def test_names_of_random_queries(steps: list[LogicalPlan], seed: int) -> None:
    texts = [re.sub(r"\[\[(\w+)\]\]", r"\1", any_query.query(seed, number)) for number in range(400)]
    _compare(texts, _TABLES, steps)


def _compare(texts: list[str], relations: Mapping[str, StreamFacts], steps: list[LogicalPlan]) -> None:
    names = 0
    for text in texts:
        steps.clear()
        for name, ours, theirs in _names(text, relations, steps):
            assert ours == theirs, (text, name)
            names += 1
    assert names > 1_500


def _names(
    text: str, relations: Mapping[str, StreamFacts], steps: list[LogicalPlan]
) -> Iterator[tuple[str, set[Place], set[Place]]]:
    """The names that both find, and from which columns of inputs the value comes to each."""
    try:
        parsed = parse(text, synonyms=SYNONYMS)
    except IndexError:
        return  # sqlglot's own, of the map() of one argument
    if not isinstance(parsed.tree, exp.Query):
        return
    inputs = {name: InputColumns(name, tuple((facts.columns or {}).items())) for name, facts in relations.items()}
    bound = bind(parsed.tree, inputs, {}, text)
    builder = Builder(relations, bound.types)
    builder.query(parsed.tree, {}, None)
    origins = _Origins(steps, builder)
    for node in parsed.tree.find_all(exp.Column):
        identifiers, base = path(node)
        known = builder.names.get(id(node))
        if base is not None or not identifiers or known is None or origins.computed(known.column.id):
            continue
        ours = bound.names.get(identifiers[0].meta["start"])
        theirs = origins.of(known.column.id)
        if ours is not None and ours[1].origins and theirs:
            yield node.sql(), {(table, name.split(".")[0]) for table, name in ours[1].origins}, theirs


class _Origins:
    """From which columns of inputs a column of the plan comes."""

    def __init__(self, steps: list[LogicalPlan], builder: Builder) -> None:
        self.inputs: dict[int, Place] = {}
        self.below: dict[int, set[int]] = defaultdict(set)
        self.made = builder.made
        # Of a CTE where it is read there is no step.
        for found in builder.names.values():
            if found.column.copy_of:
                self.below[found.column.id].add(found.column.copy_of)
        for step in steps:
            for column in step.columns:
                # VALUES has no name.
                if isinstance(step, SourcePlan) and step.name:
                    self.inputs[column.id] = step.name, column.name
                if column.copy_of:
                    self.below[column.id].add(column.copy_of)
            sources = getattr(step, "sources", ()) or getattr(step, "renamed", ())
            for number, used in sources:
                self.below[number] |= used - {number}
            for child in step.children if isinstance(step, UnionPlan) else ():
                for column, theirs in zip(step.columns, child.columns, strict=False):
                    self.below[column.id].add(theirs.id)

    def _all(self, number: int) -> set[int]:
        found, waiting = set(), [number]
        while waiting:
            if (one := waiting.pop()) not in found:
                found.add(one)
                waiting += self.below[one]
        return found

    def of(self, number: int) -> set[Place]:
        return {self.inputs[one] for one in self._all(number) if one in self.inputs}

    def computed(self, number: int) -> bool:
        """Whether more is needed for it than comes into its value: what OVER sorts by, what a subquery compares."""
        nodes = chain.from_iterable(self.made[one].walk() for one in self._all(number) if one in self.made)
        return any(isinstance(node, (exp.Window, exp.Query)) for node in nodes)
