"""What a query keeps in Spark's state, bound to its inputs: the same for every way to write the same query.

Each expression is written in the columns of the inputs, so that aliases, subqueries, CTEs and the order of a SELECT
list are gone, and the query is taken apart into blocks. Whatever is not proved to be bound rightly raises
`UnprovableError`, and such queries are compared as text.

Spark stores the aggregates of a group in the order in which SELECT, HAVING and ORDER BY name them first, and a join the
columns that are needed above it in the order of its side (both measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec
from sqlglot import exp

from engine.compile.columns import InputColumns
from engine.compile.columns.column_texts import columns_named
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.columns.plan_values import path_of
from engine.compile.nodes.facts import StateFacts, StateInput, StateWatermark
from engine.compile.sql.determinism import draws
from engine.compile.sql.same_expression import EVENT_TIME, MADE, TYPE, WINDOWS, gap_of, is_constant, key_of
from engine.compile.stateful.blocks import Block, BoundExpression, Meaning, Selected
from engine.compile.stateful.bound_expressions import (
    LostArgumentError,
    WrittenCall,
    bare,
    calls,
    conjuncts,
    has_loose,
    normal_form,
    said_beside,
    text_of,
    wrap_group_results,
    written_calls,
)
from engine.compile.streaming.check_query import bound
from engine.compile.streaming.parse_statement import parse
from engine.compile.streaming.query_plan import logical_plan as p
from engine.compile.streaming.query_plan.optimize import needed_columns
from engine.compile.types import spark_types
from engine.compile.types.builtin_functions import SYNONYMS

_Trees = dict[int, exp.Expr]
_NO_WATERMARK = StateWatermark("", 0)


class UnprovableError(ValueError):
    """The query cannot be analysed; the message has the reason."""


def meaning_of_state(facts: StateFacts) -> Meaning:
    """Take a query apart; raise UnprovableError if it has to be compared as text."""
    result = _cached_meaning(msgspec.json.encode(StateFacts(facts.sql, facts.inputs, facts.renamed)))
    if isinstance(result, str):
        raise UnprovableError(result)
    return result


# Each edit asks for both of its sides several times.
@lru_cache(maxsize=16)
def _cached_meaning(facts: bytes) -> Meaning | str:
    try:
        return _taken_apart(msgspec.json.decode(facts, type=StateFacts))
    except UnprovableError as error:
        return str(error)


def _taken_apart(facts: StateFacts) -> Meaning:
    inputs = {item.view.replace("`", "").lower(): item for item in facts.inputs}
    text = facts.sql
    tree = parse(text, synonyms=SYNONYMS).tree
    if not isinstance(tree, exp.Query):
        raise UnprovableError("the SQL is not read")
    if draws(tree) or any(clause.args.get("recursive") for clause in tree.find_all(exp.With)):
        raise UnprovableError("random values and recursion")
    relations = {name: _input(item) for name, item in inputs.items()}
    query = bound(tree, relations, text)
    plan = query.plan
    if plan is None or query.noted.findings or query.noted.domains or plan.open:
        raise UnprovableError("names are not certain")
    try:
        taker = _Taker(query, inputs, text, written_calls(text))
        block, trees = taker.block(plan, _Wanted(*[frozenset(c.id for c in plan.columns)] * 2))
        columns = tuple((facts.renamed.get(c.name, c.name), _bound_expression(trees[c.id])) for c in plan.columns)
    except (KeyError, RecursionError, LostArgumentError) as error:
        raise UnprovableError(str(error)) from error
    formats = any(node.args.get("format") is not None for node in tree.walk())
    literals = sorted(n.this for n in tree.find_all(exp.Literal) if n.is_string) if formats else []
    return Meaning(block, columns, tuple(literals), _streams(tree, inputs), tuple(taker.outer))


def _streams(tree: exp.Query, inputs: Mapping[str, StateInput]) -> tuple[str, ...]:
    streams = []
    for table in tree.find_all(exp.Table):
        item = inputs.get(".".join(part.name for part in table.parts).lower())
        if item is not None and item.stream:
            place = min(part.meta.get("start", 0) for part in table.find_all(exp.Identifier))
            streams.append((table.find_ancestor(exp.CTE) is None, place, item.name))
    order = tuple(dict.fromkeys(name for *_, name in sorted(streams)))
    clauses = list(tree.find_all(exp.With))
    if len(order) > 1 and any(clause.parent is not tree for clause in clauses):
        raise UnprovableError("a WITH inside a query of several streams")
    return order


def _input(item: StateInput) -> InputColumns:
    if item.columns is None:
        raise UnprovableError("columns are not known")
    columns = {name.lower(): (name, kind) for name, kind in item.columns}
    time = item.watermark.column if item.watermark else ""
    return InputColumns(
        item.view, tuple(columns.values()), event_time=time, streaming=item.stream, dedup=bool(item.dedup)
    )


def _bound_expression(tree: exp.Expr) -> BoundExpression:
    pairs = tree.find(exp.EQ, exp.NullSafeEQ, exp.In) is not None
    pairs = pairs and len({column.table for column in tree.find_all(exp.Column)}) > 1
    return BoundExpression(key_of(tree), text_of(tree), tuple(dict.fromkeys(key_of(c) for c in calls(tree))), pairs)


class _Wanted(NamedTuple):
    """The columns of a plan that are needed above it: `all`, and those `visible`, not only looked at by filters.

    What a filter alone looks at is dropped where it moves to; filters are compared by themselves.
    """

    all: frozenset[int]
    visible: frozenset[int]


def _needed_of_children(plan: p.LogicalPlan, columns: _Wanted) -> tuple[_Wanted, ...]:
    every, visible = (next(iter(needed_columns(plan, ids)))[1] for ids in columns)
    if isinstance(plan, p.Filter) and not isinstance(plan.node, exp.Having):
        visible = (columns.visible & frozenset(column.id for column in plan.child.columns),)
    return tuple(map(_Wanted, every, visible))


@dataclass(slots=True)
class _Taker:
    """Takes a lowered query apart."""

    query: BoundQuery
    inputs: Mapping[str, StateInput]
    sql: str
    calls: Mapping[int, WrittenCall]
    names: dict[str, int] = field(default_factory=dict)
    outer: list[Selected] = field(default_factory=list)

    def block(self, plan: p.LogicalPlan, needed: _Wanted) -> tuple[Block, _Trees]:  # noqa: PLR0911 - one a step
        """The blocks of a plan of which some columns are wanted, and the expressions of its columns."""
        while isinstance(plan, (p.With, p.Ref)):
            plan = p.in_place(plan) if isinstance(plan, p.Ref) else p.executed_children(plan)[0]
        of_children = _needed_of_children(plan, needed)
        match plan:
            case p.SourcePlan():
                return self._read(plan, needed.all)
            case p.Filter() if isinstance(plan.node, exp.Having):
                return self._having(plan, of_children[0])
            case p.Filter():
                block, trees = self.block(plan.child, of_children[0])
                bind = partial(self._bind, trees=trees)
                return _with_filter(block, map(_bound_expression, self._conditions(plan.conditions, bind))), trees
            case p.Projection():
                block, trees = self.block(plan.child, of_children[0])
                return block, self._projected(plan, block, trees, needed.all)
            case p.Aggregate():
                return self._group(plan, needed, [])
            case p.Distinct() | p.Limit() | p.SortPlan():
                return self._above(plan, of_children[0])
            case p.Join():
                return self._join(plan, of_children)
            case p.UnionPlan():
                return self._union(plan, of_children)
        raise UnprovableError(type(plan).__name__)

    def _read(self, plan: p.SourcePlan, needed: frozenset[int]) -> tuple[Block, _Trees]:
        if plan.open or not plan.name:
            raise UnprovableError("an unknown relation")
        facts = self.inputs[plan.name]
        name = facts.name
        number = self.names[name] = self.names.get(name, 0) + 1
        relation = self._short_name(name) + (f"#{number}" if number > 1 else "")
        mark = facts.watermark or _NO_WATERMARK
        used_names = columns_named(mark.expression) | {one.lower() for one in facts.dedup}
        # Of JSON, `A` and `a` are two columns.
        written = {n.lower(): n for n, _ in facts.columns or ()} if facts.exact else {}
        # A column of an upstream table that has another name now is the same column.
        now = {**{c.name: written.get(c.name, c.name) for c in plan.columns}, **facts.renamed}
        columns = [(now[c.name], c.type) for c in plan.columns if c.id in needed or c.name in used_names]
        block = Block(
            "read",
            plan.streaming,
            name=name,
            columns=tuple(sorted(columns)),
            watermark=mark.expression or now.get(mark.column, mark.column),
            delay=int(mark.delay),
            dedup=tuple(sorted(now.get(column.lower(), column.lower()) for column in facts.dedup)),
        )
        return block, {c.id: _read_column(c, now[c.name], relation, mark) for c in plan.columns}

    def _short_name(self, name: str) -> str:
        """The last part of the name of an input, where no other input has the same."""
        short = name.rsplit(".", 1)[-1]
        other_inputs = {item.name for item in self.inputs.values()} - {name}
        return name if any(other.rsplit(".", 1)[-1] == short for other in other_inputs) else short

    def _projected(self, plan: p.Projection, block: Block, trees: _Trees, needed: frozenset[int]) -> _Trees:
        own_trees: _Trees = dict(trees)
        for column in plan.columns:
            if column.id in trees or column.id not in needed:
                continue
            if column.id in self.query.noted.column_expressions:
                own_trees[column.id] = self._bind(self.query.noted.column_expressions[column.id], trees)
            elif column.copy_of in trees:
                own_trees[column.id] = trees[column.copy_of]
            else:
                (below,) = dict(plan.sources)[column.id]
                own_trees[column.id] = trees[below]
        if any(tree.find(exp.Window) is not None for tree in own_trees.values()):
            raise UnprovableError("OVER")
        if block.kind == "group" and isinstance(plan.node, exp.Select) and plan.node is not _select(block):
            self.outer.append(self._selected(plan.node, [own_trees.get(c.id) for c in plan.columns], ()))
        return own_trees

    def _having(self, plan: p.Filter, needed: _Wanted) -> tuple[Block, _Trees]:
        if not isinstance(plan.child, p.Aggregate):
            raise UnprovableError("HAVING over something else")
        condition = plan.node.this.unnest()
        parts = [part.unnest() for part in condition.flatten()] if isinstance(condition, exp.And) else [condition]
        used_ids = frozenset(self.query.noted.plan_names[id(c)].column.id for c in condition.find_all(exp.Column))
        return self._group(plan.child, _Wanted(needed.all | used_ids, needed.visible | used_ids), parts)

    def _group(self, plan: p.Aggregate, needed: _Wanted, having: Sequence[exp.Expr]) -> tuple[Block, _Trees]:
        clause = plan.node
        if isinstance(clause, exp.Group) and any(clause.args.get(k) for k in ("rollup", "cube", "grouping_sets")):
            raise UnprovableError("grouping sets")
        below, trees = self.block(plan.child, _needed_of_children(plan, needed)[0])
        select = clause if isinstance(clause, exp.Select) else clause.parent
        if not isinstance(select, exp.Select):
            raise UnprovableError("a GROUP BY without SELECT")
        keys = _grouping_keys([self._key(key, trees) for key in plan.keys])
        grouped = {key_of(key) for key in keys}
        group_trees = self._group_trees(plan, needed, trees, grouped)
        bound = (self._bind(part, trees) for part in having)
        conditions = [wrap_group_results(part, grouped) for tree in bound for part in conjuncts(tree)]
        if any(has_loose(tree) for tree in conditions):
            raise UnprovableError("a column that is not grouped by")
        order = select.args.get("order")
        sorted_by = order.expressions if order is not None else ()
        ordered = [wrap_group_results(self._bind(o.this, trees), grouped) for o in sorted_by]
        items = [group_trees.get(column.id) for column in plan.columns]
        aggregates = {key_of(a): a for tree in (*items, *conditions, *ordered) for a in _calls(tree)}
        rest = tuple(dict.fromkeys(key_of(a) for tree in (*conditions, *ordered) for a in _calls(tree)))
        block = Block(
            "group",
            plan.streaming,
            children=(below,),
            keys=tuple(_bound_expression(bare(key)) for key in keys),
            aggregates=tuple(_bound_expression(bare(tree)) for tree in aggregates.values()),
            event_time=any(_has_event_time(key) for key in plan.keys),
            gap=next((gap for key in keys if (gap := gap_of(key))), ""),
            size=_tumbling(keys),
            select=self._selected(select, items, rest),
        )
        return _with_filter(block, map(_bound_expression, conditions)), group_trees

    def _group_trees(self, plan: p.Aggregate, needed: _Wanted, trees: _Trees, grouped: set[str]) -> _Trees:
        """The columns of a GROUP BY that are needed above it, and its keys, as results of that step."""
        group_trees: _Trees = {}
        for column in plan.columns:
            if column.id in needed.all:
                tree = (
                    trees[column.id]
                    if column.id in trees
                    else self._bind(self.query.noted.column_expressions[column.id], trees)
                )
                group_trees[column.id] = wrap_group_results(tree, grouped)
                if has_loose(group_trees[column.id]):
                    raise UnprovableError("a column that is not grouped by")
        for key in plan.keys:
            if key.column is not None and key.column.id in trees:
                group_trees.setdefault(key.column.id, wrap_group_results(trees[key.column.id], grouped))
        return group_trees

    def _selected(self, select: exp.Select, items: Sequence[exp.Expr | None], rest: tuple[str, ...]) -> Selected:
        aggregate_keys = tuple(tuple(dict.fromkeys(key_of(a) for a in _calls(tree))) for tree in items)
        return Selected(select, aggregate_keys, rest, tuple(self._needs(select)))

    def _needs(self, select: exp.Select) -> Iterator[frozenset[int]]:
        """For each item of a SELECT those whose aliases it uses."""
        aliases = [item.alias.lower() for item in select.expressions]
        for number, item in enumerate(select.expressions):
            named_columns = (
                (column, self.query.noted.plan_names.get(id(column))) for column in item.find_all(exp.Column)
            )
            names = {column.parts[0].name.lower() for column, one in named_columns if one is not None and one.alias}
            # Where two have a name, which one is meant is not looked for: it stays behind both.
            yield frozenset(i for i in range(number) if aliases[i] in names)

    def _key(self, key: p.Key, trees: _Trees) -> exp.Expr:
        if key.column is not None and key.column.id in trees:
            return trees[key.column.id]
        return self._bind(key.node, trees)

    def _above(self, plan: p.LogicalPlan, needed: _Wanted) -> tuple[Block, _Trees]:
        below, trees = self.block(plan.child, needed)
        if isinstance(plan, p.Limit):
            limit = plan.node.args.get("expression")
            if not isinstance(plan.node, exp.Limit) or not isinstance(limit, exp.Literal):
                raise UnprovableError("a limit that is not a number")
            return Block("limit", plan.streaming, children=(below,), on=(_bound_expression(limit),)), trees
        if isinstance(plan, p.SortPlan):
            ordered = [(o, self._bind(o.this, trees)) for o in plan.node.expressions if isinstance(o, exp.Ordered)]
            on = tuple(BoundExpression(f"{key_of(t)} {o.args.get('desc')} {o.args.get('nulls_first')}", text_of(t))
                       for o, t in ordered)  # fmt: skip
            return Block("sort", plan.streaming, children=(below,), on=on), trees
        own = [trees[column.id] for column in plan.columns]
        event_time = any(column.watermark for column in plan.columns)
        key_trees = {column.id: exp.Paren(this=trees[column.id].copy()) for column in plan.columns}
        keys = tuple(map(_bound_expression, own))
        return Block("distinct", plan.streaming, children=(below,), keys=keys, event_time=event_time), {**key_trees}

    def _join(self, plan: p.Join, of_children: tuple[_Wanted, ...]) -> tuple[Block, _Trees]:
        if plan.lateral:
            raise UnprovableError("a lateral join")
        sides = [self.block(child, ids) for child, ids in zip(plan.children, of_children, strict=True)]
        trees = {number: _of_side(tree) for _, side_trees in sides for number, tree in side_trees.items()}
        on = tuple(map(_bound_expression, self._conditions(plan.conditions, partial(self._bind, trees=trees))))
        carried: tuple[tuple[BoundExpression, ...], ...] = ()
        if all(child.streaming for child in plan.children):
            pairs = zip(plan.children, of_children, strict=True)
            carried = tuple(
                tuple(_bound_expression(trees[c.id]) for c in child.columns if c.id in ids.visible)
                for child, ids in pairs
            )
        children = tuple(block for block, _ in sides)
        return Block("join", plan.streaming, children=children, name=plan.kind, on=on, carried=carried), trees

    def _union(self, plan: p.UnionPlan, of_children: tuple[_Wanted, ...]) -> tuple[Block, _Trees]:
        sides = [self.block(child, ids) for child, ids in zip(plan.children, of_children, strict=True)]
        union_trees: _Trees = {}
        pairs = zip(plan.columns, *(child.columns for child in plan.children), strict=True)
        for column, *below in pairs:
            parts = [trees[c.id] for (_, trees), c in zip(sides, below, strict=True) if c.id in trees]
            if len(parts) == len(sides):
                union_trees[column.id] = exp.Paren(this=exp.Tuple(expressions=[part.copy() for part in parts]))
        return Block("union", plan.streaming, children=tuple(block for block, _ in sides)), union_trees

    def _conditions(self, conditions: tuple[p.Condition, ...], bind: Any) -> list[exp.Expr]:
        bound: dict[int, exp.Expr] = {}
        for condition in conditions:
            left_side, right_side = condition.left_side, condition.right_side
            if isinstance(condition.node, (exp.Identifier, exp.Join)):
                if left_side is None or right_side is None or left_side.column is None or right_side.column is None:
                    raise UnprovableError("a condition without columns")
                trees = bind.keywords["trees"]
                pair = [trees[column.id].copy() for column in (left_side.column, right_side.column)]
                bound[len(bound)] = exp.EQ(this=pair[0], expression=pair[1])
            else:
                bound.setdefault(id(condition.node), bind(condition.node))
        return [part for tree in bound.values() for part in conjuncts(tree)]

    def _bind(self, node: exp.Expr, trees: _Trees) -> exp.Expr:
        """An expression in the columns of the inputs; brackets are gone, those that are there say where a step ends."""
        if isinstance(node, exp.Paren):
            return self._bind(node.this, trees)
        if isinstance(node, exp.Query):
            raise UnprovableError("a subquery in an expression")
        if node.is_star and not isinstance(node.parent, exp.Count):
            raise UnprovableError("a star in an expression")
        if isinstance(node, exp.Column):
            ref = self.query.noted.refs.get(id(node))
            if ref is not None and ref.is_parameter:
                return node.copy()
            return self._column_tree(self.query.noted.plan_names[id(node)], trees)
        if isinstance(node, exp.Struct):
            aliased = self.sql[node.meta["start"] :].lower().startswith("struct") if "start" in node.meta else True
            return exp.Struct(expressions=[self._field(p, trees, aliased=aliased) for p in node.expressions])
        return normal_form(self._bound_call(node, trees))

    def _bound_call(self, node: exp.Expr, trees: _Trees) -> exp.Expr:
        """A call of bound arguments; what sqlglot's class does not say of it is said beside them."""
        call = node.__class__(**{key: self._part(value, trees) for key, value in node.args.items()})
        if isinstance(call, (exp.Anonymous, exp.Var)) and isinstance(call.this, str):
            call.set("this", call.this.lower())
        for key, argument in said_beside(node, self.calls, self.sql).items():
            call.set(key, argument)
        return call

    def _field(self, part: exp.Expr, trees: _Trees, *, aliased: bool) -> exp.Expr:
        """A field of a struct with the name that it has where it is written."""
        if isinstance(part, exp.PropertyEQ):
            if aliased and "start" not in part.this.meta:
                # sqlglot reads the comparison of struct(a = b) as a name.
                raise UnprovableError("a field without a name")
            name, value = part.this.name, part.expression
        elif isinstance(part, (exp.Alias, exp.Column)):
            name, value = part.alias_or_name, part.unalias()
        else:
            raise UnprovableError("a field without a name")
        return exp.PropertyEQ(this=exp.to_identifier(name), expression=self._bind(value, trees))

    def _part(self, value: Any, trees: _Trees) -> Any:
        if isinstance(value, list):
            return [self._part(part, trees) for part in value]
        if isinstance(value, exp.Identifier):
            return exp.to_identifier(value.name)
        if isinstance(value, exp.DataType):
            return value.copy()
        return self._bind(value, trees) if isinstance(value, exp.Expr) else value

    def _column_tree(self, plan_name: p.PlanName, trees: _Trees) -> exp.Expr:
        number = plan_name.column.id
        tree = (
            trees[number].copy() if number in trees else self._bind(self.query.noted.column_expressions[number], trees)
        )
        for name in path_of(plan_name, certain=True):
            tree = exp.Dot(this=tree, expression=exp.to_identifier(name))
        return tree


def _read_column(column: p.PlanColumn, name: str, relation: str, mark: StateWatermark) -> exp.Expr:
    """A column of an input; that of a watermark which is computed there is what makes it, whatever its name."""
    column_tree = exp.column(name, table=relation)
    column_tree.meta[TYPE] = spark_types.normal(column.type)
    if column.name == mark.column:
        column_tree.meta[EVENT_TIME] = True
        if mark.expression:
            column_tree.this.meta[MADE] = mark.expression
    return column_tree


def _with_filter(block: Block, conditions: Iterable[BoundExpression]) -> Block:
    where = {item.key: item for item in (*block.where, *conditions)}
    return replace(block, where=tuple(where.values()))


def _of_side(tree: exp.Expr) -> exp.Expr:
    """A column of one side of a join; what is computed below a join is not what is computed above it."""
    return tree if isinstance(tree, (exp.Column, exp.Paren)) else exp.Paren(this=tree.copy())


def _grouping_keys(keys: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The keys by which Spark groups: without literals, as long as there is another key, and without repetitions."""
    varying = [key for key in keys if not is_constant(key)]
    if keys and not varying:
        return [exp.Literal.number(0)]
    key_by_text: dict[str, exp.Expr] = {}
    for key in varying:
        key_by_text.setdefault(key_of(key), key)
    return list(key_by_text.values())


def _tumbling(keys: Iterable[exp.Expr]) -> str:
    """The length of the one window among keys, if it is a tumbling one over an event time; else empty."""
    windows = [key for key in keys if any(call.name.lower() in WINDOWS for call in key.find_all(exp.Anonymous))]
    call = windows[0] if len(windows) == 1 else None
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "window" or len(call.expressions) != 2:  # noqa: PLR2004
        return ""
    time, size = call.expressions
    return str(size.this) if isinstance(size, exp.Literal) and EVENT_TIME in time.meta else ""


def _select(block: Block) -> exp.Select | None:
    return block.select.node if block.select is not None else None


def _has_event_time(key: p.Key) -> bool:
    return key.column is not None and key.column.watermark


def _calls(tree: exp.Expr | None) -> list[exp.Expr]:
    return [] if tree is None else calls(tree)
