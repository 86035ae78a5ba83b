"""Types that do not fit: what Spark's analyser rejects; only certain types count, and a test asks Spark again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.compile.columns.column_scope import ColumnValue
from engine.compile.columns.walk import Walk
from engine.compile.types.comparable_types import (
    INTERVALS,
    NESTED,
    NUMBERS,
    TAKES,
    TIMES,
    WANTED,
    Where,
    are_comparable,
    family,
    have_common_type,
    is_groupable,
    is_ordered,
)
from engine.compile.types.moments import is_moment
from engine.compile.types.spark_types import element

CODE = "type-mismatch"
_QUALITIES = {"sorted": is_ordered, "hashed": is_groupable}
_NUMERIC = NUMBERS | {"string"}
_OF_NUMBERS = {"%", "*", "/", "div", "&", "|", "^", "+", "-"}
_NO_NUMBER = {
    **dict.fromkeys(("%", "&", "|", "^"), NESTED | TIMES | INTERVALS | {"boolean", "binary", "variant"}),
    **dict.fromkeys(("*", "/", "div", "+", "-"), NESTED | {"boolean", "binary", "variant"}),
}
_WHOLE = {"small", "bigint"}
_COMPARE = "Cast one side so that both have the same type."
_TIME = "Write a time that exists, as in '2026-01-31 18:30:00'."
_CONDITION = "Compare it with a value, such as {} > 0 or {} is not null."
_SECONDS = "Write timestamp_seconds({0}) or date_from_unix_date({0}) for a number that counts seconds or days."


def check_comparison(
    walk: Walk,
    node: exp.Expr,
    left_operand: tuple[exp.Expr, ColumnValue],
    right_operand: tuple[exp.Expr, ColumnValue],
    how: Where = "compared",
) -> None:
    """Report values that cannot be compared; IN looks for a type in which they can be."""
    ours, theirs = family(left_operand[1].type), family(right_operand[1].type)
    if not ours or not theirs:
        return
    if not have_common_type(left_operand[1].type, right_operand[1].type, how):
        message = (
            f"{short_name(left_operand[0])} is {left_operand[1].type} and "
            f"{short_name(right_operand[0])} is {right_operand[1].type}: they cannot be compared"
        )
        hint = "Write the time as a string, such as '2026-01-31'." if {ours, theirs} & TIMES else _COMPARE
        walk.fault(CODE, message, hint, left_operand[0], right_operand[0], node)
    elif "variant" in {ours, theirs} or (ours == theirs == "map"):
        message = f"values of {left_operand[1].type} cannot be compared"
        walk.fault(CODE, message, "Compare its keys, fields or elements.", left_operand[0], node)
    else:
        _check_moment(walk, node, left_operand[0], theirs)
        _check_moment(walk, node, right_operand[0], ours)


def _check_moment(walk: Walk, node: exp.Expr, literal: exp.Expr, other: str) -> None:
    """Report a string that Spark fails to read as the date or timestamp that it is compared with."""
    bare = literal.unnest()
    if other not in TIMES or not isinstance(bare, exp.Literal) or not bare.is_string:
        return
    if not is_moment(bare.name, date=other == "date"):
        message = f"{short_name(literal)} is not a {other.removesuffix('_ntz')}"
        hint = "Write a date that exists, as in '2026-01-31'." if other == "date" else _TIME
        walk.fault(CODE, message, hint, literal, node)


def check_common_type(walk: Walk, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]], place: str) -> None:
    typed_part: tuple[exp.Expr, ColumnValue] | None = None
    for part in parts:
        kind = family(part[1].type)
        if not kind:
            continue
        if typed_part is not None and not have_common_type(typed_part[1].type, part[1].type, "joined"):
            message = f"{place} gives {typed_part[1].type} in one place and {part[1].type} in another"
            walk.fault(CODE, message, "Cast them to the same type.", part[0], node)
            return
        # A text takes the type of what it meets.
        if typed_part is None or family(typed_part[1].type) == "string":
            typed_part = part


def check_operands(walk: Walk, node: exp.Expr, sign: str, left_value: ColumnValue, right_value: ColumnValue) -> None:
    """Report operands that an operator does not take."""
    ours, theirs = family(left_value.type), family(right_value.type)
    arrays = sign == "||" and "array" in {ours, theirs}
    unlike = arrays and (
        not have_common_type(left_value.type, right_value.type, "joined")
        or "void" in {left_value.type, right_value.type}
    )
    if (
        unlike
        or _has_void_operand(sign, left_value, right_value)
        or (ours and theirs and not _fits(sign, ours, theirs))
    ):
        hint = _hint_of_sign(sign, ours, theirs)
        message = f"{sign} does not take {left_value.type} and {right_value.type}"
        walk.fault(CODE, message, hint, node.this if isinstance(node.this, exp.Expr) else node, node)


def _has_void_operand(sign: str, left_value: ColumnValue, right_value: ColumnValue) -> bool:
    """Whether NULL is beside what an operator never takes."""
    other = right_value if left_value.type == "void" else left_value
    return (
        "void" in {left_value.type, right_value.type} and sign in _OF_NUMBERS and family(other.type) in _NO_NUMBER[sign]
    )


def _fits(sign: str, left_family: str, right_family: str) -> bool:
    pair = {left_family, right_family}
    if sign == "||":
        return left_family == right_family == "array" or not pair & NESTED
    if sign in {"&", "|", "^", "div"}:
        whole = pair <= _WHOLE | {"string"} and pair != {"string"}
        return whole or (sign == "div" and (pair <= _WHOLE | {"decimal"} or _same_interval(left_family, right_family)))
    if pair <= _NUMERIC:
        return pair != {"string"}
    if sign in {"+", "-"}:
        return _same_interval(left_family, right_family) or _fits_with_time(sign, left_family, right_family)
    scaled = left_family in INTERVALS and right_family in _NUMERIC
    return (sign in {"*", "/"} and scaled) or (sign == "*" and left_family in _NUMERIC and right_family in INTERVALS)


def _same_interval(left_family: str, right_family: str) -> bool:
    return left_family == right_family and left_family in INTERVALS


def _fits_with_time(sign: str, left_family: str, right_family: str) -> bool:
    if sign == "-":
        return (
            (left_family in TIMES and right_family in TIMES | INTERVALS | {"string"})
            or (left_family == "string" and right_family in TIMES | {"days"})
            or (left_family == "date" and right_family == "small")
        )
    pairs = ((left_family, right_family), (right_family, left_family))
    return any(
        (a in TIMES and b in INTERVALS) or (a == "date" and b == "small") or (a == "string" and b == "days")
        for a, b in pairs
    )


def _hint_of_sign(sign: str, left_family: str, right_family: str) -> str:
    pair = {left_family, right_family}
    if pair & TIMES and pair & NUMBERS:
        return "Add an interval, such as ts + interval 1 hour, or take unix_seconds(ts)."
    if "boolean" in pair:
        return "Cast the condition: cast(.. as int)."
    if sign == "||" and pair & {"map", "struct"}:
        return "Write to_json(..) of it, or name a field."
    if sign == "||":
        return "Join the elements to a string: array_join(.., ',')."
    if "array" in pair:
        return f"Apply {sign} to each element: transform(.., x -> ..), or name one: ..[0]."
    return "Cast the operands to compatible types."


def check_condition(walk: Walk, node: exp.Expr, value: ColumnValue, where: str, *, text: bool = False) -> None:
    """Report what is not true or false where it has to be; `text`: Spark reads a text as one here."""
    kind = family(value.type)
    if value.type == "void" or not kind or kind == "boolean" or (text and kind == "string"):
        return
    name = short_name(node)
    walk.fault(
        CODE, f"{where} takes a condition, and {name} is {value.type}", _CONDITION.format(name, name), node, node
    )


def check_connective(
    walk: Walk, node: exp.Expr, left_operand: tuple[exp.Expr, ColumnValue], right_operand: tuple[exp.Expr, ColumnValue]
) -> None:
    """Report what AND or OR cannot connect."""
    word = node.key.upper()
    kinds = {family(left_operand[1].type), family(right_operand[1].type)}
    for part, value in (left_operand, right_operand):
        check_condition(walk, part, value, word, text=kinds != {"string"})


def check_searched_element(
    walk: Walk, name: str, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]]
) -> None:
    """Report values that cannot be elements of the array that a function looks into."""
    if len(parts) < len(("array", "value")):
        return
    (array, array_value), (item, value) = parts[:2]
    kind = family(array_value.type) or ("void" if array_value.type == "void" else "")
    ours, theirs = family(element(array_value.type)), family(value.type)
    if value.type == "void" and ours and name == "array_contains":
        walk.fault(CODE, f"{name}() never finds NULL", "Write exists(.., x -> x is null).", item, node)
    if kind and kind != "array":
        message = f"{name}() takes an array, and {short_name(array)} is {array_value.type}"
        walk.fault(CODE, message, _hint_of_argument("array", kind, array), array, node)
    elif ours and theirs and (not are_comparable(ours, theirs) or (ours != theirs and "string" in {ours, theirs})):
        message = f"{short_name(array)} is {array_value.type}, and {short_name(item)} is {value.type}"
        walk.fault(
            CODE, message, f"Write a value of the type of its elements, {element(array_value.type)}.", item, node
        )


def check_concat(walk: Walk, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]]) -> None:
    """Report what concat() does not take: arrays beside other things, maps and structs."""
    for part, value in parts[1:]:
        first, kind = family(parts[0][1].type), family(value.type)
        arrays = "array" in {first, kind}
        void = arrays and "void" in {parts[0][1].type, value.type}
        unlike = arrays and not have_common_type(parts[0][1].type, value.type, "joined")
        if void or unlike or (first and kind and not _fits("||", first, kind)):
            message = f"concat() does not take {parts[0][1].type} and {value.type}"
            walk.fault(CODE, message, _hint_of_sign("||", first, kind), part, node)
            return


def check_same_kind(walk: Walk, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]], place: str) -> None:
    """Report texts beside other types, which greatest() and least() do not cast."""
    kinds = {family(value.type) for _, value in parts} - {""}
    if "string" in kinds and len(kinds) > 1:
        message = f"{place} does not compare strings with other types"
        walk.fault(CODE, message, "Cast them to the same type.", node)
    else:
        check_common_type(walk, node, parts, place)


def check_arguments(walk: Walk, name: str, node: exp.Expr, parts: Sequence[tuple[exp.Expr, ColumnValue]]) -> None:
    for (argument, value), word in zip(parts, TAKES.get(name, ()), strict=False):
        kind = family(value.type) or ("void" if value.type == "void" and word.endswith("!") else "")
        if not kind or word == "-":
            continue
        if word in _QUALITIES:
            if not _QUALITIES[word](value.type or ""):
                message = f"{name}() does not take {value.type}"
                walk.fault(CODE, message, "Pass a field, key or element, or to_json(..) of the value.", argument, node)
            continue
        accepted = WANTED[word.removesuffix("!")]
        if kind not in accepted.families:
            message = f"{name}() takes {accepted.words}, and {short_name(argument)} is {value.type}"
            walk.fault(CODE, message, _hint_of_argument(word, kind, argument), argument, node)


def _hint_of_argument(word: str, kind: str, node: exp.Expr) -> str:
    name = short_name(node)
    word = word.removesuffix("!")
    hint = f"Pass {WANTED[word].words}."
    if word == "truth":
        hint = f"Write a condition, such as {name} > 0."
    elif word in {"time", "point"} and kind in NUMBERS:
        hint = _SECONDS.format(name)
    elif kind == "array" and word not in {"map", "time", "point"}:
        hint = f"Use an element ({name}[0]), or call it for each: transform({name}, x -> ..)."
    elif kind in {"struct", "map"}:
        hint = "Use one of its fields or keys, or to_json(..)."
    elif kind == "boolean":
        hint = f"Cast it: cast({name} as int)."
    elif kind == "string" and word in {"array", "many", "map"}:
        hint = f"Create it from the string first: split({name}, ',') or from_json({name}, ..)."
    elif word in {"string", "bytes"}:
        hint = f"Cast it: cast({name} as string)."
    return hint


def check_cast(walk: Walk, node: exp.Expr, source: str | None, target: str | None) -> None:
    ours, theirs = family(source), family(target)
    if not ours or not theirs or theirs not in _NO_CAST.get(ours, ()):
        return
    name = short_name(node.this)
    hint = "Cast one of its fields, keys or elements." if ours in NESTED else "Cast it through another type."
    if ours in NUMBERS and theirs in TIMES:
        hint = _SECONDS.format(name)
    elif ours == "date" and theirs in NUMBERS:
        hint = f"Use unix_date({name}) for the days since 1970, or year({name}), month({name}), .."
    elif ours in NUMBERS and theirs == "binary":
        hint = f"Write cast(cast({name} as string) as binary)."
    elif theirs in NESTED:
        hint = f"Write from_json({name}, '<type>'), or split({name}, ',')."
    walk.fault(CODE, f"{source} cannot be cast to {target}", hint, node.this, node)


_FAR = NESTED | INTERVALS
_NO_CAST: dict[str, frozenset[str]] = {
    "string": NESTED,
    **dict.fromkeys(("small", "bigint", "decimal"), NESTED | {"date", "timestamp_ntz", "binary"}),
    "float": _FAR | {"date", "timestamp_ntz", "binary"},
    "boolean": _FAR | TIMES | {"binary"},
    **dict.fromkeys(("date", "timestamp_ntz"), _FAR | NUMBERS | {"boolean", "binary"}),
    "timestamp": _FAR | {"boolean", "binary"},
    "binary": _FAR | NUMBERS | TIMES | {"boolean"},
    "array": (_FAR | NUMBERS | TIMES | {"boolean", "binary"}) - {"array"},
    "map": (_FAR | NUMBERS | TIMES | {"boolean", "binary", "variant"}) - {"map"},
    "struct": (_FAR | NUMBERS | TIMES | {"boolean", "binary", "variant"}) - {"struct"},
    "variant": INTERVALS,
    "days": NESTED | TIMES | {"float", "boolean", "binary", "variant", "months"},
    "months": NESTED | TIMES | {"float", "boolean", "binary", "variant", "days"},
}


def check_sort_key(walk: Walk, node: exp.Expr, value: ColumnValue, where: str) -> None:
    if value.type is not None and family(value.type) and not is_ordered(value.type):
        message = f"{where} cannot sort by {value.type}"
        walk.fault(CODE, message, "Sort by a field, key or element.", node, node)


def check_index(walk: Walk, node: exp.Expr, base: ColumnValue, key: exp.Expr, index: ColumnValue) -> None:
    """Report `x[y]` of what has no elements, or with an index that fits none."""
    base_family, index_family = family(base.type) or ("void" if base.type == "void" else ""), family(index.type)
    name = short_name(node.this)
    is_string_key = isinstance(key, exp.Literal) and key.is_string
    if base_family == "array" and is_string_key and family(element(base.type)) == "struct":
        return
    if base_family and base_family not in NESTED:
        message = f"{name} is {base.type}, which has no elements"
        walk.fault(CODE, message, f"Use substr({name}, 1, 1) for a part of a string.", node.this, node)
    elif base_family == "struct" and not is_string_key:
        message = f"a field of {name} is accessed by its name, and {short_name(key)} is not a string"
        walk.fault(CODE, message, f"Write {name}.<field>.", key, node)
    elif base_family == "array" and index_family and index_family not in _WHOLE:
        message = f"an element of {name} is accessed by an integer, and {short_name(key)} is {index.type}"
        walk.fault(CODE, message, "Count from 0: tags[0]; exists(tags, x -> x = 'a') looks for a value.", key, node)


def short_name(node: exp.Expr) -> str:
    bare = node.unnest()
    if isinstance(bare, exp.Column):
        return str(bare.name)
    if isinstance(bare, exp.Literal):
        return f"'{bare.name}'" if bare.is_string else str(bare.name)
    return "its value"
