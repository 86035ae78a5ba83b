"""What FROM reads: inputs, CTEs, subqueries, joins, lateral views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as with_fields
from sqlglot import exp

from engine.compile.columns import function_calls, name_uses, pivot_columns, type_mismatch, window_lengths
from engine.compile.columns.column_scope import (
    NO_PLAN,
    ColumnScope,
    ColumnValue,
    Missing,
    OutputColumns,
    ScopeColumn,
    ScopeRelation,
    index,
    origins,
    possible_column,
)
from engine.compile.columns.column_texts import expression
from engine.compile.columns.expressions import note_filter
from engine.compile.columns.from_plan import (
    Pair,
    join_kind,
    join_plan,
    lateral_view,
    plan_columns,
    sample_plan,
    source_plan,
    under_names,
    with_ids,
)
from engine.compile.columns.name_uses import UseKind
from engine.compile.columns.walk import Walk
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.sql.query_nodes import holds_relations
from engine.compile.streaming.query_plan.logical_plan import MAX_COLUMNS, Ref, SourcePlan, too_many_columns
from engine.compile.streaming.query_plan.stream_facts import error
from engine.compile.types import spark_types
from engine.compile.types.builtin_functions import BUILTIN
from engine.compile.types.widening import wider_type, widest_type

UNKNOWN = OutputColumns([], open=True)
LOST = OutputColumns([], open=True, unknown_relation=True)
_PLACEHOLDER = "@"
_CONSTANTS = "Select it from the table: (select x union all select y)."


@dataclass(slots=True)
class Cte:
    """A query under a name, read when it is first used; in itself it is its first half (a recursive one)."""

    node: exp.Expr
    ctes: Mapping[str, Cte]
    outer: ColumnScope | None
    output: OutputColumns | None = None
    busy: bool = False
    recursive: bool = False
    streaming: bool = False


def with_ctes(node: exp.Expr, ctes: Mapping[str, Cte], outer: ColumnScope | None) -> Mapping[str, Cte]:
    """The CTEs that a query sees: its own before those around it, each one those before it."""
    clause = node.args.get("with_")
    if clause is None:
        return ctes
    extended = dict(ctes)
    recursive = clause.args.get("recursive")
    for cte in clause.expressions:
        entry = Cte(cte, dict(extended), outer)
        if recursive:
            entry.ctes = {**extended, cte.alias.lower(): entry}
        extended[cte.alias.lower()] = entry
    return extended


def cte_output(walk: Walk, cte: Cte) -> OutputColumns:
    if cte.output is not None:
        return cte.output
    body = cte.node.this
    if cte.busy:
        if not isinstance(body, exp.SetOperation):
            return UNKNOWN
        body = body.this
    cte.busy = True
    alias = cte.node.args.get("alias")
    name_uses.note_alias(walk.uses, alias.this if isinstance(alias, exp.TableAlias) else alias, UseKind.CTE)
    before = len(walk.findings)
    output = with_alias_names(walk, walk.query(walk, body, cte.ctes, cte.outer), alias)
    if body is not cte.node.this:
        return output
    if cte.recursive and output.plan.streaming:
        # Once more, as what it reads of itself streams, too.
        del walk.findings[before:]
        message = f"the recursive CTE '{cte.node.alias}' cannot read a stream"
        walk.findings.append(error("recursive-cte-on-stream", message, "Remove its input from 'streams:'.", cte.node))
        cte.streaming = True
        output = with_alias_names(walk, walk.query(walk, body, cte.ctes, cte.outer), alias)
    cte.output = walk.steps[cte.node.alias.lower()] = output
    return output


def _reference(walk: Walk, node: exp.Expr, cte: Cte) -> OutputColumns:
    output, name = with_new_ids(walk, cte_output(walk, cte)), cte.node.alias.lower()
    if cte.output is None:
        cte.recursive = True
        output.plan = SourcePlan(node=cte.node, name=name, open=True, streaming=cte.streaming)
        return output
    plan = cte.output.plan
    columns = with_ids(walk, plan.columns, output)
    output.plan = Ref(node=node, columns=columns, open=plan.open, streaming=plan.streaming, definition=plan)
    return output


def read_unread_ctes(walk: Walk, node: exp.Expr, ctes: Mapping[str, Any]) -> None:
    """Read the CTEs of a query that nothing has read: Spark analyses them, too. They have no part in its lineage."""
    for cte in node.args["with_"].expressions:
        entry = ctes.get(cte.alias.lower())
        if isinstance(entry, Cte) and entry.node is cte and entry.output is None:
            cte_output(replace(walk, influences={}, reasons={}), entry)


def with_alias_names(walk: Walk, output: OutputColumns, alias: exp.Expr | None) -> OutputColumns:
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not names or alias is None:
        return output
    window_lengths.check_names(walk, names, output)
    for identifier in names:
        name_uses.note_alias(walk.uses, identifier, UseKind.COLUMN)
    values = [column.value for column in output.columns]
    is_complete = not output.open and len(names) == len(output.columns)
    if not is_complete:
        values = [ColumnValue(None) for _ in names]
    columns = [_alias_column(walk, i, v) for i, v in zip(names, values, strict=True)]
    plan = under_names(output.plan, alias, output.columns, columns) if is_complete else output.plan
    return OutputColumns(columns, plan=plan)


def _alias_column(walk: Walk, identifier: exp.Identifier, value: ColumnValue) -> ScopeColumn:
    renamed_value = with_fields(value, named_at=name_uses.place_of(identifier), id=next(walk.ids))
    return ScopeColumn(identifier.name, renamed_value)


def with_new_ids(walk: Walk, output: OutputColumns) -> OutputColumns:
    columns = [with_fields(column, value=walk.renewed(column.value)) for column in output.columns]
    return replace(output, columns=columns)


def read_from(walk: Walk, select: exp.Select, scope: ColumnScope) -> None:
    start = select.args.get("from_")
    scope.plan = SourcePlan(node=select)
    if start is not None:
        item = _item(walk, start.this, scope)
        _add_item(scope, item)
        scope.plan = item.plan
    for join in select.args.get("joins") or ():
        _join(walk, join, scope)
    for lateral in select.args.get("laterals") or ():
        scope.outside = False
        item = _item(walk, lateral, scope)
        plan = lateral_view(walk, scope, lateral, item)
        _add_item(scope, item)
        scope.plan = plan
        walk.correlated([lateral], scope, "in LATERAL VIEW")
    scope.plan = sample_plan(scope.plan, select.args.get("sample"))


def _add_item(scope: ColumnScope, item: ColumnScope) -> None:
    if len(scope.columns) + len(item.columns) > MAX_COLUMNS:
        raise too_many_columns()
    for relation in item.relations:
        scope.add(relation)
    scope.columns = [*scope.columns, *item.columns]


def _item(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnScope:
    """The relations that an item of FROM adds, and their columns."""
    if isinstance(node, exp.TableSample):
        item = _item(walk, node.this, scope)
        item.plan = sample_plan(item.plan, node)
        return item
    reader = _READERS.get(type(node))
    if isinstance(node, exp.Subquery) and holds_relations(node):
        item = _item(walk, node.this, scope)
        if node.args.get("alias") is not None or node.args.get("pivots"):
            item = _with_alias(walk, node, OutputColumns(item.columns, item.open, plan=item.plan), [], scope)
    else:
        output, names = reader(walk, node, scope) if reader is not None else (UNKNOWN, [])
        if output.plan is NO_PLAN:
            output = replace(output, plan=SourcePlan(node=node, open=True))
        output.plan = sample_plan(output.plan, node.args.get("sample"))
        item = _with_alias(walk, node, output, names, scope)
    for join in node.args.get("joins") or ():
        _join(walk, join, item)
    return item


def _with_alias(walk: Walk, node: exp.Expr, output: OutputColumns, names: list[str], scope: ColumnScope) -> ColumnScope:
    alias = node.args.get("alias")
    output = with_alias_names(walk, output, alias)
    called = alias.name.lower() if alias is not None else ""
    candidates = [called, *names[1:]] if called else names
    alias_identifier = alias.this if isinstance(alias, exp.TableAlias) else None
    name_uses.note_alias(walk.uses, alias_identifier)
    named_at = name_uses.place_of(alias_identifier) if alias_identifier is not None else _named_at(walk, node, scope)
    for pivot in node.args.get("pivots") or ():
        before = ColumnScope(
            scope.ctes, scope.outer, [ScopeRelation(tuple(candidates), output)], output.columns, plan=output.plan
        )
        alias = pivot.args.get("alias")
        output = with_alias_names(walk, pivot_columns.pivot_output(walk, pivot, before), alias)
        if alias is not None and alias.name:
            candidates, named_at = [alias.name.lower()], name_uses.place_of(alias.this)
            name_uses.note_alias(walk.uses, alias.this)
    if not output.is_input:
        walk.steps.update(dict.fromkeys(candidates, output))
    walk.reads[id(node)] = output
    relation = ScopeRelation(tuple(candidates), output, named_at=named_at)
    return ColumnScope(scope.ctes, scope.outer, [relation], output.columns, plan=output.plan)


def _named_at(walk: Walk, node: exp.Expr, scope: ColumnScope) -> int | str:
    """What gives a relation without an alias its name: the CTE that it is, or the node."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return -1
    cte = scope.ctes.get(node.name.lower()) if node.args.get("db") is None else None
    if isinstance(cte, Cte):
        return _cte_place(cte)
    relation = walk.inputs.get(".".join(part.name for part in node.parts))
    return relation.node if relation is not None else -1


def _cte_place(cte: Cte) -> int:
    alias = cte.node.args.get("alias")
    return name_uses.place_of(alias.this if isinstance(alias, exp.TableAlias) else alias)


def _table(walk: Walk, node: exp.Expr, scope: ColumnScope) -> tuple[OutputColumns, list[str]]:
    """What a name stands for, and the names by which it can be called: by itself and as it is written."""
    identifier = node.this
    if not isinstance(identifier, exp.Identifier):
        _check_no_lateral(walk, identifier, scope)
        generated_columns = (
            function_calls.generated_columns(walk, identifier, scope) if isinstance(identifier, exp.Expr) else None
        )
        name = walk.name_of(identifier)
        if generated_columns is None and name and (name not in BUILTIN or function_calls.is_scalar_function(name)):
            hint = "Read files through a source: {{ source('name', 'table') }}."
            walk.fault("unknown-function", f"Spark has no table function '{name}'", hint, identifier)
        columns = [ScopeColumn(name, walk.renewed(value)) for name, value in generated_columns or ()]
        return OutputColumns(columns, open=generated_columns is None), [walk.name_of(identifier)]
    written = identifier.name
    if node.args.get("db") is None:
        cte = scope.ctes.get(written.lower())
        if isinstance(cte, Cte):
            walk.definitions[id(node)] = cte.node
            name_uses.note_cte(walk.uses, identifier, _cte_place(cte))
            return _reference(walk, node, cte), [written.lower()]
    parts = [part.name for part in node.parts]  # type: ignore[attr-defined]
    name = ".".join(parts)
    relation = walk.inputs.get(name) or walk.inputs.get(name.lower())
    short = written.split(" ", 1)[-1] if written.startswith(_PLACEHOLDER) else written
    names = [short.rsplit(".", 1)[-1].lower(), *([written.lower()] if short is not written else [])]
    if relation is None:
        return replace(LOST, plan=SourcePlan(node=node, name=name.lower(), open=True)), names
    output = _input_columns(walk, relation)
    output.plan = source_plan(walk, node, name.lower(), relation, output)
    return output, names


def _check_no_lateral(walk: Walk, function: exp.Expr, scope: ColumnScope) -> None:
    """Report columns of the tables beside a table function, which it does not see without LATERAL."""
    for column in function.find_all(exp.Column) if scope.relations else ():
        try:
            scope.look_up([part.name for part in column.parts])
        except Missing:
            continue
        name = walk.name_of(function)
        message = f"{name}() in FROM cannot use '{column.name}' of the table next to it"
        walk.fault("misplaced-expression", message, f"Write LATERAL {name}(..).", column)


def _input_columns(walk: Walk, columns_known: InputColumns) -> OutputColumns:
    node = columns_known.node

    def column(name: str, type_: str | None) -> ScopeColumn:
        normal_type = spark_types.normal(type_) if type_ else None
        certain = normal_type is not None
        return ScopeColumn(
            name, ColumnValue(normal_type, ((node, name),), exact=True, certain=certain, id=next(walk.ids))
        )

    columns = [column(name, type_) for name, type_ in columns_known.columns or ()]
    hidden = {name.lower(): column(name, type_).value for name, type_ in columns_known.hidden}
    more = columns_known.columns is None or not columns_known.complete
    time = columns_known.event_time
    if more and time and time.lower() not in {*hidden, *(declared.name.lower() for declared in columns)}:
        columns.append(ScopeColumn(time, walk.renewed(possible_column(node, time))))
    output = OutputColumns(columns, more, node if more else None, hidden, is_input=True)
    if columns_known.added:
        base = ColumnScope({}, None, [ScopeRelation((), output)], columns, quiet=True)
        by_name = {column.name.lower(): column for column in columns}
        for name, sql in columns_known.added:
            added_value = with_fields(_added_value(walk, sql, base), named_at=f"watermark {node}", id=next(walk.ids))
            by_name[name.lower()] = ScopeColumn(name, added_value)
        output = replace(output, columns=list(by_name.values()))
    return output


def _added_value(walk: Walk, sql: str, scope: ColumnScope) -> ColumnValue:
    tree = expression(sql)
    if tree is None:
        return ColumnValue(None)
    return replace(walk, text=f"select {sql}", faults={}, names={}, uses=None).value(tree, scope)


def _subquery(walk: Walk, node: exp.Expr, scope: ColumnScope) -> tuple[OutputColumns, list[str]]:
    return walk.query(walk, node.this, with_ctes(node, scope.ctes, scope.outer), scope.outer), []


def _lateral(walk: Walk, node: exp.Expr, scope: ColumnScope) -> tuple[OutputColumns, list[str]]:
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return walk.query(walk, inner.this, with_ctes(inner, scope.ctes, scope), scope), []
    generated_columns = function_calls.generated_columns(walk, inner, scope)
    if generated_columns is not None:
        return OutputColumns([ScopeColumn(name, walk.renewed(value)) for name, value in generated_columns]), []
    name = walk.name_of(inner)
    if function_calls.is_scalar_function(name):
        walk.fault("unknown-function", f"{name}() does not return rows", "Write explode(..), or a subquery.", inner)
    value = walk.value(inner, scope)
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    return OutputColumns(
        [ScopeColumn(i.name, walk.renewed(ColumnValue(None, value.origins))) for i in names or ()], open=not names
    ), []


def _values(walk: Walk, node: exp.Expr, scope: ColumnScope) -> tuple[OutputColumns, list[str]]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    rows_of_values = [[walk.value(item, scope) for item in row] for row in rows]
    for row, values in zip(rows, rows_of_values, strict=True):
        for item, item_value in zip(row, values, strict=True):
            if item_value.origins or item.find(exp.Query) is not None:
                walk.fault(
                    "misplaced-expression", "VALUES takes constants, and this uses a column", _CONSTANTS, item, node
                )
    width = len(rows_of_values[0]) if rows_of_values else 0
    places = [[row[place] for row in rows_of_values if place < len(row)] for place in range(width)]
    column_values = (walk.renewed(ColumnValue(widest_type(v.type for v in place), origins(place))) for place in places)
    columns = [ScopeColumn(f"col{number}", value) for number, value in enumerate(column_values, 1)]
    return OutputColumns(columns, plan=SourcePlan(node=node, columns=plan_columns(columns))), []


_READERS: dict[type[exp.Expr], Callable[[Walk, exp.Expr, ColumnScope], tuple[OutputColumns, list[str]]]] = {
    exp.Table: _table,
    exp.Lateral: _lateral,
    exp.Values: _values,
    exp.Subquery: _subquery,
}


def _join(walk: Walk, join: exp.Expr, scope: ColumnScope) -> None:
    """Add what is joined, and note the columns on which it is."""
    before = ColumnScope(scope.ctes, None, list(scope.relations), scope.columns, plan=scope.plan)
    # What is LATERAL sees the tables before it, and none around the query.
    around = before if isinstance(join.this, exp.Lateral) else scope
    added = _item(walk, join.this, around)
    added.outer = None
    scope.relations = [*before.relations, *added.relations]
    common = list(join.args.get("using") or ())
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = index(added.columns)
        common = [exp.to_identifier(column.name) for column in before.columns if column.name.lower() in theirs]
    scope.columns = [*before.columns, *added.columns]
    scope.forget()
    pairs: list[Pair] = []
    if common:
        scope.columns, pairs = _merged_columns(walk, join, common, before, added)
    elif (on := join.args.get("on")) is not None:
        note_filter(walk, on, scope, "join", "ON")
    scope.plan = join_plan(walk, scope, join, (before, added), pairs)
    if join_kind(join) in {"semi", "anti"}:
        scope.relations, scope.columns = before.relations, before.columns
    scope.forget()


def _merged_columns(
    walk: Walk, join: exp.Expr, common: list[exp.Identifier], left_scope: ColumnScope, right_scope: ColumnScope
) -> tuple[list[ScopeColumn], list[Pair]]:
    """The columns of a join by USING: the common ones once and first; and the pairs that are compared."""
    kind, using = join_kind(join), bool(join.args.get("using"))
    pairs: list[Pair] = []
    merged: list[ScopeColumn] = []
    for identifier in common:
        ours, theirs = _common_column(walk, identifier, left_scope), _common_column(walk, identifier, right_scope)
        walk.influence(origins([ours, theirs]), "join")
        type_mismatch.check_comparison(walk, identifier, (identifier, ours), (identifier, theirs))
        value = theirs if kind == "right" else ours
        if kind == "full":
            value = walk.renewed(ColumnValue(wider_type(ours.type, theirs.type), origins([ours, theirs])))
        pairs.append((identifier if using else join, ours.id, theirs.id, value.id))
        columns = right_scope.columns if kind == "right" else left_scope.columns
        like = (c.name for c in columns if c.name.lower() == identifier.name.lower())
        merged.append(ScopeColumn(next(like, identifier.name), value))
    common_names = {identifier.name.lower() for identifier in common}
    rest = (c for c in [*left_scope.columns, *right_scope.columns] if c.name.lower() not in common_names)
    return [*merged, *rest], pairs


def _common_column(walk: Walk, identifier: exp.Identifier, scope: ColumnScope) -> ColumnValue:
    try:
        return scope.look_up([identifier.name])
    except Missing as missing:
        walk.miss(missing, [identifier], scope)
        return ColumnValue(None)


def window_value(walk: Walk, name: str, window: TimeWindow, scope: ColumnScope) -> ColumnValue | None:
    """A declared window over a column or expression; None if the SELECT does not have it."""
    own = ColumnScope({}, None, scope.relations, scope.columns, quiet=True)
    call = expression(window.sql)
    if call is None:
        return None
    tree = call.expressions[0]
    try:
        for column in tree.find_all(exp.Column):
            own.look_up([part.name for part in column.parts])
    except Missing:
        return None
    time = replace(walk, text=f"select {window.sql}", faults={}, names={}, uses=None).value(tree, own)
    return with_fields(function_calls.window(time, name.lower()), named_at=f"window {name}")
