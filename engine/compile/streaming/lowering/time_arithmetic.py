"""Sums of times, numbers and intervals, as Spark takes the bounds of joins apart."""

from __future__ import annotations

import re

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.streaming.lowering.lower_expressions import ExpressionReader
from engine.compile.streaming.lowering.result_types import NUMBERS, TIMES
from engine.compile.streaming.query_plan.intervals import has_months, is_interval, seconds
from engine.compile.streaming.query_plan.logical_plan import Term

_CASTS = (TIMES | NUMBERS | {"decimal"}) - {"timestamp_ntz"}
# A time cast to another number loses its microseconds, or more.
_EXACT = re.compile(r"timestamp(_ltz)?|double|decimal\(\d+, ?([6-9]|\d\d)\)")


def _unseen(node: exp.Binary, values: ExpressionReader) -> bool:
    """Whether Spark computes an interval here: of two times, or of two intervals; it looks for times (measured)."""
    sides = (node.this.unnest(), node.expression.unnest())
    if all(isinstance(side, exp.Interval) for side in sides):
        # A sum may be one interval as it is written (1 hour 10 minutes), which sqlglot takes apart.
        return isinstance(node, exp.Sub)
    return isinstance(node, exp.Sub) and all(values.of(side).type in TIMES for side in sides)


def terms(node: exp.Expr, values: ExpressionReader, *, negative: bool = False) -> list[Term] | None:
    """The summands, with their signs; None if the expression is something else."""
    result: list[Term] | None = None
    match node:
        case exp.Paren():
            result = terms(node.this, values, negative=negative)
        case exp.Add() | exp.Sub() if _unseen(node, values):
            result = None
        case exp.Add() | exp.Sub():
            left = terms(node.this, values, negative=negative)
            right = terms(node.expression, values, negative=negative != isinstance(node, exp.Sub))
            result = None if left is None or right is None else left + right
        case exp.Neg():
            result = terms(node.this, values, negative=not negative)
        case exp.Cast():
            # Spark cannot compute with a time written as text, so that such a bound does not count (measured).
            kind = node.to.sql(dialect="spark").lower()
            result = terms(node.this, values, negative=negative) if kind.partition("(")[0] in _CASTS else None
            if result is not None and _EXACT.fullmatch(kind) is None:
                result = [replace(term, rounded=True) for term in result]
        case exp.Interval():
            readable = is_interval(node) and not has_months(node)
            result = [Term(negative, None, seconds(node) or 0.0)] if readable else None
        case exp.Literal():
            result = None if node.is_string else [Term(negative, None, float(node.name))]
        case _:
            column = values.of(node).column
            result = [Term(negative, column)] if column is not None else None
    return result
