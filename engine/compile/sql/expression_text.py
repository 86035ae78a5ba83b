"""Texts by which Spark's analyser takes two expressions of one query for the same: a key of GROUP BY and an item.

Brackets, the letter case of names and words, and the order of what is commutative do not count (Canonicalize,
CommutativeExpression). Strings do: 'A' and 'a' are two keys of a map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

_COMMUTATIVE = (
    exp.Add, exp.Mul, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.EQ, exp.NullSafeEQ,
)  # fmt: skip
_WINDOWS = {"window", "session_window"}
_PAIRS = {exp.EQ, exp.NullSafeEQ}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}


def expression_text(node: exp.Expr, column: Callable[[exp.Column], str]) -> str:
    """Return the text of an expression.

    Args:
        node: of the tree.
        column: gives the text of a column.
    """
    node = node.unalias()
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) and not node.is_star:
        return column(node)
    if isinstance(node, exp.Literal):
        return repr(str(node.this)) if node.is_string and not _is_length(node) else str(node.this).lower()
    if isinstance(node, exp.Identifier):
        return str(node.name).lower()
    if type(node) in _TURNED:
        node = _TURNED[type(node)](this=node.expression, expression=node.this)
    if isinstance(node, _COMMUTATIVE):
        operands = sorted(expression_text(part, column) for part in _operands(node, type(node)))
        return f"{type(node).__name__}[{','.join(operands)}]"
    if isinstance(node, exp.DataType):
        return str(node.sql(dialect="spark"))
    arguments = ((name, _argument(value, column)) for name, value in sorted(node.args.items()) if value)
    # TRY_CAST is a CAST with `safe` to sqlglot, in a class of its own or not.
    kind = "Cast" if isinstance(node, exp.Cast) else type(node).__name__
    return f"{kind}({','.join(f'{name}={text}' for name, text in arguments)})"


def _is_length(node: exp.Literal) -> bool:
    """Whether a string is a length of time: of an interval, or of a window."""
    around = node.parent
    window = isinstance(around, exp.Anonymous) and str(around.this).lower() in _WINDOWS
    return window or isinstance(around, exp.Interval)


def _argument(value: Any, column: Callable[[exp.Column], str]) -> str:
    if isinstance(value, list):
        return f"[{','.join(_argument(part, column) for part in value)}]"
    if isinstance(value, exp.Expr):
        return expression_text(value, column)
    return value.lower() if isinstance(value, str) else repr(value)


def _operands(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    waiting = [node.expression, node.this]
    while waiting:
        part = waiting.pop().unnest()
        if type(part) is kind and kind not in _PAIRS:
            waiting += [part.expression, part.this]
        else:
            yield part
