"""What is gathered while a query is read, and small questions about sqlglot's nodes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import (
    ColumnScope,
    ColumnValue,
    GroupKey,
    Missing,
    NameRef,
    OutputColumns,
    Place,
    ResolvedName,
)
from engine.compile.columns.name_uses import NameUse
from engine.compile.columns.subquery_places import misplaced_subqueries
from engine.compile.nodes.column_facts import InputColumns, Unresolved
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.same_expression import key_of
from engine.compile.streaming.query_plan.logical_plan import Domain, LogicalPlan, PlanName

# Functions that sqlglot's tree does not place in the text.
_UNPLACED = {
    "Any": "any", "AnyValue": "any_value", "First": "first", "FirstValue": "first_value",
    "Last": "last", "LastValue": "last_value", "ApproxQuantile": "percentile_approx", "ArgMax": "max_by",
    "ArgMin": "min_by", "Ceil": "ceil",
    "BitwiseLeftShift": "shiftleft", "BitwiseRightShift": "shiftright", "Chr": "chr", "Decode": "decode",
    "DecodeCase": "decode", "CurrentDate": "current_date", "CurrentTime": "current_time",
    "CurrentTimestamp": "current_timestamp", "CurrentUser": "current_user", "Floor": "floor",
    "GroupConcat": "listagg", "Initcap": "initcap", "Localtimestamp": "localtimestamp", "Overlay": "overlay",
    "Quantile": "percentile", "SessionUser": "session_user", "StrPosition": "position",
    "Substring": "substring", "Transform": "transform", "Trim": "trim",
}  # fmt: skip
# What Spark reads as a call although it has no brackets; sqlglot as a column.
WORDS = {
    "current_date", "current_time", "current_timestamp", "current_user", "grouping__id", "session_user", "user",
}  # fmt: skip
# Names of columns that are kept for the hint of one that is not there: it prints fewer.
_KEPT = 20


@dataclass(frozen=True, slots=True)
class Walk:
    """One reading of a query.

    Mappings keyed by a node are keyed by its identity; offsets are those of `text`. What is not plain from the names:

    `influences` is row-level lineage: the place and how. `passed_on` has, by SELECT, the declared windows of whose
    names the query that it reads has columns. `certain`: the expressions whose types are certain. `steps`: what CTEs,
    subqueries and their aliases give, by name in lower case. `uses` None: nobody asks. `unaliased`: begin and end of
    the names that give a column its name without an alias. `part_names`: of names behind brackets and the fourth dot
    (`part_name`). `timed`: the declared windows whose time a SELECT has. `domains`: correlated subqueries that group
    rows of a stream. `window_calls`: the calls that declared windows stand for, by the ids of their columns.
    `findings`: faults that the rules of streams report, beside their own.
    """

    text: str
    query: Callable[[Walk, exp.Expr, Mapping[str, Any], ColumnScope | None], OutputColumns]
    evaluate: Callable[[Walk, exp.Expr, ColumnScope], ColumnValue]
    inputs: Mapping[str, InputColumns]
    windows: Mapping[str, TimeWindow] = field(default_factory=dict)
    influences: dict[tuple[Place, str], None] = field(default_factory=dict)
    unresolved: dict[int, Unresolved] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    faults: dict[int, QueryFinding] = field(default_factory=dict)
    passed_on: dict[int, frozenset[str]] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    certain: set[int] = field(default_factory=set)
    names: dict[int, tuple[int, ColumnValue]] = field(default_factory=dict)
    steps: dict[str, OutputColumns] = field(default_factory=dict)
    selects: dict[int, OutputColumns] = field(default_factory=dict)
    uses: dict[int, NameUse] | None = None
    unaliased: dict[int, int] = field(default_factory=dict)
    refs: dict[int, NameRef] = field(default_factory=dict)
    part_names: dict[int, str] = field(default_factory=dict)
    reads: dict[int, OutputColumns] = field(default_factory=dict)
    definitions: dict[int, exp.Expr] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)
    groups: dict[int, list[GroupKey]] = field(default_factory=dict)
    plans: dict[int, LogicalPlan] = field(default_factory=dict)
    domains: list[Domain] = field(default_factory=list)
    plan_names: dict[int, PlanName] = field(default_factory=dict)
    column_expressions: dict[int, exp.Expr] = field(default_factory=dict)
    window_calls: dict[int, str] = field(default_factory=dict)
    findings: list[QueryFinding] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def renewed(self, value: ColumnValue) -> ColumnValue:
        """The value as a new column."""
        return replace(value, id=next(self.ids))

    def refer(self, node: exp.Expr, parts: Sequence[str], resolved: ResolvedName | None, scope: ColumnScope) -> None:
        """Note what a dotted name refers to; None: nothing has it. Fields behind the column are nodes of their own."""
        path = resolved.path if resolved is not None else ()
        while isinstance(node, exp.Dot) and len(parts) > 1:
            if path:
                self.part_names[id(node.expression)], path = path[-1], path[:-1]
            node, parts = node.this, parts[:-1]
        if resolved is None:
            self.refs[id(node)] = NameRef((), parts[0].lower())
            return
        name = parts[resolved.parts_used - 1].lower()
        several = len(resolved.columns) > 1
        ids = tuple(dict.fromkeys(column.id for column in resolved.columns)) if several else (resolved.columns[0].id,)
        if ids == (0,) and resolved.unknown is not None:
            ids = (resolved.unknown.setdefault(name, 0) or next(self.ids),)
            resolved.unknown[name] = ids[0]
        relation = parts[0].lower() if resolved.parts_used > 1 else ""
        self.refs[id(node)] = NameRef(ids, name, path, relation, resolved.outer)
        if resolved.outer and scope.outer is not None and len(ids) == 1:
            scope.outer.used_in_subqueries.add(ids[0])

    def value(self, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
        return self.evaluate(self, node, scope)

    def subquery(self, node: exp.Expr, scope: ColumnScope) -> OutputColumns:
        scope.used_in_subqueries = set()
        output = self.query(self, node, scope.ctes, scope)
        outer_ids = frozenset(scope.used_in_subqueries)
        self.findings.extend(misplaced_subqueries(node, correlated=bool(outer_ids)))
        self.plans[id(node)] = replace(output.plan, uses=outer_ids)
        return output

    def influence(self, places: Iterable[Place], how: str) -> None:
        """Note that these columns decide on rows, groups or their order."""
        for place in places:
            self.influences[place, how] = None

    def miss(self, missing: Missing, identifiers: list[exp.Identifier], scope: ColumnScope) -> None:
        """Note a name that nothing has, unless that is not certain."""
        first = identifiers[0].name
        if (
            scope.quiet
            or (first.startswith("_") and missing.part == 0)
            or (missing.part == 0 and first.lower() in self.windows)
            or (len(identifiers) == 1 and first.lower() in WORDS)
        ):
            return
        offset = identifiers[missing.part].meta.get("start")
        if isinstance(offset, int):
            # A result column takes the misspelled name of its column: `select f.orign .. group by f.orign`.
            candidates = [name for name in missing.candidates if name != identifiers[-1].name.lower()]
            close = difflib.get_close_matches(missing.name, candidates, n=3, cutoff=0.6)
            visible_names = sorted({name for name in candidates if not name.startswith("_")})
            self.unresolved.setdefault(
                offset, Unresolved(missing.name, tuple(close), offset, tuple(visible_names[:_KEPT]))
            )

    def correlated(self, nodes: Iterable[exp.Expr], scope: ColumnScope, where: str) -> None:
        """Report columns of the SELECT around a subquery where Spark sees those of the subquery alone."""
        if not scope.outside:
            return
        scope.outside = False
        inside = (part for node in nodes for part in node.walk(prune=lambda part: isinstance(part, exp.Query)))
        for column in inside:
            ref = self.refs.get(id(column)) if isinstance(column, exp.Column) else None
            if ref is not None and ref.outer:
                name = ".".join(identifier.name for identifier in path(column)[0])
                message = f"'{name}' is a column of the outer query, and is used {where} of the subquery"
                self.fault("subquery-place", message, "Use it in WHERE, or outside the subquery.", column)
                return

    def fault(self, code: str, message: str, hint: str, *nodes: exp.Expr) -> None:
        """Note what Spark rejects, at the first of the nodes that has a place in the text, or near it."""
        starts = (n.meta["start"] for node in nodes for n in _in_order(node) if "start" in n.meta)
        at = next(starts, None)
        if at is None:
            at = _around(nodes[0])
        self.faults.setdefault(at, QueryFinding(code, message, hint, at))

    def key_of(self, node: exp.Expr) -> str:
        """A text that is equal for the expressions of this query that are one to Spark's analyser."""
        return key_of(node, self._name_text)

    def _name_text(self, name: exp.Column | exp.Identifier) -> str:
        ref = self.refs.get(id(name))
        return ref.text if ref is not None else self.part_names.get(id(name), name.name.lower())

    def name_of(self, node: exp.Expr) -> str:
        """The name of a function as the user writes it, in lower case; empty if it is not a function."""
        if isinstance(node, exp.Anonymous):
            return node.name.lower()
        start = node.meta.get("start")
        if start is None:
            return _UNPLACED.get(type(node).__name__, "")
        return self.text[start : node.meta["end"] + 1].strip("`").lower()


def _around(node: exp.Expr) -> int:
    """The place of the first word with a place in what is around a node, such as a literal, that has none."""
    above = node.parent
    while above is not None:
        start = min((n.meta["start"] for n in above.walk() if "start" in n.meta), default=None)
        if start is not None:
            return int(start)
        above = above.parent
    return 0


def _in_order(node: exp.Expr) -> list[exp.Expr]:
    return sorted(node.walk(), key=lambda part: part.meta.get("start", -1))


def children(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions directly below, in the order in which sqlglot keeps them."""
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, exp.Expr))


def operand_types(nodes: Sequence[exp.Expr], kinds: Sequence[str | None]) -> list[str | None]:
    """The types of operands, where a whole number next to a decimal has as many digits as are written."""
    if not any(kind and kind.startswith("decimal") for kind in kinds):
        return list(kinds)
    digits = [_digits(node) for node in nodes]
    return [kind if count is None else f"decimal({count},0)" for kind, count in zip(kinds, digits, strict=True)]


def _digits(node: exp.Expr) -> int | None:
    while isinstance(node, (exp.Paren, exp.Neg)):
        node = node.this
    return len(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def path(node: exp.Expr) -> tuple[list[exp.Identifier], exp.Expr | None]:
    """The identifiers of a dotted name, and what they are applied to if that is not a column."""
    tail: list[exp.Identifier] = []
    base: exp.Expr | None = node
    while isinstance(base, exp.Dot) and isinstance(base.expression, exp.Identifier):
        tail.insert(0, base.expression)
        base = base.this
    if isinstance(base, exp.Column):
        names = (base.args.get(key) for key in ("catalog", "db", "table", "this"))
        return [*(name for name in names if isinstance(name, exp.Identifier)), *tail], None
    return tail, base
