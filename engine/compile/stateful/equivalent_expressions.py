"""Texts by which bound expressions are compared: equal only where Spark computes the same.

What Spark itself treats alike has one text: `a = b` and `b = a`, `a > b` and `b < a`, the parts of AND and OR in any
order (Canonicalize), BETWEEN, and IN over literals of the type of what is looked for, which is a chain of OR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from engine.compile.types import spark_types

# What is known of a column where it is read: its type, that it is an event time, and what makes it if it is computed.
TYPE, EVENT_TIME, MADE = "type", "event_time", "made"
_PLAIN = {
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp",
    "timestamp_ntz", "binary",
}  # fmt: skip
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_EITHER_WAY = (exp.EQ, exp.NullSafeEQ)
_INT_DIGITS = 9


def key_of(tree: Any) -> str:
    """A text that is equal for equal expressions only."""
    if isinstance(tree, list):
        return f"[{','.join(map(key_of, tree))}]"
    if not isinstance(tree, exp.Expr):
        return repr(tree)
    if is_session(tree) and gap_of(tree):
        # Sessions may continue with another gap: it is compared by itself.
        return f"session({key_of(tree.expressions[0])})"
    if isinstance(tree, exp.Identifier) and MADE in tree.meta:
        return f"made({tree.meta[MADE]!r})"
    return _alike(tree) or _as_it_is(tree)


def _as_it_is(tree: exp.Expr) -> str:
    arguments = {name: value for name, value in tree.args.items() if value not in (None, False, [])}
    inside = ",".join(f"{name}={key_of(arguments[name])}" for name in sorted(arguments))
    # sqlglot has two classes for one CAST; that of TRY_CAST is `safe`.
    kind = "Cast" if isinstance(tree, exp.Cast) else type(tree).__name__
    return f"{kind}({inside})"


def _alike(tree: exp.Expr) -> str:
    """The text of what can be written in several ways; empty for all else."""
    if isinstance(tree, (exp.And, exp.Or)):
        parts = sorted({key_of(part) for part in _parts(tree, type(tree))})
        return f"{type(tree).__name__}[{','.join(parts)}]"
    if isinstance(tree, _EITHER_WAY):
        return f"{type(tree).__name__}[{','.join(sorted(map(key_of, (tree.this, tree.expression))))}]"
    if isinstance(tree, exp.NEQ):
        return key_of(exp.Not(this=exp.EQ(this=tree.this, expression=tree.expression)))
    if type(tree) in _TURNED:
        return key_of(_TURNED[type(tree)](this=tree.expression, expression=tree.this))
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low, high = tree.args["low"], tree.args["high"]
        bounds = exp.GTE(this=tree.this, expression=low), exp.LTE(this=tree.this, expression=high)
        return key_of(exp.And(this=bounds[0], expression=bounds[1]))
    return _listed(tree) if isinstance(tree, exp.In) else ""


def _parts(tree: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    for part in (tree.this, tree.expression):
        yield from _parts(part, kind) if type(part) is kind else (part,)


def _listed(tree: exp.In) -> str:
    """IN compares with all of its list in one type, OR with each by itself: the same where there is only one type."""
    values = tree.expressions
    kinds = {type_of(value) if isinstance(value, exp.Literal) else None for value in values}
    sought = type_of(tree.this)
    same = kinds == {"string"} == {sought} or (kinds == {"int"} and sought in _INTEGERS)
    if not same or any(tree.args.get(name) for name in ("query", "unnest", "field")):
        return ""
    parts = sorted({key_of(exp.EQ(this=tree.this, expression=value)) for value in values})
    return f"Or[{','.join(parts)}]" if len(parts) > 1 else parts[0]


def type_of(tree: exp.Expr) -> str:
    """The type of an expression if it is certain: that of a column, field, literal or cast; else empty."""
    if isinstance(tree, exp.Paren):
        return type_of(tree.this)
    if isinstance(tree, exp.Column):
        return str(tree.meta.get(TYPE) or "")
    if isinstance(tree, exp.Cast):
        return cast_type(tree)
    if isinstance(tree, exp.Literal):
        return "string" if tree.is_string else "int" if tree.is_int and len(tree.name) <= _INT_DIGITS else ""
    if isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Identifier):
        fields = spark_types.fields(type_of(tree.this)) or ()
        kinds = [kind for name, kind in fields if name.lower() == tree.expression.name.lower()]
        return kinds[0] if len(kinds) == 1 else ""
    return ""


def cast_type(tree: exp.Cast) -> str:
    """The type that a plain cast gives; empty where there is more to it, such as a collation."""
    to = tree.to
    if any(value for name, value in to.args.items() if name not in {"this", "nested", "expressions"}):
        return ""
    text = spark_types.of_node(to) or ""
    plain = text in _PLAIN and not to.expressions
    return text if plain or text.startswith("decimal(") else ""


def is_constant(tree: exp.Expr) -> bool:
    """Whether an expression is made of literals: Spark does not group by it (RemoveLiteralFromGroupExpressions)."""
    if isinstance(tree, exp.Cast):
        return is_constant(tree.this)
    if isinstance(tree, (exp.Binary, exp.Neg, exp.Not)) and not isinstance(tree, exp.Func):
        return all(is_constant(part) for part in tree.iter_expressions())
    return isinstance(tree, (exp.Literal, exp.Boolean, exp.Null))


def is_session(tree: exp.Expr) -> bool:
    """Whether an expression is the window of a session."""
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == "session_window"


def gap_of(tree: exp.Expr) -> str:
    """The gap of the session window that an expression is or has, if it is a fixed length; else empty."""
    for node in tree.find_all(exp.Anonymous):
        if is_session(node) and len(node.expressions) > 1 and isinstance(node.expressions[1], exp.Literal):
            return str(node.expressions[1].this)
    return ""
