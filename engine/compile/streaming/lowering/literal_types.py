"""Types of expressions, where they can be told without doubt; empty where they cannot."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

TIMES = frozenset({"timestamp", "timestamp_ntz", "timestamp_ltz"})
NUMBERS = frozenset({
    "tinyint", "smallint", "int", "integer", "bigint", "float", "double", "byte", "short", "long",
})  # fmt: skip
_SAME = (exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue)
_TEXT = (exp.Substring, exp.Concat, exp.Trim, exp.Lower, exp.Upper)


def result_type(node: exp.Expr, parts: Sequence[str]) -> str:
    """The type of a call from the types of its parts."""
    first = parts[0] if parts else ""
    result = ""
    match node:
        case exp.Cast():
            result = node.to.sql(dialect="spark").lower()
        case exp.Collate():
            base = (first or "string").partition(" collate ")[0]
            result = f"{base} collate {node.expression.name.lower()}"
        case exp.Count() | exp.ApproxDistinct():
            result = "bigint"
        case exp.Sum() | exp.Avg():
            result = "double" if first in NUMBERS else first
        case exp.Add() | exp.Sub():
            result = first if first in TIMES and isinstance(node.expression, exp.Interval) else ""
        case exp.Literal():
            result = "string" if node.is_string else "int"
        case _ if isinstance(node, _SAME):
            result = first
        case _ if isinstance(node, _TEXT):
            result = next((part for part in parts if " collate " in part), "string")
    return result
