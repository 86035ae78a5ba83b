"""Sums of times, numbers and intervals, as Spark takes the bounds of joins apart."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.streaming.lowering.lower_expressions import ExpressionReader
from engine.compile.streaming.lowering.result_types import NUMBERS, TIMES
from engine.compile.streaming.query_plan.intervals import has_months, is_interval
from engine.compile.streaming.query_plan.logical_plan import Term

_CASTS = (TIMES | NUMBERS | {"decimal"}) - {"timestamp_ntz"}


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
            kind = node.to.sql(dialect="spark").lower().partition("(")[0]
            result = terms(node.this, values, negative=negative) if kind in _CASTS else None
        case exp.Interval():
            result = [Term(negative, None)] if is_interval(node) and not has_months(node) else None
        case exp.Literal():
            result = None if node.is_string else [Term(negative, None)]
        case _:
            column = values.of(node).column
            result = [Term(negative, column)] if column is not None else None
    return result
