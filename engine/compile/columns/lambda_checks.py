"""Where functions of functions stand: which calls take `x -> ..`, at which place, and with how many parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from engine.compile.columns import type_mismatch
from engine.compile.columns.column_scope import ColumnValue
from engine.compile.columns.walk import Walk
from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.types.builtin_functions import BUILTIN

_CODE: Final = "sql-syntax"
# By function and place: how many parameters (higherOrderFunctions.scala, 4.1).
_TAKEN: Final[dict[str, dict[int, tuple[int, ...]]]] = {
    "aggregate": {2: (2,), 3: (1,)}, "array_sort": {1: (2,)}, "exists": {1: (1,)}, "filter": {1: (1, 2)},
    "forall": {1: (1,)}, "map_filter": {1: (2,)}, "map_zip_with": {2: (3,)}, "reduce": {2: (2,), 3: (1,)},
    "transform": {1: (1, 2)}, "transform_keys": {1: (2,)}, "transform_values": {1: (2,)}, "zip_with": {2: (2,)},
}  # fmt: skip
_SORTED_BY = "Write (a, b) -> case when a < b then 1 when a > b then -1 else 0 end, or sort_array(a, false)."


def check_lambda_places(walk: Walk, name: str, arguments: Sequence[exp.Expr]) -> None:
    """Report a function in place of a value, and one with too many or too few parameters."""
    counts_by_place = _TAKEN.get(name, {})
    if name not in BUILTIN:
        return
    for place, argument in enumerate(arguments):
        if not isinstance(argument, exp.Lambda):
            continue
        counts, count = counts_by_place.get(place), len(argument.expressions)
        if counts is None:
            message = f"{name}() does not take a function{' there' if counts_by_place else ''}"
            walk.fault(_CODE, message, "Write a value in place of x -> ..", argument)
        elif count not in counts:
            expected = " or ".join(map(str, counts))
            message = f"the function that {name}() takes has {expected} parameter{'s' * (counts[-1] > 1)}, not {count}"
            walk.fault(_CODE, message, _example(counts[-1]), argument)


def _example(count: int) -> str:
    return "Write x -> .." if count == 1 else f"Write ({', '.join('abc'[:count])}) -> .."


def sorts_by_lambda(walk: Walk, node: exp.Expr) -> bool:
    """Whether array_sort() is given what it sorts by: sqlglot's tree has an order also where none is written."""
    start = node.meta.get("start", -1)
    depth = 0
    for token in tokenize(walk.text[start:]) if start >= 0 else ():
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 1 and token.token_type is TokenType.COMMA:
            return True
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            break
    return False


def check_ordering(walk: Walk, result: ColumnValue, node: exp.Expr, around: exp.Expr) -> None:
    """Report what array_sort() sorts by if it gives no INT."""
    if result.type is not None and result.type not in {"int", "void"}:
        message = f"array_sort() sorts by a function that returns int, not {result.type}"
        walk.fault(type_mismatch.CODE, message, _SORTED_BY, node, around)
