"""Type and origins of function calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from engine.compile.columns import function_placement, lambda_checks, type_mismatch
from engine.compile.columns.argument_types import check_extracted_part, check_known_function
from engine.compile.columns.column_scope import NOTHING, ColumnScope, ColumnValue, field_value, origins
from engine.compile.columns.walk import WORDS, Walk, children, operand_types
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.truncation_units import UNITS, unknown_unit
from engine.compile.types import spark_types
from engine.compile.types.builtin_functions import BUILTIN
from engine.compile.types.comparable_types import family, have_common_type
from engine.compile.types.function_types import return_type, rounded_type
from engine.compile.types.widening import wider_type, widest_type
from engine.errors import near

Arguments = Sequence[exp.Expr]
_SECONDS = ("s", "sec", "secs", "second", "seconds")
_ROUNDING = {"bround", "ceil", "ceiling", "floor", "round"}
_OPERATORS = {"mod", "pmod", "try_add", "try_divide", "try_mod", "try_multiply", "try_subtract"}
_PARTS = {
    "year", "y", "years", "yr", "yrs", "yearofweek", "quarter", "qtr", "month", "mon", "mons", "months", "week", "w",
    "weeks", "day", "d", "days", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy", "hour", "h", "hours", "hr",
    "hrs", "minute", "m", "min", "mins", "minutes", "second", "s", "sec", "seconds", "secs",
}  # fmt: skip
_NEAR_PARTS = {
    "epoch": "unix_timestamp(ts)", "dayofyear": "doy", "isodow": "dow_iso", "isoyear": "yearofweek",
    "millisecond": "second, which has fractions", "milliseconds": "second, which has fractions",
    "microsecond": "second, which has fractions", "microseconds": "second, which has fractions",
    "date": "to_date(ts)", "timezone": "current_timezone()",
}  # fmt: skip
# Functions whose arguments have one type, and from which argument on.
_ONE_TYPE = {"array": 0, "coalesce": 0, "ifnull": 0, "nvl": 0, "nvl2": 1}
_LOOKING = {"array_append", "array_contains", "array_position", "array_prepend", "array_remove"}
_PAIR = 2
# Spark's TimeExpression: they fail unless spark.sql.timeType.enabled, which is for Spark's own tests.
_OF_TIMES = {"make_time", "time_diff", "time_trunc", "to_time", "try_to_time"}
_DECIDING = {"exists", "filter", "forall", "map_filter"}
# Of an interval these are TINYINT.
_SMALL_PARTS = (
    "month", "mon", "mons", "months", "h", "hour", "hours", "hr", "hrs", "m", "min", "mins", "minute", "minutes",
)  # fmt: skip


def type_of_constant(name: str) -> str | None:
    """The type of what Spark reads as a call although it has no brackets (current_date)."""
    if name == "grouping__id":
        return "bigint"
    return return_type(name, []) if name in WORDS else None


def value_of_call(walk: Walk, name: str, node: exp.Expr, scope: ColumnScope) -> ColumnValue:
    if name not in BUILTIN:
        _note_unknown_function(walk, name, node)
    elif name in _OF_TIMES:
        message = f"{name}() computes with TIME, a type that Spark 4.1 has not switched on"
        walk.fault("unknown-function", message, "Keep a timestamp, or a string such as '12:30:00'.", node)
    arguments = list(children(node))
    if isinstance(node, (exp.AtTimeZone, exp.FromTimeZone)) and isinstance(node.this, exp.Cast):
        # sqlglot's own cast of what from_utc_timestamp() takes.
        arguments[0] = node.this.this
    if name in function_placement.PLACED or (arguments and isinstance(arguments[0], exp.Distinct)):
        function_placement.check_placement(walk, name, node, arguments)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(walk, arguments, scope)
    if name in _ROUNDING and (len(arguments) > 1 or name.endswith("round")):
        return _round(walk, name, arguments, scope)
    if any(isinstance(argument, exp.Lambda) for argument in arguments):
        lambda_checks.check_lambda_places(walk, name, arguments)
        return _higher_order(walk, name, arguments, scope)
    values = _values(walk, arguments, scope)
    kinds = [v.type for v in values]
    if not scope.quiet:
        _check_unit(walk, name, node)
        _check_arguments(walk, name, node, list(zip(arguments, values, strict=False)))
    if name in _OPERATORS and len(kinds) == len(arguments):
        kinds = operand_types(arguments, kinds)
    return ColumnValue(return_type(name, kinds), origins(values))


def _check_unit(walk: Walk, name: str, node: exp.Expr) -> None:
    """Report a unit for which a function gives NULL in every row; the tree has units spelled in another way."""
    start = node.meta.get("start", -1)
    unit_and_hint = unknown_unit(name, walk.text[start:]) if name in UNITS and start >= 0 else None
    if unit_and_hint is not None:
        message = f"{name}() has no unit '{unit_and_hint[0]}': it would be NULL in every row"
        walk.faults.setdefault(start, QueryFinding("time-part", message, unit_and_hint[1], start))


def _check_arguments(walk: Walk, name: str, node: exp.Expr, parts: list[tuple[exp.Expr, ColumnValue]]) -> None:
    if name in _ONE_TYPE:
        type_mismatch.check_common_type(walk, node, parts[_ONE_TYPE[name] :], f"{name}()")
    elif name in {"greatest", "least"}:
        type_mismatch.check_same_kind(walk, node, parts, f"{name}()")
    elif name in _LOOKING:
        type_mismatch.check_searched_element(walk, name, node, parts)
    elif name == "concat":
        type_mismatch.check_concat(walk, node, parts)
    elif name == "array_sort" and len(parts) == _PAIR:
        type_mismatch.check_arguments(walk, name, node, parts)
        if lambda_checks.sorts_by_lambda(walk, node):
            lambda_checks.check_ordering(walk, parts[1][1], parts[1][0], node)
    elif name == "nullif" and len(parts) == _PAIR:
        type_mismatch.check_comparison(walk, node, parts[0], parts[1])
    elif not check_known_function(walk, name, node, parts):
        type_mismatch.check_arguments(walk, name, node, parts)


def _note_unknown_function(walk: Walk, name: str, node: exp.Expr) -> None:
    """Note a function that Spark does not have; functions of catalogs have names with dots."""
    start, after = node.meta.get("start", -1), node.meta.get("end", 0) + 1
    if (
        start < 0
        or (isinstance(node.parent, exp.Dot) and node.parent.expression is node)
        or not walk.text[after:].lstrip().startswith("(")
    ):
        return
    hint = near(name, BUILTIN)
    hint = hint if hint.startswith("Did you mean") else "Write one of Spark's functions, or a macro."
    walk.faults.setdefault(start, QueryFinding("unknown-function", f"Spark has no function '{name}'", hint, start))


def _values(walk: Walk, arguments: Arguments, scope: ColumnScope) -> list[ColumnValue]:
    values = []
    for argument in arguments:
        if isinstance(argument, exp.Star):
            values += [column.value for column in scope.columns]
        elif not isinstance(argument, (exp.Var, exp.DataType)):
            values.append(walk.value(argument, scope))
    return values


def part_value(value: ColumnValue, type_: str | None) -> ColumnValue:
    """An element of an array, or a key or value of a map."""
    return ColumnValue(type_, value.origins, value.exact)


def _parameter_values(name: str, values: list[ColumnValue]) -> list[ColumnValue]:
    """What the parameters of a function's lambda stand for."""
    first = values[0]
    element = part_value(first, spark_types.element(first.type))
    if name in {"transform_keys", "transform_values", "map_filter"}:
        return [part_value(first, type_) for type_ in spark_types.entry(first.type)]
    if name == "map_zip_with" and len(values) > 1:
        (key, value), (other, second) = (spark_types.entry(map_value.type) for map_value in values[:2])
        # The keys of both maps are cast to one type (TypeCoercion.MapZipWithCoercion).
        keys = ColumnValue(wider_type(key, other), origins(values[:2]))
        return [keys, part_value(first, value), part_value(values[1], second)]
    if name == "zip_with" and len(values) > 1:
        return [element, part_value(values[1], spark_types.element(values[1].type))]
    if name in {"aggregate", "reduce"} and len(values) > 1:
        return [values[1], element]
    return [element, element if name == "array_sort" else ColumnValue("int")]


def _higher_order(walk: Walk, name: str, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    value_arguments = [a for a in arguments if not isinstance(a, exp.Lambda)]
    values = _values(walk, value_arguments, scope)
    if not values:
        return NOTHING
    type_mismatch.check_arguments(
        walk, name, value_arguments[0].parent or value_arguments[0], list(zip(value_arguments, values, strict=False))
    )
    parameters = _parameter_values(name, values)
    bodies = [_lambda_body(walk, a, parameters, scope) for a in arguments if isinstance(a, exp.Lambda)]
    if name in _DECIDING:
        function = next(a for a in arguments if isinstance(a, exp.Lambda))
        type_mismatch.check_condition(walk, function.this, bodies[0], f"{name}()")
    if name in {"aggregate", "reduce"} and len(values) > 1:
        _check_kept_type(walk, name, arguments, values[1], bodies[0])
    if name == "array_sort":
        function = next(a for a in arguments if isinstance(a, exp.Lambda))
        lambda_checks.check_ordering(walk, bodies[0], function.this, function)
    rule = _HIGHER.get(name)
    kinds = [v.type for v in values]
    type_ = rule(kinds, bodies[-1].type) if rule is not None else return_type(name, kinds)
    if name in {"aggregate", "reduce"} and len(bodies) == 1:
        type_ = kinds[1] if len(kinds) > 1 else None
    return ColumnValue(type_, origins([*values, *bodies]))


def _check_kept_type(walk: Walk, name: str, arguments: Arguments, start: ColumnValue, body: ColumnValue) -> None:
    kinds = {family(start.type), family(body.type)}
    if spark_types.nameless(start.type) != spark_types.nameless(body.type) and "" not in kinds:
        message = f"{name}() starts with {start.type}, but its function returns {body.type}"
        function = next(a for a in arguments if isinstance(a, exp.Lambda))
        walk.fault(type_mismatch.CODE, message, f"Start with cast(.. as {body.type}).", function.this, function)


def _lambda_body(walk: Walk, function: exp.Expr, parameters: list[ColumnValue], scope: ColumnScope) -> ColumnValue:
    names = [identifier.name.lower() for identifier in function.expressions]
    before = scope.variables
    scope.variables = {**before, **dict(zip(names, parameters, strict=False))}
    try:
        return walk.value(function.this, scope)
    finally:
        scope.variables = before


_HIGHER: dict[str, Callable[[list[str | None], str | None], str | None]] = {
    "aggregate": lambda argument_types, body: body if argument_types[1] is not None else None,
    "map_zip_with": lambda argument_types, body: spark_types.map_of(
        wider_type(*(spark_types.entry(f)[0] for f in argument_types[:2])), body
    ),
    "reduce": lambda argument_types, body: body if argument_types[1] is not None else None,
    "transform": lambda _, body: spark_types.array(body),
    "transform_keys": lambda argument_types, body: spark_types.map_of(body, spark_types.entry(argument_types[0])[1]),
    "transform_values": lambda argument_types, body: spark_types.map_of(spark_types.entry(argument_types[0])[0], body),
    "zip_with": lambda _, body: spark_types.array(body),
}


def _from_json(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`from_json(text, 'a int')`: the type is in the query."""
    values = _values(walk, arguments, scope)
    type_mismatch.check_arguments(
        walk, "from_json", arguments[0].parent or arguments[0], list(zip(arguments, values, strict=False))
    )
    schema = arguments[1].name if len(arguments) > 1 and isinstance(arguments[1], exp.Literal) else ""
    if not schema.strip():
        return ColumnValue(None, origins(values))
    return ColumnValue(spark_types.normal(f"struct<{schema}>") or spark_types.normal(schema), origins(values))


def _variant(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`variant_get(v, '$.a', 'int')`."""
    values = _values(walk, arguments, scope)
    if not arguments[2:]:
        return ColumnValue("variant", origins(values))
    schema = arguments[2]
    return ColumnValue(spark_types.normal(schema.name) if isinstance(schema, exp.Literal) else None, origins(values))


def _round(walk: Walk, name: str, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`round(x, 2)`, `ceil(x, 2)`: the digits are in the query."""
    values = _values(walk, arguments, scope)
    type_mismatch.check_arguments(
        walk, name, arguments[0].parent or arguments[0], list(zip(arguments, values, strict=False))
    )
    places: int | None = 0
    if len(arguments) > 1:
        sign, digits = (-1, arguments[1].this) if isinstance(arguments[1], exp.Neg) else (1, arguments[1])
        places = sign * int(digits.name) if isinstance(digits, exp.Literal) and digits.is_int else None
    return ColumnValue(rounded_type(name, values[0].type, places) if values else None, origins(values))


def window(time: ColumnValue, name: str = "") -> ColumnValue:
    """The window that a time falls into, declared under a name or not; one of a window takes the time of that."""
    type_: str | None = time.type
    if type_ is not None and type_ != "timestamp_ntz":
        type_ = "timestamp"
    parts = {part: ColumnValue(type_, time.origins, window=name and f"{name}.{part}") for part in ("start", "end")}
    whole = spark_types.struct([("start", type_), ("end", type_)])
    return ColumnValue(whole, time.origins, parts=parts)


def _window(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    values = _values(walk, arguments, scope)
    if values and [name for name, _ in spark_types.fields(values[0].type) or ()] != ["start", "end"]:
        type_mismatch.check_arguments(walk, "window", arguments[0], [(arguments[0], values[0])])
    return window(ColumnValue(values[0].type if values else None, origins(values)))


def _time_part(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`extract(year from ts)`, `date_part('year', ts)`."""
    values = _values(walk, arguments[1:], scope)
    unit = arguments[0].name.lower() if arguments and isinstance(arguments[0], (exp.Var, exp.Literal)) else ""
    if unit and unit not in _PARTS and not scope.quiet:
        nearest = near(unit, [part for part in _PARTS if len(part) > 1])
        hint = f"Write {_NEAR_PARTS[unit]}." if unit in _NEAR_PARTS else nearest
        walk.fault("time-part", f"Spark has no date part '{unit}'", hint, *arguments)
    if values:
        parts = [(arguments[0], NOTHING), (arguments[1], values[0])]
        type_mismatch.check_arguments(walk, "extract", arguments[0].parent or arguments[0], parts)
        check_extracted_part(walk, unit, arguments[1], values[0])
    type_ = ("decimal(8,6)" if unit in _SECONDS else "int") if unit else None
    if unit in _SMALL_PARTS and values and (values[0].type is None or values[0].type.startswith("interval")):
        type_ = "tinyint" if values[0].type else None
    return ColumnValue(type_, origins(values))


def _to_number(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`to_number(text, '999.99')`: the digits are in the query."""
    values = _values(walk, arguments, scope)
    parts = list(zip(arguments, values, strict=False))
    type_mismatch.check_arguments(walk, "to_number", arguments[0].parent or arguments[0], parts)
    shape = arguments[1].name.upper() if len(arguments) > 1 and isinstance(arguments[1], exp.Literal) else ""
    whole, _, behind = shape.replace("D", ".").partition(".")
    digits, scale = (sum(text.count(digit) for digit in "09") for text in (whole, behind))
    return ColumnValue(f"decimal({digits + scale},{scale})" if digits + scale else None, origins(values))


def _counted_units(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`timediff(hour, a, b)`: the first word is not a column."""
    return ColumnValue("bigint", origins(_values(walk, arguments[1:], scope)))


def _arrays_zip(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    values = _values(walk, arguments, scope)
    names = [a.output_name or str(place) for place, a in enumerate(arguments)]
    members = [(name, spark_types.element(v.type)) for name, v in zip(names, values, strict=False)]
    return ColumnValue(spark_types.array(spark_types.struct(members)), origins(values))


def _decode(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`decode(x, 'utf-8')`, or `decode(x, 1, 'one', 2, 'two', 'many')`."""
    values = _values(walk, arguments, scope)
    if len(values) == _PAIR:
        type_mismatch.check_arguments(walk, "decode", arguments[0], list(zip(arguments, values, strict=True)))
    results = values[2::2] + (values[-1:] if len(values) % 2 == 0 else [])
    return ColumnValue(widest_type(v.type for v in results) if values[2:] else "string", origins(values))


def _count(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    """`count(*)` comes from no column."""
    values = _values(walk, [a for a in arguments if not isinstance(a, exp.Star)], scope)
    return ColumnValue("bigint", origins(values))


def _histogram(walk: Walk, arguments: Arguments, scope: ColumnScope) -> ColumnValue:
    values = _values(walk, arguments, scope)
    middle = "double" if values[0].type in {"string", "void"} else values[0].type
    return ColumnValue(spark_types.array(spark_types.struct([("x", middle), ("y", "double")])), origins(values))


_SPECIAL: dict[str, Callable[[Walk, Arguments, ColumnScope], ColumnValue]] = {
    "arrays_zip": _arrays_zip,
    "count": _count,
    "date_part": _time_part,
    "datepart": _time_part,
    "decode": _decode,
    "extract": _time_part,
    "from_csv": _from_json,
    "from_json": _from_json,
    "from_xml": _from_json,
    "histogram_numeric": _histogram,
    "session_window": _window,
    "timediff": _counted_units,
    "to_number": _to_number,
    "try_to_number": _to_number,
    "try_variant_get": _variant,
    "variant_get": _variant,
    "window": _window,
}


def generated_columns(walk: Walk, node: exp.Expr, scope: ColumnScope) -> list[tuple[str, ColumnValue]] | None:
    """The columns of a function that makes rows; None if it is none, or its columns are not known."""
    name = walk.name_of(node).removesuffix("_outer")
    maker = _GENERATORS.get(name)
    if maker is None:
        return None
    arguments = list(children(node))
    values = _values(walk, arguments, scope)
    parts = list(zip(arguments, values, strict=False))
    type_mismatch.check_arguments(walk, name, node, parts)
    if name == "stack":
        _stacked_alike(walk, node, parts)
    return maker(arguments, values)


def _stacked_alike(walk: Walk, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]]) -> None:
    """Report values that stack() puts into one column and that have no common type; it reads no text as a number."""
    rows = parts[0][0] if parts else None
    if isinstance(rows, exp.Neg) or (isinstance(rows, exp.Literal) and rows.is_int and not int(rows.name)):
        walk.fault(type_mismatch.CODE, "stack() makes at least one row", "Write stack(2, a, b).", rows, node)
    elif isinstance(rows, exp.Literal) and rows.is_int:
        items = parts[1:]
        width = -(-len(items) // int(rows.name))
        for place, part in enumerate(items[width:], width):
            one, two = items[place % width][1].type, part[1].type
            if _have_different_types(one, two) or not have_common_type(
                spark_types.array(one), spark_types.array(two), "compared"
            ):
                message = f"stack() returns {one} and {two} in one column"
                walk.fault(type_mismatch.CODE, message, "Cast them to the same type.", part[0], node)
                return


def _have_different_types(one: str | None, two: str | None) -> bool:
    """Whether two types differ, by their values and not only by the names of fields; Spark casts neither."""
    if one is None or two is None or "void" in {one, two}:
        return False
    return not {family(one), family(two)} & {""} and spark_types.nameless(one) != spark_types.nameless(two)


def generates(walk: Walk, node: exp.Expr) -> bool:
    return walk.name_of(node).removesuffix("_outer") in _GENERATORS


def is_scalar_function(name: str) -> bool:
    """Whether Spark has a function of this name, and it gives one value."""
    return name in BUILTIN and name.removesuffix("_outer") not in _GENERATORS and name not in _TABLES


# Functions of FROM whose columns are not known here, and what only the grammar calls a function.
_TABLES = {"collations", "python_worker_logs", "sql_keywords", "identifier"}


def _explode(_: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    if len(values) != 1 or values[0].type is None:
        return None
    value = values[0]
    key, inner = spark_types.entry(value.type)
    if key is not None:
        return [("key", part_value(value, key)), ("value", part_value(value, inner))]
    element = spark_types.element(value.type)
    return None if element is None else [("col", part_value(value, element))]


def _with_position(arguments: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    columns = _explode(arguments, values)
    return None if columns is None else [("pos", ColumnValue("int")), *columns]


def _inline(_: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    members = spark_types.fields(spark_types.element(values[0].type)) if values else None
    if members is None:
        return None
    row = part_value(values[0], spark_types.element(values[0].type))
    return [(name, field_value(row, name, type_)) for name, type_ in members]


def _stack(arguments: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    rows = arguments[0] if arguments else None
    if not isinstance(rows, exp.Literal) or not rows.is_int or not int(rows.name):
        return None
    items, count = values[1:], int(rows.name)
    width = -(-len(items) // count)
    columns = [items[place::width] for place in range(width)]
    return [(f"col{i}", ColumnValue(widest_type(v.type for v in c), origins(c))) for i, c in enumerate(columns)]


def _json_tuple(_: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    return [(f"c{place}", ColumnValue("string", values[0].origins)) for place in range(len(values) - 1)]


def _range(_: Arguments, __: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    return [("id", ColumnValue("bigint"))]


def _variant_exploded(_: Arguments, values: list[ColumnValue]) -> list[tuple[str, ColumnValue]] | None:
    places = origins(values)
    return [
        ("pos", ColumnValue("int")),
        ("key", ColumnValue("string", places)),
        ("value", ColumnValue("variant", places)),
    ]


_GENERATORS: dict[str, Callable[[Arguments, list[ColumnValue]], list[tuple[str, ColumnValue]] | None]] = {
    "explode": _explode,
    "inline": _inline,
    "json_tuple": _json_tuple,
    "posexplode": _with_position,
    "range": _range,
    "stack": _stack,
    "variant_explode": _variant_exploded,
}
