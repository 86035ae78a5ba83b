"""Conditions of joins and filters, taken apart at AND."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.plan_values import TIMES, ExpressionReader
from engine.compile.sql.intervals import has_months, is_interval, seconds
from engine.compile.streaming.query_plan.logical_plan import Condition, PlanColumn, Side, Term

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_NUMBERS = {
    "tinyint", "smallint", "int", "integer", "bigint", "float", "double", "byte", "short", "long", "decimal",
}  # fmt: skip
_CASTS = (TIMES | _NUMBERS) - {"timestamp_ntz"}
# A time cast to another number loses its microseconds, or more.
_EXACT = re.compile(r"timestamp(_ltz)?|double|decimal\(\d+, ?([6-9]|\d\d)\)")
_KEEPS_NULL = (exp.Coalesce, exp.If, exp.Case, exp.Is, exp.Or, exp.NullSafeEQ, exp.Query)


def conditions(node: exp.Expr, values: ExpressionReader, *, on: bool = False) -> tuple[Condition, ...]:
    """Return the conditions that AND connects.

    `on`: they are those of ON, where a value that BETWEEN compares twice is computed once, below the join.
    """
    split = _split(node, values)
    return tuple(replace(one, projected=_computes_between(one)) for one in split) if on else tuple(split)


def _computes_between(condition: Condition) -> bool:
    value = condition.left_side
    return isinstance(condition.node, exp.Between) and value is not None and value.column is None


def equality(left_column: PlanColumn, right_column: PlanColumn, node: exp.Expr) -> Condition:
    """The condition of USING and NATURAL."""
    sides = [Side(frozenset({c.id}), c, (Term(negative=False, column=c),), c.type) for c in (left_column, right_column)]
    return Condition(node, frozenset({left_column.id, right_column.id}), "=", sides[0], sides[1], rejects_null=True)


def _split(node: exp.Expr, values: ExpressionReader) -> Iterator[Condition]:
    node = node.unnest()
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from _split(part, values)
    elif isinstance(node, exp.Between):
        yield _compare(node, ">=", node.this, node.args["low"], values)
        yield _compare(node, "<=", node.this, node.args["high"], values)
    elif type(node) in _SIGNS:
        yield from _implied_equalities(node, values) if _compared_truth(node) is not None else ()
        yield _compare(node, _SIGNS[type(node)], node.this, node.args["expression"], values)
    else:
        yield from _implied_equalities(node, values)
        yield Condition(node, values.value_of(node).refs, rejects_null=_rejects_null(node))


def _implied_equalities(node: exp.Expr, values: ExpressionReader) -> Iterator[Condition]:
    """The equalities that Spark's optimiser makes of a condition: out of NOT, of OR, of a comparison with true."""
    for sign, equality in _equalities(node, values, holds=True).values():
        comparison = _compare(equality, sign, equality.this, equality.expression, values)
        yield replace(comparison, rejects_null=False, shared=True)


_Equalities = dict[frozenset[object], tuple[str, exp.Expr]]


def _equalities(node: exp.Expr, values: ExpressionReader, *, holds: bool) -> _Equalities:
    """The equalities that hold wherever a condition does, or wherever it does not."""
    node = node.unnest()
    if isinstance(node, exp.Not):
        return _equalities(node.this, values, holds=not holds)
    if isinstance(node, (exp.And, exp.Or)):
        parts = [
            _equalities(p, values, holds=holds) for p in node.flatten() if not _never_holds(p.unnest(), holds=holds)
        ]
        if isinstance(node, exp.And) is holds:
            return {key: pair for part in parts for key, pair in part.items()}
        first = parts[0] if parts else {}
        return {key: pair for key, pair in first.items() if all(key in part for part in parts[1:])}
    compared = _compared_truth(node)
    if compared is not None:
        inner, truth = compared
        return _equalities(inner, values, holds=holds is truth)
    sign = _EQUAL.get((type(node), holds))
    if sign is None:
        return {}
    return {frozenset(_side_key(side.unnest(), values) for side in (node.this, node.expression)): (sign, node)}


_EQUAL: dict[tuple[type[exp.Expr], bool], str] = {
    (exp.EQ, True): "=", (exp.NEQ, False): "=", (exp.NullSafeEQ, True): "<=>", (exp.NullSafeNEQ, False): "<=>",
    (exp.EqualNull, True): "<=>",
}  # fmt: skip


def _compared_truth(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """What `(a <> b) = false` compares, and with what."""
    if isinstance(node, exp.EQ):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(other, exp.Boolean):
                return one, bool(other.this)
    return None


def _never_holds(node: exp.Expr, *, holds: bool) -> bool:
    """Whether a part of OR is false as it is written, or one of a negated AND is true."""
    if isinstance(node, exp.Boolean):
        return bool(node.this) is not holds
    are_literals = (
        isinstance(node, exp.EQ) and isinstance(node.this, exp.Literal) and isinstance(node.expression, exp.Literal)
    )
    return are_literals and (node.this == node.expression) is not holds


def _side_key(node: exp.Expr, values: ExpressionReader) -> object:
    column = values.value_of(node).column
    return column.id if column is not None else node.sql()


def _compare(
    node: exp.Expr, sign: str, left_node: exp.Expr, right_node: exp.Expr, values: ExpressionReader
) -> Condition:
    sides = _side(left_node, values), _side(right_node, values)
    strict = sign != "<=>" and _rejects_null(node)
    return Condition(node, sides[0].refs | sides[1].refs, sign, sides[0], sides[1], rejects_null=strict)


def _side(node: exp.Expr, values: ExpressionReader) -> Side:
    value = values.value_of(node)
    summands = _terms(node, values)
    return Side(value.refs, value.column, tuple(summands) if summands is not None else None, value.type)


def _rejects_null(node: exp.Expr) -> bool:
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        return True
    compares = isinstance(node, (exp.Predicate, exp.Between, exp.Like, exp.In)) or type(node) in _SIGNS
    return compares and not keeps_null(node)


def keeps_null(node: exp.Expr) -> bool:
    """Whether an expression may be a value though a column of it is NULL."""
    return any(isinstance(part, _KEEPS_NULL) for part in node.walk())


def _is_interval_difference(node: exp.Binary, values: ExpressionReader) -> bool:
    """Whether Spark computes an interval here: of two times, or of two intervals; it looks for times (measured)."""
    sides = (node.this.unnest(), node.expression.unnest())
    if all(isinstance(side, exp.Interval) for side in sides):
        # A sum may be one interval as it is written (1 hour 10 minutes), which sqlglot takes apart.
        return isinstance(node, exp.Sub)
    return isinstance(node, exp.Sub) and all(values.value_of(side).type in TIMES for side in sides)


def _terms(node: exp.Expr, values: ExpressionReader, *, negative: bool = False) -> list[Term] | None:
    result: list[Term] | None = None
    match node:
        case exp.Paren():
            result = _terms(node.this, values, negative=negative)
        case exp.Add() | exp.Sub() if _is_interval_difference(node, values):
            result = None
        case exp.Add() | exp.Sub():
            left_terms = _terms(node.this, values, negative=negative)
            right_terms = _terms(node.expression, values, negative=negative != isinstance(node, exp.Sub))
            result = None if left_terms is None or right_terms is None else left_terms + right_terms
        case exp.Neg():
            result = _terms(node.this, values, negative=not negative)
        case exp.Cast():
            # Spark cannot compute with a time written as text, so that such a bound does not count (measured).
            kind = node.to.sql(dialect="spark").lower()
            result = _terms(node.this, values, negative=negative) if kind.partition("(")[0] in _CASTS else None
            if result is not None and _EXACT.fullmatch(kind) is None:
                result = [replace(term, rounded=True) for term in result]
        case exp.Interval():
            readable = is_interval(node) and not has_months(node)
            result = [Term(negative, None, seconds(node) or 0.0)] if readable else None
        case exp.Literal():
            result = None if node.is_string else [Term(negative, None, float(node.name))]
        case _:
            column = values.value_of(node).column
            result = [Term(negative, column)] if column is not None else None
    return result
