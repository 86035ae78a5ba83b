"""Texts by which expressions are compared: equal only where Spark computes the same.

What Spark treats alike (Canonicalize) has one text: `a = b` and `b = a`, `a > b` and `b < a`, BETWEEN, the parts of AND
and OR in any order.

Parts of one query (a key of GROUP BY and an item) are compared as Spark's analyser does it: brackets, letter case and
the order of operands of + and * do not count. In a bound expression brackets mean that a step ends, and IN over
literals of one type is a chain of OR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from engine.compile.types import spark_types

Columns = Callable[[exp.Column | exp.Identifier], str]
# What is known of a column where it is read: its type, that it is an event time, and what makes it if it is computed.
TYPE, EVENT_TIME, MADE = "type", "event_time", "made"
_PLAIN = {
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp",
    "timestamp_ntz", "binary",
}  # fmt: skip
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
WINDOWS = {"window", "session_window"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_EITHER_WAY = (exp.EQ, exp.NullSafeEQ)
_COMMUTATIVE = (exp.Add, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_INT_DIGITS = 9


def key_of(tree: Any, column: Columns | None = None) -> str:
    """Return a text that is equal for equal expressions only.

    `column` gives the text of a column, or of a name behind one, in its query; None: the expression is bound.
    """
    if isinstance(tree, list):
        return f"[{','.join(key_of(part, column) for part in tree)}]"
    if not isinstance(tree, exp.Expr):
        return tree.lower() if column is not None and isinstance(tree, str) else repr(tree)
    if column is not None:
        tree = _bare(tree.unalias())
        text = _unbound_text(tree, column)
    else:
        text = _bound(tree)
    return text or _equivalent_text(tree, column) or _as_it_is(tree, column)


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _as_it_is(tree: exp.Expr, column: Columns | None) -> str:
    arguments = {name: value for name, value in tree.args.items() if value not in (None, False, [])}
    inside = ",".join(f"{name}={key_of(arguments[name], column)}" for name in sorted(arguments))
    # sqlglot has two classes for one CAST; that of TRY_CAST is `safe`.
    kind = "Cast" if isinstance(tree, exp.Cast) else type(tree).__name__
    return f"{kind}({inside})"


def _unbound_text(tree: exp.Expr, column: Columns) -> str:
    """The text of what means something else inside its query than bound; empty for all else."""
    if isinstance(tree, exp.Identifier) or (isinstance(tree, exp.Column) and not tree.is_star):
        return column(tree)
    if isinstance(tree, exp.Literal):
        return repr(str(tree.this)) if tree.is_string and not _is_length(tree) else str(tree.this).lower()
    if isinstance(tree, exp.DataType):
        return str(tree.sql(dialect="spark"))
    if isinstance(tree, _COMMUTATIVE):
        return _in_any_order(tree, column)
    return ""


def _is_length(node: exp.Literal) -> bool:
    """Whether a string is a length of time: of an interval, or of a window."""
    around = node.parent
    window = isinstance(around, exp.Anonymous) and str(around.this).lower() in WINDOWS
    return window or isinstance(around, exp.Interval)


def _bound(tree: exp.Expr) -> str:
    """The text of what means something of its own if it is bound; empty for all else."""
    if is_session(tree) and gap_of(tree):
        # Sessions may continue with another gap: it is compared by itself.
        return f"session({key_of(tree.expressions[0])})"
    if isinstance(tree, exp.Identifier) and MADE in tree.meta:
        return f"made({tree.meta[MADE]!r})"
    return _in_list_text(tree) if isinstance(tree, exp.In) else ""


def _equivalent_text(tree: exp.Expr, column: Columns | None) -> str:
    """The text of what can be written in several ways; empty for all else."""
    if isinstance(tree, (exp.And, exp.Or)):
        return _in_any_order(tree, column)
    if isinstance(tree, _EITHER_WAY):
        sides = sorted(key_of(part, column) for part in (tree.this, tree.expression))
        return f"{type(tree).__name__}[{','.join(sides)}]"
    if isinstance(tree, exp.NEQ):
        return key_of(exp.Not(this=_pair(exp.EQ, tree.this, tree.expression)), column)
    if type(tree) in _TURNED:
        return key_of(_pair(_TURNED[type(tree)], tree.expression, tree.this), column)
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        bounds = _pair(exp.GTE, tree.this, tree.args["low"]), _pair(exp.LTE, tree.this, tree.args["high"])
        return key_of(_pair(exp.And, *bounds), column)
    return ""


def _pair(kind: type[exp.Expr], left_side: exp.Expr, right_side: exp.Expr) -> exp.Expr:
    """A comparison of parts that stay where they are: an expression that is looked at keeps its parents."""
    comparison = kind()
    comparison.args.update(this=left_side, expression=right_side)
    return comparison


def _in_any_order(tree: exp.Expr, column: Columns | None) -> str:
    parts = sorted(key_of(part, column) for part in _operands(tree, type(tree), nested=column is not None))
    # Once bound, the optimiser drops repetitions (BooleanSimplification); the analyser does not.
    return f"{type(tree).__name__}[{','.join(parts if column is not None else dict.fromkeys(parts))}]"


def _operands(tree: exp.Expr, kind: type[exp.Expr], *, nested: bool) -> Iterator[exp.Expr]:
    waiting = [tree.expression, tree.this]
    while waiting:
        part = waiting.pop()
        part = _bare(part) if nested else part
        if type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            yield part


def _in_list_text(tree: exp.In) -> str:
    """IN compares with all of its list in one type, OR with each by itself: the same where there is only one type."""
    values = tree.expressions
    kinds = {type_of(value) if isinstance(value, exp.Literal) else None for value in values}
    sought = type_of(tree.this)
    same = kinds == {"string"} == {sought} or (kinds == {"int"} and sought in _INTEGERS)
    if not same or any(tree.args.get(name) for name in ("query", "unnest", "field")):
        return ""
    parts = sorted({key_of(_pair(exp.EQ, tree.this, value)) for value in values})
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
    is_plain_type = text in _PLAIN and not to.expressions
    return text if is_plain_type or text.startswith("decimal(") else ""


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
