"""Lowering a parsed query into the algebra of `plan`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns, ScopeColumn
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.lowering.lower_conditions import conditions, keeps_null
from engine.compile.streaming.lowering.lower_expressions import ExpressionReader, PlanValue
from engine.compile.streaming.lowering.lower_from import lower_from
from engine.compile.streaming.lowering.lower_grouping import GroupedItem, group, read_order, read_windows
from engine.compile.streaming.lowering.lower_subqueries import misplaced, over_union
from engine.compile.streaming.lowering.lowering_context import Env
from engine.compile.streaming.lowering.plan_scope import Found, PlanScope
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Distinct,
    Except,
    Filter,
    Generate,
    Intersect,
    Limit,
    LogicalPlan,
    Offset,
    Over,
    PlanColumn,
    Projection,
    Ref,
    SortPlan,
    SourcePlan,
    UnionPlan,
    With,
    renamed,
)
from engine.compile.streaming.query_plan.stream_facts import StreamFacts, error

_SORTS = ("order", "sort", "cluster")


@dataclass(frozen=True, slots=True)
class Domain:
    """A correlated subquery that Spark computes by grouping rows of a stream by these columns."""

    node: exp.Expr
    columns: tuple[PlanColumn, ...]


@dataclass(slots=True)
class Builder:
    """Lowers queries.

    Attributes:
        bound: what the names in them refer to, and the types of their expressions.
        relations: what they may read, by name.
        found: faults of the SQL itself.
        domains: correlated subqueries that group rows of a stream.
        names: what a column of the SQL refers to, by the identity of the node.
        made: the expression that makes a column, by the column's id.
    """

    bound: BoundQuery
    relations: Mapping[str, StreamFacts]
    found: list[QueryFinding] = field(default_factory=list)
    domains: list[Domain] = field(default_factory=list)
    names: dict[int, Found] = field(default_factory=dict)
    made: dict[int, exp.Expr] = field(default_factory=dict)
    _depth: int = 0

    def number(self) -> int:
        """A new id."""
        return next(self.bound.noted.ids)

    def report(self, finding: QueryFinding) -> None:
        """Note a fault of the SQL itself."""
        self.found.append(finding)

    def scope(self, outer: PlanScope | None, *plans: LogicalPlan) -> PlanScope:
        """The columns of plans, for the names in expressions over them."""
        columns = {column.id: column for plan in plans for column in plan.columns}
        return PlanScope(columns, self.bound.noted.refs, outer, frozenset(columns))

    def stage(self, node: exp.Expr, number: int) -> OutputColumns | None:
        """The columns of an item of FROM as it is read (0), under an alias (1), behind its pivots."""
        stages = self.bound.noted.reads.get(id(node), ())
        return stages[number] if number < len(stages) else None

    def numbered(self, columns: Sequence[PlanColumn], output: OutputColumns | None) -> tuple[PlanColumn, ...]:
        """The columns as new ones, with the ids that names refer to."""
        theirs = output.columns if output is not None else []
        if len(theirs) == len(columns):
            return tuple(renamed(c, t.value.id) for c, t in zip(columns, theirs, strict=True))
        ids = {column.name.lower(): column.value.id for column in theirs}
        return tuple(renamed(c, ids.pop(c.name, 0) or self.number()) for c in columns)

    def values(self, scope: PlanScope, env: Env) -> ExpressionReader:
        """A reader of the expressions of one step."""
        own = dataclasses.replace(scope, columns=dict(scope.columns), aliases=set(scope.aliases))
        lower, quiet = partial(self._subquery, env), self._depth > 0
        return ExpressionReader(
            own, lower, self.report, self.bound.noted.types, self.names, self.made, self.number, quiet=quiet
        )

    def domain(self, node: exp.Expr, plan: LogicalPlan, refs: frozenset[int]) -> None:
        """Note a subquery that Spark computes by grouping the rows of a plan."""
        self.domains.append(Domain(node, tuple(c for c in plan.columns if c.id in refs)))

    def widened(self, plan: LogicalPlan, values: ExpressionReader) -> LogicalPlan:
        """A plan with the columns that the windows of a step make."""
        if plan.streaming:
            for node, refs in values.step.domains:
                self.domain(node, plan, refs)
        if not values.step.made:
            return plan
        made = [column for column, _ in values.step.made]
        own = {column.id for column in made}
        sources = [(c.id, refs) for c, refs in values.step.made]
        sources += [(c.id, frozenset({c.id})) for c in plan.columns]
        flat = dict(sources)
        for number in own:
            flat[number] = NO_IDS.union(*(flat[r] if r in own and r != number else {r} for r in flat[number]))
        columns = (*made, *plan.columns)
        return Projection(
            node=plan.node, columns=columns, children=(plan,), sources=tuple(flat.items()), open=plan.open
        )

    def _subquery(self, env: Env, node: exp.Query, scope: PlanScope) -> LogicalPlan:
        before, scope.hits = scope.hits, set()
        self._depth += 1
        plan = self.query(node, env, scope)
        self._depth -= 1
        used = frozenset(scope.hits)
        scope.hits = before | used
        self.found.extend(misplaced(node, correlated=bool(used)))
        return replace(plan, uses=used)

    def query(self, node: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
        """Lower a query with its CTEs and its ORDER BY, LIMIT and OFFSET."""
        clause = node.args.get("with_")
        definitions: list[LogicalPlan] = []
        if clause is not None:
            env = self._ctes(clause, env, outer, definitions)
        if isinstance(node, exp.Select):
            plan = self._select(node, env, outer)
        elif isinstance(node, exp.SetOperation):
            plan = self._ended(self._set(node, env, outer), node)
        elif isinstance(node, exp.Subquery):
            plan = self._ended(self.query(node.this, env, outer), node)
        else:
            plan = SourcePlan(node=node, open=True)
        if not definitions:
            return plan
        return With(node=node, columns=plan.columns, children=(*definitions, plan), open=plan.open)

    def _ctes(self, clause: exp.Expr, env: Env, outer: PlanScope | None, definitions: list[LogicalPlan]) -> Env:
        ctes = dict(env)
        for cte in clause.expressions:
            name = cte.alias.lower()
            recursive = clause.args.get("recursive") and any(
                t.name.lower() == name for t in cte.this.find_all(exp.Table)
            )
            plan = self._recursive(cte, ctes, outer) if recursive else self.query(cte.this, ctes, outer)
            plan = self._renamed(plan, cte)
            definitions.append(plan)
            ctes[name] = Ref(node=cte, columns=plan.columns, open=plan.open, streaming=plan.streaming, definition=plan)
        return ctes

    def _recursive(self, cte: exp.Expr, env: Env, outer: PlanScope | None) -> LogicalPlan:
        """A CTE that reads itself: first as if that were a table, to see whether it streams."""
        name, before = cte.alias.lower(), len(self.found)
        itself = SourcePlan(node=cte, name=name, open=True)
        plan = self.query(cte.this, {**env, name: itself}, outer)
        if not plan.streaming:
            return plan
        del self.found[before:]
        message = f"the recursive CTE '{cte.alias}' cannot read a stream"
        self.report(error("recursive-cte-on-stream", message, "Remove its input from 'streams:'.", cte))
        return self.query(cte.this, {**env, name: replace(itself, streaming=True)}, outer)

    def _renamed(self, plan: LogicalPlan, named: exp.Expr) -> LogicalPlan:
        names = [name.lower() for name in named.alias_column_names]
        if not names or plan.open or len(names) != len(plan.columns):
            return plan
        columns = tuple(renamed(c, self.number(), n) for c, n in zip(plan.columns, names, strict=True))
        sources = tuple((new.id, frozenset({old.id})) for new, old in zip(columns, plan.columns, strict=True))
        return Projection(node=named, columns=columns, children=(plan,), sources=sources)

    def _set(self, node: exp.SetOperation, env: Env, outer: PlanScope | None) -> LogicalPlan:
        left, right = self.query(node.left, env, outer), self.query(node.right, env, outer)
        columns, is_open = left.columns, left.open or right.open
        sides = (left, right)
        if not isinstance(node, exp.Union):
            made = Except if isinstance(node, exp.Except) else Intersect
            return made(node=node, columns=columns, children=sides, open=is_open)
        columns = self.numbered(columns, self.stage(node, 0))
        plan: LogicalPlan = UnionPlan(node=node, columns=columns, children=sides, open=is_open)
        if node.args.get("distinct"):
            plan = Distinct(node=node, columns=columns, children=(plan,), open=is_open)
        return plan

    def _ended(self, plan: LogicalPlan, node: exp.Expr) -> LogicalPlan:
        """ORDER BY, LIMIT, OFFSET, in the order in which Spark applies them."""
        for name in _SORTS:
            if node.args.get(name) is not None:
                plan = SortPlan(node=node.args[name], columns=plan.columns, children=(plan,), open=plan.open)
        if node.args.get("offset") is not None:
            plan = Offset(node=node.args["offset"], columns=plan.columns, children=(plan,), open=plan.open)
        limit = node.args.get("limit")
        if limit is not None and not _is_all(limit):
            plan = Limit(node=limit, columns=plan.columns, children=(plan,), open=plan.open)
        return plan

    def _select(self, node: exp.Select, env: Env, outer: PlanScope | None) -> LogicalPlan:
        plan = lower_from(self, node, env, outer)
        scope = self.scope(outer, plan)
        plan = self._where(plan, node, scope, env)
        if any(isinstance(e, exp.QueryTransform) for e in node.expressions):
            return self._ended(Generate(node=node, children=(plan,), open=True, uses=_all(plan)), node)
        values = self.values(scope, env)
        read_windows(node, values)
        items = list(self._items(node, values))
        grouped = node.args.get("group") is not None or node.args.get("having") is not None or values.step.aggregates
        if grouped:
            plan = group(self, plan, node, items, values)
        else:
            read_order(node, values)
            plan = self._project(plan, node, items, values)
        if node.args.get("qualify") is not None:
            message = "Spark 4.1 has no QUALIFY, and no function with OVER on a stream"
            hint = "Aggregate by the key and take max_by(struct(..), struct(<order columns>))."
            self.report(error("qualify-not-supported", message, hint, node.args["qualify"]))
        if node.args.get("distinct") is not None:
            plan = Distinct(node=node, columns=plan.columns, children=(plan,), open=plan.open)
        return self._ended(plan, node)

    def _where(self, plan: LogicalPlan, node: exp.Select, scope: PlanScope, env: Env) -> LogicalPlan:
        where = node.args.get("where")
        if where is None:
            return plan
        values = self.values(scope, env)
        terms = conditions(where.this, values)
        plan = self.widened(plan, values)
        return Filter(node=where, columns=plan.columns, children=(plan,), conditions=terms, open=plan.open)

    def _items(self, node: exp.Select, values: ExpressionReader) -> Iterator[GroupedItem]:
        """The columns of a SELECT, `*` written out. A later one may use the name of an earlier one."""
        output = self.bound.noted.selects.get(id(node))
        given: dict[int, list[ScopeColumn | None]] = {}
        for one in output.columns if output is not None else ():
            given.setdefault(one.item, []).append(one)
        for number, item in enumerate(node.expressions):
            if item.is_star and not isinstance(item, exp.Alias) and isinstance(item, (exp.Star, exp.Column)):
                yield from self._star(item, filter(None, given.get(number, [])), values)
                continue
            before = len(values.step.aggregates)
            value = values.of(item)
            for column in given.get(number, [None]):
                made = self._column(item, value, column)
                if value.column is None or value.column.id != made.id:
                    self.made[made.id] = item.unalias()
                if isinstance(item, exp.Alias):
                    values.scope.columns[made.id] = made
                    values.scope.aliases.add(made.id)
                yield GroupedItem(item, value, made, aggregates=len(values.step.aggregates) > before)

    def _star(self, item: exp.Expr, given: Iterable[ScopeColumn], values: ExpressionReader) -> Iterator[GroupedItem]:
        star = item.this if isinstance(item, exp.Column) else item
        assigned = {alias.alias.lower(): alias for alias in star.args.get("replace") or ()}
        for place in [*(star.args.get("except_") or ()), *assigned.values()]:
            ref = self.bound.noted.refs.get(id(place))
            if ref is not None and len(ref.ids) > 1:
                hint = "Give one of them another name where they are selected."
                at = place.args["alias"] if isinstance(place, exp.Alias) else place
                self.report(error("ambiguous-column", f"two inputs have a column '{ref.name}'", hint, at))
        for one in given:
            column, replaced = values.scope.column(one.value.id), assigned.get(one.name.lower())
            if replaced is not None:
                value = values.of(replaced)
                column = self._column(replaced, value, one)
                self.made[column.id] = replaced.unalias()
                yield GroupedItem(replaced, value, column)
                continue
            if column is None:
                # A field of a struct.
                column = PlanColumn(one.value.id, one.name.lower(), one.value.type or "")
            value = PlanValue(column, column, frozenset({column.id}), column.type, column.fields, lost=column.lost)
            yield GroupedItem(item, value, column)

    def _column(self, item: exp.Expr, value: PlanValue, given: ScopeColumn | None) -> PlanColumn:
        number = given.value.id if given is not None else self.number()
        if value.column is not None and not isinstance(item, exp.Alias):
            return value.column if value.column.id == number else renamed(value.column, number)
        name = item.alias.lower() if isinstance(item, exp.Alias) else _name(item)
        if given is not None and isinstance(item, exp.Aliases):
            name = given.name.lower()
        base = value.inherits or PlanColumn(0, "", fields=value.fields, lost=value.lost)
        same = value.column.id if value.column is not None else 0
        return replace(base, id=number, name=name, type=value.type or base.type, known=True, copy_of=same)

    def _project(
        self, plan: LogicalPlan, node: exp.Select, items: list[GroupedItem], values: ExpressionReader
    ) -> LogicalPlan:
        plan = self.widened(plan, values)
        if values.step.correlated:
            self.found.extend(over_union(plan, node, values.step.correlated))
        if values.step.generates:
            plan = Generate(node=node, columns=plan.columns, children=(plan,), open=plan.open)
        if values.step.over:
            uses = NO_IDS.union(*(values.of(call).refs for call in values.step.over))
            calls = tuple(values.step.over)
            plan = Over(node=calls[0], columns=plan.columns, children=(plan,), uses=uses, open=plan.open, calls=calls)
        return project(plan, node, items)


def project(plan: LogicalPlan, node: exp.Select, items: list[GroupedItem]) -> LogicalPlan:
    """The SELECT list over a plan."""
    own = {c.id for c in plan.columns}
    aliases: dict[int, frozenset[int]] = {}
    valued: set[int] = set()
    for item in items:
        if item.column.id not in own and (keeps_null(item.node) or not valued.isdisjoint(item.value.refs)):
            valued.add(item.column.id)
        refs = NO_IDS.union(*(aliases.get(r, frozenset({r})) for r in item.value.refs))
        aliases[item.column.id] = refs if item.column.id not in own else frozenset({item.column.id})
    columns = tuple(item.column for item in items)
    is_open = (plan.open and any(i.node.is_star for i in items)) or any(not c.name for c in columns)
    is_open = is_open or (not items and plan.open) or (plan.open and any(e.is_star for e in node.expressions))
    made = tuple(aliases.items())
    return Projection(
        node=node, columns=columns, children=(plan,), sources=made, keeps_null=frozenset(valued), open=is_open
    )


def _all(plan: LogicalPlan) -> frozenset[int]:
    return frozenset(c.id for c in plan.columns)


def _name(item: exp.Expr) -> str:
    """The name of an expression without alias, if it is known."""
    if isinstance(item, exp.Dot):
        return str(item.expression.name.lower())
    return item.name.lower() if isinstance(item, exp.Column) else ""


def _is_all(limit: exp.Expr) -> bool:
    value = limit.args.get("expression")
    return isinstance(value, (exp.Column, exp.Var)) and value.name.lower() == "all"
