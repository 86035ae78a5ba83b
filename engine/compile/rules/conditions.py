"""Conditions of joins and filters, taken apart at AND."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.rules.plan import Column, Condition, Side, Term
from engine.compile.rules.terms import terms
from engine.compile.rules.values import Values

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_KEEPS_NULL = (exp.Coalesce, exp.If, exp.Case, exp.Is, exp.Or, exp.NullSafeEQ, exp.Query)


def conditions(node: exp.Expr, values: Values) -> tuple[Condition, ...]:
    """The conditions that AND connects."""
    return tuple(_split(node, values))


def equal(left: Column, right: Column, node: exp.Expr) -> Condition:
    """The condition of USING and NATURAL."""
    sides = [Side(frozenset({c.id}), c, (Term(negative=False, column=c),), c.type) for c in (left, right)]
    return Condition(node, frozenset({left.id, right.id}), "=", sides[0], sides[1], rejects_null=True)


def _split(node: exp.Expr, values: Values) -> Iterator[Condition]:
    node = node.unnest()
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from _split(part, values)
    elif isinstance(node, exp.Between):
        yield _compare(node, ">=", node.this, node.args["low"], values)
        yield _compare(node, "<=", node.this, node.args["high"], values)
    elif type(node) in _SIGNS:
        yield _compare(node, _SIGNS[type(node)], node.this, node.args["expression"], values)
    else:
        if isinstance(node, exp.Or):
            yield from _shared(node, values)
        yield Condition(node, values.of(node).refs, rejects_null=_rejects_null(node))


def _shared(node: exp.Or, values: Values) -> Iterator[Condition]:
    """The equalities that all parts of an OR have."""
    parts = [_equalities(part.unnest(), values) for part in node.flatten()]
    for key, equality in parts[0].items():
        if all(key in part for part in parts[1:]):
            made = _compare(equality, "=", equality.this, equality.expression, values)
            yield replace(made, rejects_null=False, shared=True)


def _equalities(node: exp.Expr, values: Values) -> dict[frozenset[object], exp.EQ]:
    parts = [part.unnest() for part in node.flatten()] if isinstance(node, exp.And) else [node]
    found = [part for part in parts if isinstance(part, exp.EQ)]
    return {frozenset(_known(side.unnest(), values) for side in (e.this, e.expression)): e for e in found}


def _known(node: exp.Expr, values: Values) -> object:
    column = values.of(node).column
    return column.id if column is not None else node.sql()


def _compare(node: exp.Expr, sign: str, left: exp.Expr, right: exp.Expr, values: Values) -> Condition:
    sides = _side(left, values), _side(right, values)
    strict = sign != "<=>" and _rejects_null(node)
    return Condition(node, sides[0].refs | sides[1].refs, sign, sides[0], sides[1], rejects_null=strict)


def _side(node: exp.Expr, values: Values) -> Side:
    value = values.of(node)
    summands = terms(node, values)
    return Side(value.refs, value.column, tuple(summands) if summands is not None else None, value.type)


def _rejects_null(node: exp.Expr) -> bool:
    """Whether a row with NULL in a column of the condition does not pass."""
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        return True
    compares = isinstance(node, (exp.Predicate, exp.Between, exp.Like, exp.In)) or type(node) in _SIGNS
    return compares and not any(isinstance(part, _KEEPS_NULL) for part in node.walk())
