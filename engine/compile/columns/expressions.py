"""Type and origins of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns import function_calls, function_placement, type_mismatch, window_lengths
from engine.compile.columns.argument_types import check_element_at, check_map_keys
from engine.compile.columns.column_scope import (
    NOTHING,
    ColumnScope,
    ColumnValue,
    Missing,
    OutputColumns,
    ResolvedName,
    ScopeColumn,
    field_of,
    member,
    origins,
    part_name,
)
from engine.compile.columns.name_uses import note_column
from engine.compile.columns.walk import Walk, children, operand_types, path
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.precedence.variant_paths import is_path
from engine.compile.types import spark_types
from engine.compile.types.comparable_types import family
from engine.compile.types.function_types import FIXED, return_type
from engine.compile.types.widening import arithmetic, interval, is_numeric, widest_type

_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
}  # fmt: skip
_CHAINED = {**_SIGNS, exp.DPipe: "||"}
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_COMPARED: frozenset[type[exp.Expr]] = frozenset({
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
})  # fmt: skip
_CONNECTED = (exp.And, exp.Or)
_PATTERNS, _PATTERN = (exp.Like, exp.ILike, exp.RegexpLike), "like"
_TRUE = ColumnValue("boolean")
_TRUTHS: frozenset[type[exp.Expr]] = frozenset({
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or,
    exp.Xor, exp.Not, exp.Is, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.Escape,
    exp.Any, exp.All,
})  # fmt: skip
_SHELLS: tuple[type[exp.Expr], ...] = (
    exp.Paren,
    exp.Kwarg,
    exp.Alias,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.Ordered,
    exp.PropertyEQ,
)
_RANKING = {"cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank", "row_number"}
# What sqlglot puts around the arguments of functions of times.
_WRAPPED = (exp.TsOrDsToDate, exp.TimeStrToTime)
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_INT, _LONG = 2**31, 2**63
# What says its type itself; what has that of its parts.
_KNOWN = (exp.Literal, exp.Boolean, exp.Null, exp.Cast, exp.TryCast, exp.In, exp.Exists)
_MADE_OF = (*_CHAINED, exp.Struct, exp.VarMap)
_PASSING = {
    "abs", "any_value", "array", "avg", "coalesce", "first", "first_value", "ifnull", "last", "last_value", "map",
    "max", "mean", "min", "nvl", "struct", "sum",
}  # fmt: skip


def value(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        result = handler(walk, node, scope)
    elif isinstance(node, exp.Query):
        result = _scalar(walk, node, scope)
    elif name := walk.name_of(node):
        result = function_calls.value_of_call(walk, name, node, scope)
    elif isinstance(node, _WRAPPED) and isinstance(node.this, exp.Expr):
        return value(walk, node.this, scope)
    else:
        return ColumnValue(None, origins(_values_quietly(walk, node, scope)))
    if result.type is not None and len(result.type) > spark_types.MAX_LENGTH:
        # struct(x, x) of a struct(x, x) of ...: the text of the type doubles at each step.
        return ColumnValue(None, result.origins)
    if result.type is not None:
        walk.types[id(node)] = result.type
        if result.certain or _is_certain(walk, node):
            walk.certain.add(id(node))
            return result if result.certain else replace(result, certain=True)
    return result


def _is_certain(walk: Walk, node: exp.Expr) -> bool:
    """Whether the type of an expression follows from types that are certain."""
    if isinstance(node, _KNOWN) or type(node) in _TRUTHS:
        return True
    if isinstance(node, _MADE_OF):
        return all(id(part) in walk.certain for part in _made_of(node))
    name = walk.name_of(node) if isinstance(node, exp.Func) else ""
    return name in FIXED or (name in _PASSING and all(id(part) in walk.certain for part in _made_of(node)))


def _made_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions that decide on the type of an operation, a struct, an array, a map or a call."""
    waiting = [*children(node)]
    while waiting:
        part = waiting.pop()
        inside = part.expression if isinstance(part, exp.PropertyEQ) else part.unalias()
        if type(inside) in _CHAINED or (isinstance(inside, exp.Array) and isinstance(node, exp.VarMap)):
            waiting += children(inside)
        elif not isinstance(inside, (exp.Identifier, exp.DataType)):
            yield inside


def values(walk: Walk, nodes: Sequence[exp.Expr], scope: ColumnScope) -> list[ColumnValue]:
    return [value(walk, node, scope) for node in nodes]


def _values_quietly(walk: Walk, node: exp.Expr, scope: ColumnScope) -> list[ColumnValue]:
    """What is below a construct that is not known here, where a word may be no column."""
    before, scope.quiet = scope.quiet, True
    try:
        return [value(walk, child, scope) for child in children(node)]
    finally:
        scope.quiet = before


def _column(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    identifiers, base = path(node)
    if base is not None:
        return _field_value(walk, base, identifiers, scope)
    if isinstance(node.this, exp.Star) or not identifiers:
        return NOTHING
    parts = [identifier.this for identifier in identifiers]
    bound = scope.variables.get(parts[0].lower()) if scope.variables else None
    if bound is None and scope.results:
        bound = _result_column(node, parts, scope)
    try:
        # The parser finds the parameters of lambdas that have the same letter case.
        looked_up = scope.find(parts) if bound is None else _field_of_bound(bound, parts)
        column_value = looked_up.value
        walk.refer(node, parts, looked_up, scope)
        meta = identifiers[0].meta
        if "start" in meta:
            walk.names[meta["start"]] = identifiers[-1].meta.get("end", meta["end"]) + 1, column_value
            if walk.uses is not None and not (scope.variables and parts[0].lower() in scope.variables):
                note_column(walk.uses, identifiers, scope, looked_up)
    except Missing as missing:
        walk.miss(missing, identifiers, scope)
        walk.refer(node, parts, None, scope)
        name = parts[0].lower() if len(parts) == 1 else ""
        return ColumnValue(function_calls.type_of_constant(name))
    return column_value


def _result_column(node: exp.Expr, parts: list[str], scope: ColumnScope) -> ColumnValue | None:
    """The column of the SELECT that a name in HAVING or ORDER BY means; aggregates see what FROM reads first.

    Spark's ColumnResolutionHelper.resolveColWithAgg comes after the columns of the SELECT, but inside aggregates.
    Measured: before brackets (`a[0]`) HAVING sees what FROM reads, and ORDER BY a column that has elements.
    """
    column = scope.results.get(parts[0].lower())
    above = node.parent if column is not None else None
    while above is not None and not isinstance(above, (exp.Having, exp.Order, exp.Query)):
        if is_aggregate(above):
            return None
        above = above.parent
    if column is None or (
        isinstance(node.parent, exp.Bracket) and node.parent.this is node and not _may_have_elements(column, above)
    ):
        return None
    try:
        field_of(column, parts, 1)
    except Missing:
        return None
    return column


def _may_have_elements(column: ColumnValue, clause: exp.Expr | None) -> bool:
    """Whether a column of the SELECT may have elements, for a clause that sees it then."""
    return not isinstance(clause, exp.Having) and family(column.type) in {"", "array", "map", "struct"}


def _field_of_bound(bound: ColumnValue, parts: list[str]) -> ResolvedName:
    value, path = field_of(bound, parts, 1)
    return ResolvedName(value, [bound], 1, path)


def _field_value(walk: Walk, base: exp.Expr, identifiers: list[exp.Identifier], scope: ColumnScope) -> ColumnValue:
    if not identifiers:
        return ColumnValue(None, origins(_values_quietly(walk, base, scope)))
    result = value(walk, base, scope)
    if result.type == "variant" and is_path(base, walk.text):
        return ColumnValue("variant", result.origins)
    parts = [identifier.this for identifier in identifiers]
    for position in range(len(parts)):
        walk.part_names[id(identifiers[position])] = part_name(result, parts[position])
        try:
            result = member(result, parts, position)
        except Missing as missing:
            walk.miss(missing, identifiers, scope)
            return ColumnValue(None, result.origins)
    return result


def _identifier(_: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    return scope.variables.get(node.name.lower(), NOTHING)


def _bracket(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    base = value(walk, node.this, scope)
    indexes = values(walk, node.expressions, scope)
    key = node.expressions[0] if len(indexes) == 1 else None
    name = walk.name_of(node)
    if is_path(node, walk.text):
        return _variant_path(walk, node, base)
    if name and key is not None:
        check_element_at(walk, name, node, [(node.this, base), (key, indexes[0])])
        return _element_value(base, indexes)
    if key is not None and family(base.type) == "struct" and family(indexes[0].type) not in {"", "string"}:
        type_mismatch.check_index(walk, node, base, key, indexes[0])
    many = (
        spark_types.fields(spark_types.element(base.type)) is not None
        and isinstance(key, exp.Literal)
        and key.is_string
    )
    if many or spark_types.fields(base.type) is not None or base.parts is not None:
        try:
            return member(base, [key.name], 0) if isinstance(key, exp.Literal) else NOTHING
        except Missing:
            message = f"{type_mismatch.short_name(node.this)} has no field '{key.name if key is not None else ''}'"
            walk.fault("unknown-column", message, "Name one of its fields.", node.this, node)
            return ColumnValue(None, base.origins)
    if len(indexes) == 1:
        type_mismatch.check_index(walk, node, base, node.expressions[0], indexes[0])
    return _element_value(base, indexes)


def _variant_path(walk: Walk, node: exp.Expr, base: ColumnValue) -> ColumnValue:
    """`v:a.b[0]`: a part of a VARIANT is one."""
    if base.type not in {None, "variant"}:
        message = f"a path (:) leads into a VARIANT, and {type_mismatch.short_name(node.this)} is {base.type}"
        hint = "Name a field with a dot, an element in brackets; parse_json(..) makes a VARIANT of a string."
        walk.fault(type_mismatch.CODE, message, hint, node.this, node)
        return ColumnValue(None, base.origins)
    return ColumnValue(base.type, base.origins)


def _element_value(base: ColumnValue, indexes: Sequence[ColumnValue]) -> ColumnValue:
    if any(index.origins for index in indexes):
        return ColumnValue(element_type(base.type), origins([base, *indexes]))
    return ColumnValue(element_type(base.type), base.origins, base.exact)


def element_type(type_: str | None) -> str | None:
    """The type of an element of an array, or of a value of a map."""
    return spark_types.element(type_) or spark_types.entry(type_)[1]


def _literal(_: Walk, node: exp.Expr, __: ColumnScope) -> ColumnValue:
    return ColumnValue("string" if node.is_string else number_type(node.name))


def number_type(text: str, sign: int = 1) -> str:
    """The type of a number as written."""
    if "e" in text.lower():
        return "double"
    whole, point, behind = text.partition(".")
    digits = (whole + behind).lstrip("0")
    if point:
        return f"decimal({max(len(digits), len(behind), 1)},{len(behind)})"
    if sign * int(whole) in range(-_INT, _INT):
        return "int"
    return "bigint" if sign * int(whole) in range(-_LONG, _LONG) else f"decimal({len(digits)},0)"


def _negative(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return ColumnValue(number_type(node.this.name, -1))
    inner = value(walk, node.this, scope)
    is_number = inner.type is not None and is_numeric(inner.type)
    if isinstance(node.this, exp.Cast) and isinstance(node.this.this, exp.Literal) and not is_number:
        # -3::string casts -3, and the tree negates what is cast.
        return ColumnValue(None)
    type_mismatch.check_arguments(walk, "negative", node, [(node.this, inner)])
    return ColumnValue("double" if inner.type in {"string", "void"} else inner.type, inner.origins)


def _arithmetic(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """`a + b - c || d`; a long sum is a deep tree on its left, so that it is not walked by recursion."""
    steps = [node]
    while type(steps[-1].this) in _CHAINED:
        steps.append(steps[-1].this)
    parts = [value(walk, steps[-1].this, scope)]
    left_value = parts[0]
    for step in reversed(steps):
        parts.append(value(walk, step.expression, scope))
        left_value = ColumnValue(_result_type(walk, step, left_value, parts[-1]))
        if left_value.type is not None:
            walk.types[id(step)] = left_value.type
    return ColumnValue(left_value.type, origins(parts))


def _result_type(walk: Walk, node: exp.Expr, left_value: ColumnValue, right_value: ColumnValue) -> str | None:
    sign = _CHAINED[type(node)]
    type_mismatch.check_operands(walk, node, sign, left_value, right_value)
    if sign == "||":
        return return_type("concat", [left_value.type, right_value.type])
    return arithmetic(sign, *operand_types([node.this, node.expression], [left_value.type, right_value.type]))


def _bits(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    operands = values(walk, list(children(node)), scope)
    kinds = [v.type for v in operands]
    sign = _BITS.get(type(node))
    if isinstance(node, exp.BitwiseNot):
        type_mismatch.check_arguments(walk, "~", node, [(node.this, operands[0])])
    if sign is not None and operands:
        type_mismatch.check_operands(walk, node, sign, operands[0], operands[-1])
    numeric = all(kind is not None and is_numeric(kind) for kind in kinds)
    return ColumnValue(widest_type(kinds) if numeric else None, origins(operands))


def _truth(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """Conditions; long chains of AND and OR are deep trees, so they are not walked by recursion."""
    waiting, terms = [node], []
    checked: list[exp.Expr] = []
    values_by_id: dict[int, ColumnValue] = {}
    while waiting:
        current = waiting.pop()
        if type(current) in _TRUTHS:
            waiting.extend(reversed(list(children(current))))
            checked.append(current)
        else:
            values_by_id[id(current)] = value(walk, current, scope)
            terms.append(values_by_id[id(current)])
    for current in reversed(checked) if not scope.quiet else ():
        _check_truth(walk, current, values_by_id)
    return ColumnValue("boolean", origins(terms))


def _check_truth(walk: Walk, node: exp.Expr, values_by_id: Mapping[int, ColumnValue]) -> None:
    """Report a condition whose parts do not fit; parts that are not among the known are conditions themselves."""
    # The name of a declared window may stand for a column of the output.
    own = (part for part in children(node) if isinstance(part, exp.Column) and part.name in walk.windows)
    unsure = {id(part): NOTHING for part in own}
    parts = [(part, unsure.get(id(part)) or values_by_id.get(id(part), _TRUE)) for part in children(node)]
    two = len(parts) == len(("left", "right"))
    if type(node) in _COMPARED and two:
        type_mismatch.check_comparison(walk, node, parts[0], parts[1])
    elif isinstance(node, _CONNECTED) and two:
        type_mismatch.check_connective(walk, node, parts[0], parts[1])
    elif isinstance(node, exp.Not) and parts:
        type_mismatch.check_condition(walk, *parts[0], "NOT", text=True)
    elif isinstance(node, exp.Between):
        for bound in parts[1:3]:
            type_mismatch.check_comparison(walk, node, parts[0], bound)
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean) and two:
        type_mismatch.check_comparison(walk, node, parts[0], parts[1])
    elif isinstance(node, _PATTERNS):
        type_mismatch.check_arguments(walk, _PATTERN, node, parts)


def _in(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    operands = [value(walk, node.this, scope), *values(walk, node.expressions, scope)]
    query = node.args.get("query")
    if query is not None:
        output = walk.subquery(query, scope)
        window_lengths.check_in_subquery(walk, node.this, query, output)
        operands.append(_only_column(output))
    listed = [query] if query is not None else node.expressions
    for part in zip(listed, operands[1:], strict=False):
        type_mismatch.check_comparison(walk, node, (node.this, operands[0]), part, "joined")
    return ColumnValue("boolean", origins(operands))


def _exists(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    if not isinstance(node.this, exp.Query):
        return function_calls.value_of_call(walk, "exists", node, scope)
    walk.subquery(node.this, scope)
    return ColumnValue("boolean")


def _scalar(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    output = walk.subquery(node, scope)
    window_lengths.check_scalar_subquery(walk, node, output)
    return _only_column(output)


def _only_column(output: OutputColumns) -> ColumnValue:
    if output.open or len(output.columns) != 1:
        return ColumnValue(None, origins([column.value for column in output.columns]))
    only = output.columns[0].value
    return ColumnValue(only.type, only.origins)


def _cast_target(node: exp.Expr) -> str | None:
    target = node.args["to"]
    return spark_types.of_node(target) if isinstance(target, exp.DataType) else None


def _is_typed_literal(node: exp.Expr) -> bool:
    """Whether a cast is the word of `date '2024-01-01'`, in which the parser puts the casts behind it."""
    inner = node.this
    while isinstance(inner, exp.Cast):
        inner = inner.this
    literal = isinstance(inner, exp.Literal) and inner.is_string
    added = isinstance(node.parent, (exp.AtTimeZone, exp.FromTimeZone))
    return literal and not added and type(node) is exp.Cast and "start" not in node.meta


def _cast(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    inner = value(walk, node.this, scope)
    type_ = _cast_target(node)
    if isinstance(node.this, exp.Cast) and _is_typed_literal(node):
        # date '2024-01-01'::string is a date as a string; in the tree it is the text as a string as a date.
        type_mismatch.check_cast(walk, node, type_, _cast_target(node.this))
        return ColumnValue(_cast_target(node.this), inner.origins)
    # sqlglot writes casts of its own around what some functions take.
    if walk.name_of(node) == "to_timestamp":
        type_mismatch.check_arguments(walk, "to_timestamp", node, [(node.this, inner)])
    elif not isinstance(node.parent, (exp.AtTimeZone, exp.FromTimeZone)):
        type_mismatch.check_cast(walk, node, inner.type, type_)
    return ColumnValue(type_, inner.origins)


def _case(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    tested = [value(walk, node.this, scope)] if isinstance(node.this, exp.Expr) else []
    compared = (node.this, tested[0]) if tested else None
    results = []
    for branch in node.args.get("ifs") or ():
        tested.append(value(walk, branch.this, scope))
        if compared is not None:
            type_mismatch.check_comparison(walk, node, compared, (branch.this, tested[-1]))
        else:
            type_mismatch.check_condition(walk, branch.this, tested[-1], "WHEN")
        results.append((branch.args["true"], value(walk, branch.args["true"], scope)))
    default = node.args.get("default")
    if default is not None:
        results.append((default, value(walk, default, scope)))
    type_mismatch.check_common_type(walk, node, results, "CASE")
    values_given = [v for _, v in results]
    return ColumnValue(widest_type(v.type for v in values_given), origins([*tested, *values_given]))


def _if(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    branches = [node.args[key] for key in ("true", "false") if isinstance(node.args.get(key), exp.Expr)]
    condition, results = value(walk, node.this, scope), values(walk, branches, scope)
    type_mismatch.check_condition(walk, node.this, condition, "IF")
    type_mismatch.check_common_type(walk, node, list(zip(branches, results, strict=True)), "IF")
    return ColumnValue(widest_type(v.type for v in results), origins([condition, *results]))


def _interval(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    places = _values_quietly(walk, node, scope)
    unit = node.args.get("unit")
    words = (
        [unit.this.name, unit.expression.name] if isinstance(unit, exp.IntervalSpan) else [unit.name if unit else ""]
    )
    if not unit and isinstance(node.this, exp.Literal):
        words = [word for word in node.this.name.split() if word[0].isalpha()]
    units = [word.lower().removesuffix("s") for word in words]
    units = ["day" if unit == "week" else "second" if unit.endswith("second") else unit for unit in units]
    sure = bool(units) and all(unit in _UNITS for unit in units)
    return ColumnValue(interval(*units) if sure else None, origins(places))


def _shell(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    inner = node.expression if isinstance(node, (exp.PropertyEQ, exp.Kwarg)) else node.this
    return value(walk, inner, scope)


def _distinct(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """What is DISTINCT: one value, or several."""
    operands = values(walk, node.expressions, scope)
    return operands[0] if len(operands) == 1 else ColumnValue(None, origins(operands))


def _ordered_argument(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    for part in node.expressions:
        by = part.this if isinstance(part, exp.Ordered) else part
        note_sort_key(walk, by, value(walk, by, scope), "sort", "ORDER BY")
    return value(walk, node.this, scope) if isinstance(node.this, exp.Expr) else NOTHING


def _window_call(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    before, scope.outside = scope.outside, False
    result = _value_over_window(walk, node, scope)
    if scope.outside:
        order, call = node.args.get("order"), function_placement.inner_function(node.this)
        sorts = [part.this for part in order.expressions] if order is not None else []
        # Measured: Spark takes an expression of such a column, and not the column alone.
        parts = [*(node.args.get("partition_by") or ()), *sorts, *list(children(call))[:1]]
        walk.correlated([part for part in parts if isinstance(part, (exp.Column, exp.Dot))], scope, "in OVER")
        scope.outside = True
    scope.outside = scope.outside or before
    return result


def _value_over_window(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    for part in node.args.get("partition_by") or ():
        note_sort_key(walk, part, value(walk, part, scope), "window", "PARTITION BY")
    order = node.args.get("order")
    sorts = [(part, value(walk, part, scope)) for part in order.expressions] if order is not None else []
    for part, computed in sorts:
        note_sort_key(walk, part, computed, "window", "ORDER BY")
    function_placement.check_over(walk, node, node.this)
    function_placement.check_over_alias(walk, node, scope)
    function = walk.name_of(function_placement.inner_function(node.this))
    if order is None and not node.args.get("alias") and function in _RANKING:
        message = f"{function}() needs an order"
        walk.fault("misplaced-expression", message, "Write OVER (PARTITION BY .. ORDER BY ..).", node)
    window = function_placement.named_window(node)
    if window is not None and window.args.get("spec") is not None:
        named_order = window.args.get("order")
        sorts = (
            [(part, value(walk, part, scope)) for part in named_order.expressions] if named_order is not None else []
        )
        function_placement.check_frame(walk, node, window.args["spec"], function, sorts)
    elif node.args.get("spec") is not None:
        function_placement.check_frame(walk, node, node.args["spec"], function, sorts)
    return value(walk, node.this, scope)


def note_sort_key(walk: Walk, node: exp.Expr, computed: ColumnValue, how: str, clause: str) -> None:
    walk.influence(computed.origins, how)
    type_mismatch.check_sort_key(walk, node, computed, clause)


def note_filter(walk: Walk, node: exp.Expr, scope: ColumnScope, how: str, clause: str) -> None:
    computed = value(walk, node, scope)
    walk.influence(computed.origins, how)
    type_mismatch.check_condition(walk, node, computed, clause)
    if computed.type == "void" and clause == "WHERE":
        walk.fault(type_mismatch.CODE, f"{clause} needs a condition, not NULL", "Write a condition.", node, node)


def _filter(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    inner = value(walk, node.this, scope)
    where = node.expression
    where = where.this if isinstance(where, exp.Where) else where
    condition = value(walk, where, scope)
    type_mismatch.check_condition(walk, where, condition, "FILTER")
    function_placement.check_filter(walk, node.this, where)
    if condition.type == "void":
        walk.fault(type_mismatch.CODE, "FILTER needs a condition, not NULL", "Write a condition.", where, node)
    return ColumnValue(inner.type, origins([inner, condition]))


def _within_group(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """`percentile_cont(0.5) within group (order by a)`: the value is that of the order."""
    within = node.args.get("expression")
    order = [ordered.this for ordered in within.expressions] if isinstance(within, exp.Expr) else []
    keys = values(walk, order, scope)
    name = walk.name_of(node.this)
    inner = value(walk, node.this, scope)
    if name in {"percentile_cont", "percentile_disc", "mode"} and keys:
        type_mismatch.check_arguments(walk, name, node, list(zip(order, keys, strict=True)))
        return ColumnValue(return_type(name, [keys[0].type, inner.type]), origins([*keys, inner]))
    for part, by in zip(order, keys, strict=True):
        note_sort_key(walk, part, by, "sort", "ORDER BY")
    return inner


def _struct(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    parts: dict[str, ColumnValue] = {}
    members: list[tuple[str, str | None]] = []
    for name, part in _members(walk, node, scope):
        parts[name.lower()] = part
        members.append((name, part.type))
    if any(_is_open(part, scope) for part in node.expressions):
        return ColumnValue(None, origins(list(parts.values())))
    return ColumnValue(spark_types.struct(members), origins(list(parts.values())), parts=parts)


def _is_open(part: exp.Expr, scope: ColumnScope) -> bool:
    """Whether an item of a struct is a star that stands for columns that are not all known."""
    output = _star_columns(part, scope)
    return output is not None and output.open


def _star_columns(part: exp.Expr, scope: ColumnScope) -> OutputColumns | None:
    """What `*`, `t.*` or `a_struct.*` stands for; None if it is not a star, or that is unknown."""
    if isinstance(part, exp.Star):
        return OutputColumns(scope.columns, scope.open)
    if not isinstance(part, exp.Column) or not isinstance(part.this, exp.Star):
        return None
    names = [name.name for name in part.parts if isinstance(name, exp.Identifier)]
    output = scope.starred(names[-1].lower())
    if output is not None:
        return output
    try:
        base = scope.look_up(names)
        fields = [name for name, _ in spark_types.fields(base.type) or ()]
        return OutputColumns([ScopeColumn(name, member(base, [name], 0)) for name in fields], open=not fields)
    except Missing:
        return OutputColumns([], open=True)


def _members(walk: Walk, node: exp.Expr, scope: ColumnScope) -> Iterator[tuple[str, ColumnValue]]:
    for position, part in enumerate(node.expressions, 1):
        output = _star_columns(part, scope)
        if output is not None:
            yield from ((column.name, column.value) for column in output.columns)
            continue
        name = f"col{position}"
        if isinstance(part, (exp.Column, exp.Alias, exp.PropertyEQ, exp.Identifier)) or (
            isinstance(part, exp.Dot) and path(part)[1] is None
        ):
            name_node = part.this if isinstance(part, exp.PropertyEQ) else part
            name = name_node.output_name or name_node.name or name
        yield name, value(walk, part, scope)


def _map(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """`map(k, v, ..)`, which the tree keeps as two lists."""
    sides = [node.args.get("keys"), node.args.get("values")]
    lists = [values(walk, side.expressions if side is not None else [], scope) for side in sides]
    for side, entries in zip(sides, lists, strict=True):
        if side is not None:
            type_mismatch.check_common_type(walk, node, list(zip(side.expressions, entries, strict=True)), "map()")
    if sides[0] is not None:
        check_map_keys(walk, node, list(zip(sides[0].expressions, lists[0], strict=True)))
    kinds = [widest_type(v.type for v in side) for side in lists]
    return ColumnValue(spark_types.map_of(*kinds), origins([*lists[0], *lists[1]]))


def _extract(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    return function_calls.value_of_call(walk, "extract", node, scope)


def _star(_: Walk, __: exp.Expr, ___: ColumnScope) -> ColumnValue:
    return NOTHING


def _constant(type_: str) -> Callable[[Walk, exp.Expr, ColumnScope], ColumnValue]:
    return lambda *_: ColumnValue(type_)


def _time_added(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    operands = [value(walk, node.this, scope), value(walk, node.expression, scope)]
    type_mismatch.check_arguments(walk, "date_add", node, [(node.this, operands[0])])
    type_mismatch.check_arguments(walk, "ceil", node, [(node.expression, operands[1])])
    kind = operands[0].type
    return ColumnValue("timestamp" if kind in {"date", "string", "void"} else kind, origins(operands))


def _difference(walk: Walk, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    """`datediff(a, b)` counts days; `timestampdiff(hour, a, b)` the given unit."""
    operands = [value(walk, node.this, scope), value(walk, node.expression, scope)]
    type_mismatch.check_arguments(
        walk, "datediff", node, list(zip((node.this, node.expression), operands, strict=True))
    )
    return ColumnValue("bigint" if node.args.get("unit") else "int", origins(operands))


_HANDLERS: dict[type[exp.Expr], Callable[[Walk, exp.Expr, ColumnScope], ColumnValue]] = {
    exp.Column: _column, exp.Dot: _column, exp.Identifier: _identifier, exp.Bracket: _bracket,
    exp.Literal: _literal, exp.Boolean: _constant("boolean"), exp.Null: _constant("void"), exp.Neg: _negative,
    exp.Var: _star, exp.Star: _star, exp.DataType: _star, exp.In: _in, exp.Exists: _exists,
    exp.Cast: _cast, exp.TryCast: _cast, exp.Case: _case, exp.If: _if, exp.Interval: _interval,
    exp.Tuple: _struct, exp.Distinct: _distinct, exp.Order: _ordered_argument, exp.Window: _window_call,
    exp.Filter: _filter, exp.WithinGroup: _within_group, exp.Struct: _struct, exp.VarMap: _map,
    exp.TimestampAdd: _time_added, exp.TimestampDiff: _difference, exp.DateDiff: _difference,
    exp.Extract: _extract, exp.HexString: _constant("binary"),
    exp.BitwiseAnd: _bits, exp.BitwiseOr: _bits, exp.BitwiseXor: _bits, exp.BitwiseNot: _bits,
    **dict.fromkeys(_CHAINED, _arithmetic), **dict.fromkeys(_TRUTHS, _truth), **dict.fromkeys(_SHELLS, _shell),
}  # fmt: skip
