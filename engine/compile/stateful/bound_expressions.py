"""Expressions that are bound to their inputs: brackets in them hold the result of a step below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.intervals import is_interval, seconds
from engine.compile.sql.same_expression import EVENT_TIME, WINDOWS, cast_type, key_of, type_of
from engine.compile.sql.shown_sql import shown_sql
from engine.compile.stateful.written_calls import LostArgumentError, said_beside, written_calls
from engine.times import duration_text

_CALLS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def written_key(tree: exp.Expr, sql: str) -> str:
    """A text that is equal for equal expressions only, of one that is not bound."""
    try:
        calls = written_calls(sql)
    except LostArgumentError:
        return sql
    return f"{key_of(tree)} {[said_beside(node, calls, sql, bound=False) for node in tree.walk()]}"


def text_of(tree: exp.Expr) -> str:
    """An expression as SQL, for people."""
    tree_copy = _as_called(_without_step_brackets(tree))
    for node in list(tree_copy.find_all(exp.Binary)):
        for name in ("this", "expression"):
            part = node.args.get(name)
            if isinstance(part, exp.Binary) and not isinstance(node, exp.Dot) and not isinstance(part, exp.Dot):
                node.set(name, exp.Paren(this=part.copy()))
    return shown_sql(tree_copy, normalize_functions="lower", comments=False)


def _as_called(tree: exp.Expr) -> exp.Expr:
    """An expression with the names by which functions are called where sqlglot's classes have others."""
    for node in reversed([*tree.walk()]):
        for key in ("names", "given"):
            node.args.pop(key, None)
        if name := node.args.pop("called", None):
            call = exp.Anonymous(this=name, expressions=[*node.iter_expressions()])
            if node is tree:
                return call
            node.replace(call)
    return tree


def _without_step_brackets(tree: exp.Expr) -> exp.Expr:
    """An expression without the brackets that mark the end of a step."""
    tree_copy = bare(tree).copy()
    for node in list(tree_copy.find_all(exp.Paren)):
        node.replace(bare(node).copy() if not bare(node).find(exp.Paren) else _without_step_brackets(node))
    return tree_copy


def bare(tree: exp.Expr) -> exp.Expr:
    """A result of a step as the step makes it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def wrap_group_results(tree: exp.Expr, keys: set[str]) -> exp.Expr:
    """An expression above a group: its keys and aggregates are results of that step."""
    if key_of(tree) in keys or is_call(tree):
        return exp.Paren(this=tree.copy())
    node = tree.__class__(**{name: _wrap_value(value, keys) for name, value in tree.args.items()})
    return with_facts_of(node, tree)


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND connects; BETWEEN is two."""
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    elif isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        yield exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        yield exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
    else:
        yield tree


def with_facts_of(node: exp.Expr, tree: exp.Expr) -> exp.Expr:
    """The expression with what is known of the one that it was made of."""
    if tree.meta:
        node.meta.update(tree.meta)
    return node


def _wrap_value(value: Any, keys: set[str]) -> Any:
    if isinstance(value, list):
        return [_wrap_value(part, keys) for part in value]
    if isinstance(value, exp.Expr):
        return value.copy() if isinstance(value, (exp.Identifier, exp.DataType)) else wrap_group_results(value, keys)
    return value


def is_call(tree: exp.Expr) -> bool:
    """Whether an expression is an aggregate, with its FILTER."""
    inner = tree
    while isinstance(inner, _CALLS):
        inner = inner.this
    return is_aggregate(inner)


def calls(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregates of the step that an expression is above, in the order in which Spark finds them."""
    return list(_calls(tree))


def _calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(tree, exp.Paren):
        if is_call(tree.this):
            yield tree.this
        return
    for part in tree.iter_expressions():
        yield from _calls(part)


def has_loose(tree: exp.Expr) -> bool:
    """Whether an expression above a group uses a column that is not a result of it (of an unknown aggregate, say)."""
    if isinstance(tree, exp.Paren):
        return False
    return isinstance(tree, exp.Column) or any(has_loose(part) for part in tree.iter_expressions())


def normal_form(node: exp.Expr) -> exp.Expr:
    """Return one form for what Spark reads as the same: `count(1)`, lengths of time, casts to a value's own type.

    A cast of an event time ends it, and stays (SimplifyCasts).
    """
    if isinstance(node, exp.Literal) and not node.is_string:
        return exp.Literal(this=str(node.this).lower(), is_string=False)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Literal) and node.this.this == "1":
        node.set("this", exp.Star())
    if isinstance(node, exp.Cast) and EVENT_TIME not in bare(node.this).meta and _has_type(node):
        inner: exp.Expr = node.this
        return inner.copy()
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() in WINDOWS:
        node.set("expression", exp.to_identifier(node.expression.name.lower()))
    if isinstance(node, exp.Interval) and is_interval(node) and (length := seconds(node)) is not None:
        number, unit = duration_text(length).split()
        return exp.Interval(this=exp.Literal.string(number), unit=exp.var(unit.upper().rstrip("S")))
    if isinstance(node, exp.Anonymous) and node.name.lower() in WINDOWS and len(node.expressions) > 1:
        return _window(node)
    return node


def _has_type(node: exp.Cast) -> bool:
    """Whether a value has the type already that it is cast to."""
    target_type = cast_type(node)
    return bool(target_type) and target_type == type_of(node.this)


def _window(node: exp.Anonymous) -> exp.Expr:
    name = node.name.lower()
    time, *lengths = node.expressions
    lengths_in_seconds = [seconds(length) for length in lengths]
    if any(length is None for length in lengths_in_seconds):
        return node
    texts = [duration_text(length) for length in lengths_in_seconds if length is not None]
    if name == "window":
        texts += texts[:1] if len(texts) == 1 else []
        if len(texts) == 3 and texts[2] == "0 seconds":  # noqa: PLR2004 - size, slide, start
            texts.pop()
        if len(texts) == 2 and texts[0] == texts[1]:  # noqa: PLR2004
            texts.pop()
    return exp.Anonymous(this=name, expressions=[time.copy(), *(exp.Literal.string(text) for text in texts)])
