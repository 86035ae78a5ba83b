"""What a query gives: its columns, and its row-level lineage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as with_fields
from sqlglot import exp

from engine.compile.columns import function_calls, name_uses, type_mismatch
from engine.compile.columns.column_scope import (
    ColumnScope,
    ColumnValue,
    GroupKey,
    Missing,
    NameRef,
    OutputColumns,
    ScopeColumn,
    ScopeRelation,
    index,
    origins,
    possible_column,
)
from engine.compile.columns.default_names import column_name
from engine.compile.columns.expressions import note_filter, note_sort_key, number_type
from engine.compile.columns.from_clause import UNKNOWN, read_from, read_unread_ctes, window_value, with_ctes
from engine.compile.columns.name_uses import UseKind
from engine.compile.columns.select_plan import select_plan, set_operation_plan, with_order_and_limit
from engine.compile.columns.visible_columns import (
    SETS,
    check_distinguishable,
    check_order_by_columns,
    check_order_by_output,
    check_unselected_keys,
)
from engine.compile.columns.walk import Walk, path
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import has_aggregate
from engine.compile.streaming.query_plan.logical_plan import MAX_COLUMNS, SourcePlan, With, too_many_columns
from engine.compile.types import spark_types
from engine.compile.types.comparable_types import family, have_common_type
from engine.compile.types.widening import wider_type

_SORTS = ("order", "sort", "cluster", "distribute")
_BY_NAME = "union by name"


def query(walk: Walk, node: exp.Expr, ctes: Mapping[str, Any], outer: ColumnScope | None) -> OutputColumns:
    ctes = with_ctes(node, ctes, outer)
    output = _query(walk, node, ctes, outer)
    if node.args.get("with_") is not None:
        read_unread_ctes(walk, node, ctes)
        read = (ctes[cte.alias.lower()].output for cte in node.args["with_"].expressions)
        definitions = (one.plan for one in read if one is not None)
        children = (*definitions, output.plan)
        output.plan = With(node=node, columns=output.plan.columns, children=children, open=output.plan.open)
    _check_limit(walk, node)
    return output


def _query(walk: Walk, node: exp.Expr, ctes: Mapping[str, Any], outer: ColumnScope | None) -> OutputColumns:
    if isinstance(node, exp.Select):
        return _select(walk, node, ctes, outer)
    if isinstance(node, exp.SetOperation):
        return _set_operation(walk, node, ctes, outer)
    if isinstance(node, exp.Subquery):
        output = query(walk, node.this, ctes, outer)
        _read_order_of_output(walk, node, output)
        output.plan = with_order_and_limit(output.plan, node)
        return output
    return replace(UNKNOWN, plan=SourcePlan(node=node, open=True))


def _select(walk: Walk, node: exp.Select, ctes: Mapping[str, Any], outer: ColumnScope | None) -> OutputColumns:
    scope = ColumnScope(ctes, outer)
    read_from(walk, node, scope)
    _make_windows(walk, node, scope)
    where = node.args.get("where")
    if where is not None:
        note_filter(walk, where.this, scope, "filter", "WHERE")
    scope.outside = False
    output = walk.selects[id(node)] = _read_projections(walk, node, scope)
    if scope.outside and (node.args.get("group") or any(has_aggregate(item) for item in node.expressions)):
        walk.correlated(node.expressions, scope, "next to an aggregate")
    if node.args.get("distinct") is not None:
        check_distinguishable(walk, node, output, "DISTINCT")
        check_order_by_output(walk, node, output)
    for column in output.columns:
        scope.computed.setdefault(column.name.lower(), column.value)
        scope.quiet = scope.quiet or not column.named
    group, having = node.args.get("group"), node.args.get("having")
    if group is not None:
        for value in _group_values(walk, group, node, output, scope):
            walk.influence(value.origins, "group")
        walk.correlated([group], scope, "in GROUP BY")
    scope.results = _results_by_name(node, output)
    if having is not None:
        _check_having(walk, node, having, scope)
        condition = walk.value(having.this, scope)
        walk.influence(condition.origins, "having")
        # Spark casts it to BOOLEAN.
        type_mismatch.check_cast(walk, having, condition.type, "boolean")
        scope.outside = False
    _read_order(walk, node, output, scope)
    scope.results = {}
    for window in node.args.get("windows") or ():
        walk.value(window, scope)
    walk.correlated(_sort_clauses(node), scope, "in ORDER BY")
    if group is not None:
        check_unselected_keys(walk, node, output, scope)
    output.plan = select_plan(walk, node, scope, output)
    return output


def _results_by_name(node: exp.Select, output: OutputColumns) -> dict[str, ColumnValue]:
    """The columns of the SELECT by their names, for HAVING and ORDER BY; without those of which there are several."""
    if node.args.get("having") is None and next(_sort_clauses(node), None) is None:
        return {}
    return {name: columns[0] for name, columns in index(output.columns).items() if len(columns) == 1}


def _sort_clauses(node: exp.Select) -> Iterator[exp.Expr]:
    yield from (node.args[key] for key in _SORTS if node.args.get(key) is not None)


def _check_having(walk: Walk, node: exp.Select, having: exp.Expr, scope: ColumnScope) -> None:
    """Report a HAVING that names a result of a function with OVER."""
    over = {e.alias.lower() for e in node.expressions if isinstance(e, exp.Alias) and e.find(exp.Window)}
    group = node.args.get("group")
    if group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        return
    for column in having.find_all(exp.Column) if over else ():
        name = column.name.lower()
        if not column.table and name in over and not any(r.find(name) for r in scope.relations):
            message = f"HAVING is evaluated before '{column.name}', a window function (OVER)"
            walk.fault("misplaced-expression", message, "Filter in an outer SELECT.", column)


def _make_windows(walk: Walk, node: exp.Select, scope: ColumnScope) -> None:
    if walk.windows:
        parts = [relation for relation in scope.relations if not relation.output.is_input]
        walk.passed_on[id(node)] = frozenset(
            name for name in walk.windows if any(relation.find(name.lower()) for relation in parts)
        )
    for name, window in walk.windows.items():
        value = window_value(walk, name, window, scope)
        if value is not None:
            scope.computed[name.lower()] = value = walk.renewed(value)
            walk.window_calls[value.id] = window.sql
            walk.timed.add(name)
    group = node.args.get("group")
    for item in group.expressions if group is not None else ():
        bare = item.this if isinstance(item, exp.Paren) else item
        if isinstance(bare, exp.Anonymous) and (name := bare.name.lower()) in {"window", "session_window"}:
            scope.computed[name] = walk.renewed(walk.value(bare, scope))
            walk.refs[id(bare)] = NameRef((scope.computed[name].id,), name)


def _read_projections(walk: Walk, node: exp.Select, scope: ColumnScope) -> OutputColumns:
    output, used_ids = OutputColumns([]), set[int]()
    for item, projection in enumerate(node.expressions):
        if len(output.columns) > MAX_COLUMNS:
            raise too_many_columns()
        star = _star(walk, projection, scope)
        if star is not None:
            output.columns += [ScopeColumn(c.name, _with_id(walk, c.value), c.named, item) for c in star.columns]
            if star.open:
                output.open, output.rest = True, None if output.open else star.rest
            continue
        generated_columns = _generated_projection(walk, projection, scope)
        if generated_columns is not None:
            output.columns += [ScopeColumn(name, walk.renewed(value), item=item) for name, value in generated_columns]
            output.open = output.open or not generated_columns
            continue
        value = _with_name(walk, node, projection, walk.value(projection, scope))
        if not isinstance(projection.unnest(), exp.Column) or not value.id or value.id in used_ids:
            value = walk.renewed(value)
            used_ids.add(value.id)
        name, sure = column_name(walk, projection, scope)
        output.columns.append(ScopeColumn(name, value, sure, item))
        if isinstance(projection, exp.Alias):
            if name.lower() not in scope.computed:
                scope.aliases.add(name.lower())
            scope.computed.setdefault(name.lower(), value)
    scope.aliases.clear()
    return output


def _with_id(walk: Walk, value: ColumnValue) -> ColumnValue:
    return value if value.id else walk.renewed(value)


def _with_name(walk: Walk, select: exp.Select, projection: exp.Expr, value: ColumnValue) -> ColumnValue:
    """The value of an item, with what gives its column the name: its alias, itself, or what it comes from."""
    if walk.uses is None:
        return value
    if isinstance(projection, exp.Alias):
        alias = projection.args.get("alias")
        name_uses.note_alias(walk.uses, alias, UseKind.COLUMN)
        return with_fields(value, named_at=name_uses.place_of(alias))
    identifier = name_uses.last_identifier(projection)
    last = name_uses.place_of(identifier)
    # Where nothing was noted the name is that of a field.
    if identifier is None or (last in walk.uses and not name_uses.gives_names(select)):
        return value if identifier is not None else with_fields(value, named_at=-1)
    walk.unaliased[last] = identifier.meta["end"] + 1
    return with_fields(value, named_at=last)


def _star(walk: Walk, node: exp.Expr, scope: ColumnScope) -> OutputColumns | None:
    """What `*`, `t.*` or `a_struct.*` stands for; None if the item is not a star."""
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return None
    if star is node:
        nodes = {r.output.rest for r in scope.relations if r.output.open}
        output = OutputColumns(scope.columns, scope.open, nodes.pop() if len(nodes) == 1 else None)
    else:
        before = [part for part in node.parts if not isinstance(part, exp.Star)]  # type: ignore[attr-defined]
        name_uses.note_qualifier(walk.uses, before[-1], scope)
        parts = [part.name for part in before]
        output = scope.starred(parts[-1].lower()) or _struct_members(walk, node, parts, scope)
    for part in star.args.get("except_") or ():
        if isinstance(part, exp.Identifier) or not part.args.get("table"):
            _refer(walk, part, part.name.lower(), output)
        output = _without_column(walk, part, output, scope)
    for alias in star.args.get("replace") or ():
        _refer(walk, alias, alias.alias.lower(), output)
        output = _with_assignment(walk, alias, output, scope)
    return output


def _refer(walk: Walk, node: exp.Expr, name: str, output: OutputColumns) -> None:
    """Note the columns of a star that a name in EXCEPT or SET means."""
    ids = dict.fromkeys(column.value.id for column in output.columns if column.name.lower() == name)
    walk.refs[id(node)] = NameRef(tuple(ids), name)


def _with_assignment(walk: Walk, alias: exp.Expr, output: OutputColumns, scope: ColumnScope) -> OutputColumns:
    name, value = alias.alias.lower(), walk.renewed(walk.value(alias, scope))
    if not output.open and not any(column.name.lower() == name for column in output.columns):
        missing = Missing(alias.alias, [column.name for column in output.columns], 0)
        walk.miss(missing, [alias.args["alias"]], scope)
    columns = [ScopeColumn(c.name, value) if c.name.lower() == name else c for c in output.columns]
    return OutputColumns(columns, output.open, output.rest)


def _without_column(walk: Walk, node: exp.Expr, output: OutputColumns, scope: ColumnScope) -> OutputColumns:
    """The columns but one, or with one field less in a struct."""
    names = [node] if isinstance(node, exp.Identifier) else path(node)[0]
    if not names:
        return output
    relation = scope.relation_named(names[0].name.lower()) if len(names) > 1 else None
    if relation is not None and relation.find(names[1].name.lower()):
        names = names[1:]
    name = names[0].name.lower()
    remaining = [column for column in output.columns if column.name.lower() != name or not _may_be_of(column, relation)]
    if len(names) > 1:
        inner = [identifier.name for identifier in names[1:]]
        cut = [c if c in remaining else ScopeColumn(c.name, _without_field(c.value, inner)) for c in output.columns]
        return OutputColumns(cut, output.open, output.rest)
    if len(remaining) == len(output.columns) and not output.open:
        walk.miss(Missing(names[0].name, [column.name for column in output.columns], 0), names, scope)
    return OutputColumns(remaining, output.open, output.rest)


def _may_be_of(column: ScopeColumn, relation: ScopeRelation | None) -> bool:
    """Whether a column of a star may be one of a relation; those that USING has made are of both."""
    return relation is None or any(own.value.id == column.value.id for own in relation.output.columns)


def _without_field(value: ColumnValue, names: list[str]) -> ColumnValue:
    return ColumnValue(_type_without_field(value.type, names), value.origins)


def _type_without_field(type_: str | None, names: list[str]) -> str | None:
    fields = spark_types.fields(type_)
    if fields is None:
        return None
    name, *inner = (part.lower() for part in names)
    remaining_fields = [
        (n, _type_without_field(t, inner) if n.lower() == name else t) for n, t in fields if inner or n.lower() != name
    ]
    return spark_types.struct(remaining_fields)


def _struct_members(walk: Walk, node: exp.Expr, parts: list[str], scope: ColumnScope) -> OutputColumns:
    try:
        resolved = scope.find(parts)
        walk.refer(node, parts, resolved, scope)
        value = resolved.value
        if family(value.type) and spark_types.fields(value.type) is None and value.parts is None:
            message = f"'{parts[-1]}' is {value.type}, which has no fields"
            walk.fault(type_mismatch.CODE, message, "Write its name without '.*'.", node)
        names = [name for name, _ in spark_types.fields(value.type) or ()]
        if value.type and family(value.type) not in {"", "struct"}:
            message = f"'{'.'.join(parts)}.*' expands the fields of a struct, but it is {value.type}"
            walk.fault(type_mismatch.CODE, message, "Select the column itself, or explode() it.", node)
        return OutputColumns([ScopeColumn(n, scope.look_up([*parts, n])) for n in names], open=not names)
    except Missing as missing:
        walk.miss(missing, [part for part in node.parts if isinstance(part, exp.Identifier)], scope)  # type: ignore[attr-defined]
        return UNKNOWN


def _generated_projection(walk: Walk, projection: exp.Expr, scope: ColumnScope) -> list[tuple[str, ColumnValue]] | None:
    """The columns of `explode(..)` and its like; none if they are not known."""
    function = projection.this if isinstance(projection, (exp.Alias, exp.Aliases)) else projection
    if not isinstance(function, exp.Func) or not function_calls.generates(walk, function):
        return None
    before, scope.outside = scope.outside, False
    generated_columns = function_calls.generated_columns(walk, function, scope)
    if projection.parent is not None and projection.parent.args.get("from_") is not None:
        walk.correlated([function], scope, f"in {walk.name_of(function)}()")
    scope.outside = scope.outside or before
    aliases = [projection.args["alias"]] if isinstance(projection, exp.Alias) else []
    if isinstance(projection, exp.Aliases):
        aliases = projection.expressions
    names = [identifier.name for identifier in aliases]
    for identifier in aliases:
        name_uses.note_alias(walk.uses, identifier, UseKind.COLUMN)
    if generated_columns is None:
        value = walk.value(function, scope)
        places = [name_uses.place_of(identifier) for identifier in aliases]
        return [(n, ColumnValue(None, value.origins, named_at=at)) for n, at in zip(names, places, strict=True)]
    if names and len(names) != len(generated_columns):
        count = f"{len(names)} alias{'es' * (len(names) > 1)}"
        message = f"{count} for the {len(generated_columns)} columns that {walk.name_of(function)}() returns"
        walk.fault(
            "misplaced-expression",
            message,
            f"Write AS ({', '.join(name for name, _ in generated_columns)}).",
            function,
            projection,
        )
    named_columns = [(names[i] if i < len(names) else name, value) for i, (name, value) in enumerate(generated_columns)]
    places = [name_uses.place_of(identifier) for identifier in aliases] + [-1] * len(named_columns)
    return [(name, with_fields(value, named_at=at)) for (name, value), at in zip(named_columns, places, strict=False)]


def _group_values(
    walk: Walk, group: exp.Expr, select: exp.Select, output: OutputColumns, scope: ColumnScope
) -> Iterator[ColumnValue]:
    """The values that are grouped by; their keys are noted."""
    keys = walk.groups[id(select)] = []
    items = [(column, select.expressions[column.item]) for column in output.columns if column.item >= 0]
    if group.args.get("all"):
        keys += [GroupKey(item, column) for column, item in items if not has_aggregate(item)]
        yield from (key.column.value for key in keys if key.column is not None)
        return
    # A part of a declared window has its name as an alias in the SQL that runs.
    columns_by_id = {c.value.id: c for c, item in items if isinstance(item, exp.Alias) or c.value.window}
    for part, always in _group_parts(group):
        _check_position(walk, "group", part, select, output)
        value, place = _by_position(part, output) or walk.value(part, scope), _position(part)
        ref = walk.refs.get(id(part)) if isinstance(part, exp.Column) else None
        column = columns_by_id.get(ref.ids[0]) if ref is not None and len(ref.ids) == 1 and not ref.path else None
        if place is not None and 0 < place <= len(output.columns):
            column = output.columns[place - 1]
        keys.append(GroupKey(part, column, always))
        if column is not None and not (place and output.open):
            _check_key_is_no_aggregate(walk, place or part.name, part, select, select.expressions[column.item])
        if value.type == "variant":
            type_mismatch.check_sort_key(walk, part, value, "GROUP BY")
        yield value


def _check_key_is_no_aggregate(walk: Walk, key: int | str, part: exp.Expr, select: exp.Select, item: exp.Expr) -> None:
    """Report a position or an alias in GROUP BY that stands for an aggregate."""
    if has_aggregate(item) or item.find(exp.Window):
        message = f"GROUP BY {key} is an aggregate or a window function"
        walk.fault(
            "misplaced-expression", message, "Group by columns only, and aggregate in the SELECT list.", part, select
        )


def _group_parts(group: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """The expressions of a GROUP BY, and whether nothing leaves them out."""
    sets = [one for name in ("rollup", "cube", "grouping_sets") for one in group.args.get(name) or ()]
    # WITH ROLLUP has no keys of its own: it is about those before it.
    behind = any(not one.expressions for one in sets)
    for node in group.expressions:
        yield from ((part, not behind and not isinstance(node.unnest(), SETS)) for part in _flat_keys(node))
    for node in sets:
        yield from ((part, False) for part in _flat_keys(node))


def _flat_keys(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.Tuple, *SETS)):
        for item in node.expressions:
            yield from _flat_keys(item)
    elif isinstance(node, exp.Paren):
        yield from _flat_keys(node.this)
    else:
        yield node


def _by_position(node: exp.Expr, output: OutputColumns) -> ColumnValue | None:
    place = _position(node)
    if place and not output.open:
        return output.columns[place - 1].value if 0 < place <= len(output.columns) else None
    return None


def _position(node: exp.Expr) -> int | None:
    """The place that an item names: a number of Spark's type INT."""
    bare = node.unnest()
    sign, bare = (-1, bare.this) if isinstance(bare, exp.Neg) else (1, bare)
    if not isinstance(bare, exp.Literal) or not bare.is_int or number_type(bare.name, sign) != "int":
        return None
    return sign * int(bare.name)


def _read_order(walk: Walk, node: exp.Select, output: OutputColumns, scope: ColumnScope) -> None:
    for clause, item in _sort_items(node):
        _check_position(walk, clause, item, node, output)
        value = _by_position(item, output)
        if value is None and (value := _by_name(item, output)) is not None:
            walk.refs[id(item)] = NameRef((value.id,), item.name.lower())
            name_uses.note_result(walk.uses, item, value)
        value = value or walk.value(item, scope)
        _note_sort_item(walk, item, value, clause)


def _read_order_of_output(walk: Walk, node: exp.Expr, output: OutputColumns) -> None:
    """ORDER BY behind a UNION or brackets sees the output only."""
    scope = ColumnScope({}, columns=output.columns, quiet=True)
    for clause, item in _sort_items(node):
        _check_position(walk, clause, item, node, output)
        _note_sort_item(walk, item, _by_position(item, output) or walk.value(item, scope), clause)


def _note_sort_item(walk: Walk, item: exp.Expr, value: ColumnValue, clause: str) -> None:
    if clause == "distribute":
        walk.influence(value.origins, "sort")
    else:
        note_sort_key(walk, item, value, "sort", f"{clause.upper()} BY")


def _sort_items(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key in _SORTS:
        clause = node.args.get(key)
        for item in clause.expressions if clause is not None else ():
            yield key, item.this if isinstance(item, exp.Ordered) else item


def _check_position(walk: Walk, clause: str, item: exp.Expr, node: exp.Expr, output: OutputColumns) -> None:
    place, count = _position(item), len(output.columns)
    if output.open or clause == "distribute" or place is None:
        return
    if place > count or place < 1:
        message = f"{clause.upper()} BY {place}: the SELECT has {count} column{'s' * (count != 1)}"
        walk.fault("misplaced-expression", message, "Use the name of a column, or its position.", item, node)


def _check_limit(walk: Walk, node: exp.Expr) -> None:
    for key in ("limit", "offset"):
        clause = node.args.get(key)
        column = clause.expression.find(exp.Column) if isinstance(clause, (exp.Limit, exp.Offset)) else None
        if column is not None and column.name.lower() != "all" and not column.find_ancestor(exp.Query) is not node:
            message = f"{key.upper()} takes a number, and '{column.name}' is a column"
            walk.fault(
                "misplaced-expression",
                message,
                "Use a number; to limit rows per group, filter on row_number() in an outer SELECT.",
                column,
            )


def _by_name(node: exp.Expr, output: OutputColumns) -> ColumnValue | None:
    if not isinstance(node, exp.Column) or node.table:
        return None
    columns = index(output.columns).get(node.name.lower())
    return columns[0] if columns else None


def _set_operation(
    walk: Walk, node: exp.SetOperation, ctes: Mapping[str, Any], outer: ColumnScope | None
) -> OutputColumns:
    left_output, right_output = query(walk, node.this, ctes, outer), query(walk, node.expression, ctes, outer)
    by_name = bool(node.args.get("by_name"))
    if not (left_output.open or right_output.open or by_name) and len(left_output.columns) != len(right_output.columns):
        _report_uneven(walk, node, len(left_output.columns), len(right_output.columns))
    output = _united_columns(walk, left_output, right_output, by_name=by_name)
    _check_common_types(walk, node, left_output, right_output, by_name=by_name)
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        check_distinguishable(walk, node, left_output, type(node).__name__.upper())
    if not isinstance(node, exp.Union):
        walk.influence(origins([column.value for column in right_output.columns]), "filter")
        output = replace(
            output,
            columns=[_with_left_origins(*pair) for pair in zip(output.columns, left_output.columns, strict=False)],
        )
    check_order_by_columns(walk, node, output, type(node).__name__.upper())
    output.plan = with_order_and_limit(
        set_operation_plan(walk, node, (left_output.plan, right_output.plan), output), node
    )
    _read_order_of_output(walk, node, output)
    return output


def _report_uneven(walk: Walk, node: exp.SetOperation, left_count: int, right_count: int) -> None:
    at = min((n.meta["start"] for n in node.expression.walk() if "start" in n.meta), default=0)
    word = type(node).__name__.upper()
    message = f"one side of {word} has {left_count} columns, the other {right_count}"
    walk.faults.setdefault(
        at, QueryFinding("union-columns", message, "Select the same number of columns on both sides.", at)
    )


def _check_common_types(
    walk: Walk, node: exp.SetOperation, left_output: OutputColumns, right_output: OutputColumns, *, by_name: bool
) -> None:
    if left_output.open or right_output.open or by_name:
        return
    word = type(node).__name__.upper()
    items = node.expression.unnest()
    items = items.expressions if isinstance(items, exp.Select) else []
    for ours, theirs in zip(left_output.columns, right_output.columns, strict=False):
        if not have_common_type(ours.value.type, theirs.value.type, "united"):
            at = items[theirs.item] if 0 <= theirs.item < len(items) else node.expression
            message = f"'{ours.name}' is {ours.value.type} before {word} and {theirs.value.type} after it"
            walk.fault(
                type_mismatch.CODE, message, "Cast one of them, or list the columns in the same order.", at, node
            )


def _with_left_origins(column: ScopeColumn, like: ScopeColumn) -> ScopeColumn:
    value = ColumnValue(column.value.type, like.value.origins, named_at=like.value.named_at, id=like.value.id)
    return ScopeColumn(column.name, value, column.named, column.item)


def _united_columns(
    walk: Walk, left_output: OutputColumns, right_output: OutputColumns, *, by_name: bool
) -> OutputColumns:
    if left_output.open or right_output.open:
        rest = left_output.rest if left_output.rest == right_output.rest else None
        columns = [
            ScopeColumn(c.name, walk.renewed(possible_column(rest, c.name)), c.named, c.item)
            for c in left_output.columns
        ]
        return OutputColumns(columns, open=True, rest=rest)
    theirs = right_output.columns
    if by_name:
        by_column = {column.name.lower(): column for column in theirs}
        theirs = [by_column.get(column.name.lower(), column) for column in left_output.columns]
    columns = [_united_column(*pair) for pair in zip(left_output.columns, theirs, strict=False)]
    columns = [with_fields(column, value=walk.renewed(column.value)) for column in columns]
    if by_name:
        # Both sides have the names.
        columns = [_named_at(column, _BY_NAME) for column in columns]
    return OutputColumns(columns)


def _named_at(column: ScopeColumn, place: int | str) -> ScopeColumn:
    return with_fields(column, value=with_fields(column.value, named_at=place))


def _united_column(left_column: ScopeColumn, right_column: ScopeColumn) -> ScopeColumn:
    a, b = left_column.value, right_column.value
    same = a.origins == b.origins and a.exact and b.exact
    parts = None
    if a.parts is not None and b.parts is not None and a.parts.keys() == b.parts.keys():
        parts = {
            key: _united_column(ScopeColumn(key, a.parts[key]), ScopeColumn(key, b.parts[key])).value for key in a.parts
        }
    exact = same or (a.exact and b.exact)
    value = ColumnValue(wider_type(a.type, b.type), origins([a, b]), exact, parts, named_at=a.named_at)
    return ScopeColumn(left_column.name, value, left_column.named, left_column.item)
