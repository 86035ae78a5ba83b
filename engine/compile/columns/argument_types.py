"""Functions whose arguments must fit each other, or that take more than one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from engine.compile.columns import type_mismatch
from engine.compile.columns.column_scope import ColumnValue
from engine.compile.columns.walk import Walk
from engine.compile.types import spark_types
from engine.compile.types.comparable_types import INTERVALS, TIMES, family, have_common_type, is_groupable

Parts = Sequence[tuple[exp.Expr, ColumnValue]]
_SIGNS = {
    "mod": "%", "pmod": "%", "try_add": "+", "try_divide": "/", "try_mod": "%", "try_multiply": "*",
    "try_subtract": "-",
}  # fmt: skip
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_COUNTED = {"small", "bigint", "string", *TIMES}


def check_known_function(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> bool:
    """Report arguments of a function that is known here; whether it is."""
    rule = _RULES.get(name)
    if rule is not None:
        rule(walk, name, node, parts)
    return rule is not None


def _check_two_arrays(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    type_mismatch.check_arguments(walk, name, node, parts)
    if len(parts) > 1:
        (_, left_value), (second, right_value) = parts[:2]
        if (
            spark_types.element(left_value.type)
            and spark_types.element(right_value.type)
            and not have_common_type(left_value.type, right_value.type, "compared")
        ):
            _report_difference(walk, name, left_value, right_value, second, node)


def _check_array_insert(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    type_mismatch.check_arguments(walk, name, node, parts)
    if len(parts) > 2:  # noqa: PLR2004
        element, inserted = spark_types.element(parts[0][1].type), parts[2][1].type
        if (
            element is not None
            and inserted is not None
            and not have_common_type(spark_types.array(element), spark_types.array(inserted), "compared")
        ):
            _report_difference(walk, name, parts[0][1], parts[2][1], parts[2][0], node)


def _report_difference(
    walk: Walk, name: str, left_value: ColumnValue, right_value: ColumnValue, at: exp.Expr, node: exp.Expr
) -> None:
    message = f"{name}() does not take {left_value.type} and {right_value.type}"
    walk.fault(type_mismatch.CODE, message, "Cast one of them so that the elements have the same type.", at, node)


def _check_sign(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    if len(parts) > 1:
        type_mismatch.check_operands(walk, node, _SIGNS[name], parts[0][1], parts[1][1])


def _check_equal_null(walk: Walk, _: str, node: exp.Expr, parts: Parts) -> None:
    if len(parts) > 1:
        type_mismatch.check_comparison(walk, node, parts[0], parts[1])


def _check_flatten(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    type_ = parts[0][1].type if parts else None
    kind = family(spark_types.element(type_))
    if (family(type_) and family(type_) != "array") or (kind and kind != "array") or type_ == "array<void>":
        hint = "Pass an array of arrays; an array of other values is already flat."
        walk.fault(type_mismatch.CODE, f"{name}() does not take {type_}", hint, parts[0][0], node)


def _check_sequence(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    for argument, value in parts[:2]:
        kind = family(value.type)
        if kind and kind not in _COUNTED:
            mismatch = f"{type_mismatch.short_name(argument)} is {value.type}"
            message = f"{name}() counts whole numbers, dates or timestamps, and {mismatch}"
            walk.fault(type_mismatch.CODE, message, "Cast it.", argument, node)
            return
    type_mismatch.check_common_type(walk, node, parts[:2], f"{name}()")


def _check_lag_default(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`lag(a, 1, 0)`: the default is of the type of the column."""
    if len(parts) > 2:  # noqa: PLR2004
        value, default = parts[0], parts[2]
        if value[1].type == "void" != default[1].type:
            walk.fault(type_mismatch.CODE, f"{name}() of NULL takes no default", "Cast NULL to a type.", value[0], node)
        type_mismatch.check_common_type(walk, node, [value, default], f"{name}()")


def _check_hash(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    for argument, value in parts:
        if value.type is not None and (not is_groupable(value.type) or value.type == "variant"):
            hint = "Use to_json(..) of it."
            walk.fault(type_mismatch.CODE, f"{name}() does not take {value.type}", hint, argument, node)


def _check_texts(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """Texts, or bytes all along."""
    type_mismatch.check_arguments(walk, name, node, parts)
    kinds = {family(value.type) for _, value in parts[:2]}
    if "binary" in kinds and "string" in kinds:
        walk.fault(type_mismatch.CODE, f"{name}() cannot mix binary and string", "Cast one of them.", parts[0][0], node)


def _check_concat_ws(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`concat_ws`: texts and arrays of texts."""
    for argument, value in parts:
        inner = spark_types.element(value.type) or value.type
        if family(inner) in {"array", "map", "struct"}:
            walk.fault(
                type_mismatch.CODE, f"{name}() does not take {value.type}", "Use to_json(..) of it.", argument, node
            )


def _check_array_join(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`array_join`: an array of what can be written as text."""
    type_mismatch.check_arguments(walk, name, node, parts)
    if parts and family(spark_types.element(parts[0][1].type)) in {"array", "map", "struct"}:
        type_ = parts[0][1].type
        walk.fault(type_mismatch.CODE, f"{name}() does not take {type_}", "Use to_json(..) of it.", parts[0][0], node)


def check_map_keys(walk: Walk, node: exp.Expr, parts: Parts) -> None:
    """Report keys of a map that hold maps, or are of type VARIANT."""
    for argument, value in parts:
        if value.type is not None and (not is_groupable(value.type) or value.type == "variant"):
            walk.fault(
                type_mismatch.CODE, f"a key of a map cannot be {value.type}", "Use to_json(..) of it.", argument, node
            )


def _check_reverse(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    for argument, value in parts[:1]:
        if family(value.type) in {"map", "struct"}:
            hint = "Pass a string or an array."
            walk.fault(type_mismatch.CODE, f"{name}() does not take {value.type}", hint, argument, node)


def _check_make_timestamp(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`make_timestamp(date, time, zone)`, or one of six numbers (MakeTimestampLTZExpressionBuilder)."""
    if len(parts) > 3:  # noqa: PLR2004
        type_mismatch.check_arguments(walk, name, node, parts)
    elif parts and family(parts[0][1].type) not in {"", "date", "string"}:
        message = f"{name}() takes a date and a time, or six numbers, and the first is {parts[0][1].type}"
        walk.fault(type_mismatch.CODE, message, "Pass date(ts) of a timestamp.", parts[0][0], node)


def _check_width_bucket(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`width_bucket`: numbers, or intervals all along."""
    if len({family(value.type) for _, value in parts[:3]} & INTERVALS) == 1 and not any(
        family(value.type) not in {"", *INTERVALS} for _, value in parts[:3]
    ):
        return
    type_mismatch.check_arguments(walk, name, node, parts)


def _check_to_timestamp(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`to_timestamp(a, format)`: no numbers where there is a format."""
    type_mismatch.check_arguments(walk, name, node, parts[:1])
    if len(parts) > 1 and family(parts[0][1].type) in {"small", "bigint", "decimal", "float"}:
        message = (
            f"{name}() with a format takes a string, and {type_mismatch.short_name(parts[0][0])} is {parts[0][1].type}"
        )
        walk.fault(type_mismatch.CODE, message, "Cast it to STRING.", parts[0][0], node)


def check_extracted_part(walk: Walk, unit: str, node: exp.Expr, value: ColumnValue) -> None:
    """Report a part that an interval does not have: `extract(year from interval '1' month)`."""
    type_ = value.type or ""
    if not type_.startswith("interval ") or unit.removesuffix("s") not in _UNITS:
        return
    ends = [_UNITS.index(word) for word in type_.split() if word in _UNITS]
    if ends and not ends[0] <= _UNITS.index(unit.removesuffix("s")) <= ends[-1]:
        hint = "Extract a unit that the type has."
        walk.fault(type_mismatch.CODE, f"{type_} has no {unit}", hint, node)


def check_element_at(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """Report `element_at(x, y)` of what has no elements, or under a key that it cannot have."""
    type_mismatch.check_arguments(walk, name, node, parts[:1])
    if len(parts) > 1:
        (base, container), (key, index) = parts[:2]
        container_family, index_family = family(container.type), family(index.type)
        key_type = spark_types.entry(container.type)[0]
        whole = container_family != "array" or not index_family or index_family in {"small", "bigint"}
        if not whole or (
            key_type is not None
            and not have_common_type(spark_types.array(key_type), spark_types.array(index.type), "compared")
        ):
            message = f"{name}() of {container.type} takes no {index.type}"
            walk.fault(type_mismatch.CODE, message, "Count from 1 in an array; name a key of a map.", key, base, node)


def _check_sort_array(walk: Walk, name: str, node: exp.Expr, parts: Parts) -> None:
    """`sort_array(tags, false)`: the order is a BOOLEAN."""
    type_mismatch.check_arguments(walk, name, node, parts)
    for argument, value in parts[1:2]:
        if family(value.type) not in {"", "boolean"} and value.type != "void":
            message = f"sort_array() sorts upwards by true and downwards by false, not by {value.type}"
            walk.fault(type_mismatch.CODE, message, f"Write {name}(a, false).", argument, node)


_RULES: dict[str, Callable[[Walk, str, exp.Expr, Parts], None]] = {
    **dict.fromkeys(("arrays_overlap", "array_union", "array_except", "array_intersect"), _check_two_arrays),
    **dict.fromkeys(_SIGNS, _check_sign),
    **dict.fromkeys(("hash", "xxhash64"), _check_hash),
    **dict.fromkeys(("lag", "lead"), _check_lag_default),
    **dict.fromkeys(("listagg", "string_agg", "overlay"), _check_texts),
    "array_insert": _check_array_insert,
    "array_join": _check_array_join,
    "concat_ws": _check_concat_ws,
    "equal_null": _check_equal_null,
    "flatten": _check_flatten,
    "make_timestamp": _check_make_timestamp,
    "reverse": _check_reverse,
    "sequence": _check_sequence,
    "sort_array": _check_sort_array,
    "to_timestamp": _check_to_timestamp,
    "width_bucket": _check_width_bucket,
}
