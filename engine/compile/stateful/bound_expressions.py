"""Expressions that are bound to their inputs: brackets in them hold the result of a step below.

sqlglot has one class for several functions of Spark, drops arguments that it does not know (the frequency of
`percentile`) and rewrites others (patterns of dates): what a tree lacks goes into the key by which it is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.dialect import tokenize
from engine.compile.sql.intervals import is_interval, seconds
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.same_expression import EVENT_TIME, WINDOWS, cast_type, key_of, type_of
from engine.compile.sql.shown_sql import shown_sql
from engine.compile.types.builtin_functions import SYNONYMS
from engine.times import duration_text

# Functions that name the fields of what they make after the columns that they are given.
_NAMES = {"arrays_zip"}
# `a::int`, `int(a)` and `cast(a as int)` are one; what a cast may do is in the class.
_ONE = (exp.Cast, exp.TryCast)
# Behind AS they say that it is itself the alias: `ts as, price` has a column `as` to Spark, and sqlglot reads over it.
_NO_ALIAS = {TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN}
# Calls whose place the parser does not keep, and the most arguments that it does.
_CUT = {"percentile": 2}
_OPENING, _CLOSING = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}


class LostArgumentError(ValueError):
    """An argument with a name in it is in the text and not in the tree."""


@dataclass(slots=True)
class WrittenCall:
    """A call as it is written: the name with its backticks, and the tokens of each argument."""

    name: str
    arguments: list[list[Token]] = field(default_factory=list)


def written_calls(sql: str) -> dict[int, WrittenCall]:
    """The calls in a text, by the places of their names.

    Raises:
        LostArgumentError: one has an argument that the parser drops.
    """
    calls: dict[int, WrittenCall] = {}
    opened: list[WrittenCall | None] = []
    before: Token | None = None
    for token in tokenize(sql):
        if before is not None and before.token_type is TokenType.ALIAS and token.token_type in _NO_ALIAS:
            raise LostArgumentError("an alias 'as'")
        if token.token_type in _CLOSING and opened:
            opened.pop()
        call = opened[-1] if opened else None
        if call is not None and token.token_type is TokenType.COMMA:
            call.arguments.append([])
        for outer in opened:
            if outer is not None and not (outer is call and token.token_type is TokenType.COMMA):
                outer.arguments = outer.arguments or [[]]
                outer.arguments[-1].append(token)
        if token.token_type in _OPENING:
            called = before is not None and token.token_type is TokenType.L_PAREN
            new_call = (
                WrittenCall(sql[before.start : before.end + 1].lower()) if called and before is not None else None
            )
            if new_call is not None and before is not None:
                calls[before.start] = new_call
            opened.append(new_call)
        before = token
    if any(len(call.arguments) > _CUT.get(call.name.strip("`"), len(call.arguments)) for call in calls.values()):
        raise LostArgumentError("an argument is not read")
    return calls


def said_beside(node: exp.Expr, calls: Mapping[int, WrittenCall], sql: str, *, bound: bool = True) -> dict[str, Any]:
    """What is said of a call beside its tree, by the key under which it becomes a part of that.

    Args:
        node: as it was parsed.
        calls: of the text.
        sql: the text.
        bound: the tree is compared in the columns of the inputs, and a name in its text would mean nothing.

    Raises:
        LostArgumentError: an argument with a name is not in the tree.
    """
    call = calls.get(node.meta.get("start", -1))
    if not isinstance(node, exp.Func) or call is None or isinstance(node, _ONE):
        return {"names": names} if (names := _named_columns(node)) else {}
    # In backticks it is not the syntax that Spark has for some functions, such as timestampadd(hour, 1, ts).
    name = SYNONYMS.get(call.name, call.name)
    own = type(node).sql_names()[0].lower() if type(node) is not exp.Anonymous else name
    call_parts = {"called": "" if name == own else name, "given": _unread_arguments(node, call, sql, bound=bound)}
    return {key: value for key, value in {**call_parts, "names": _named_columns(node)}.items() if value}


def _unread_arguments(node: exp.Func, call: WrittenCall, sql: str, *, bound: bool) -> list[str]:
    """The arguments that are not in the tree, as they are written."""
    places = {part.meta["start"] for part in node.walk() if "start" in part.meta and part is not node}
    words = {part.name.lower() for part in node.walk() if isinstance(part, exp.Var)}
    texts = []
    for tokens in call.arguments:
        text = sql[tokens[0].start : tokens[-1].end + 1] if tokens else ""
        if not text or text == "*" or text.lower() in words or any(token.start in places for token in tokens):
            continue
        if bound and any(token.token_type in {TokenType.VAR, TokenType.IDENTIFIER} for token in tokens):
            raise LostArgumentError(text)
        texts.append(text)
    return texts


def _named_columns(node: exp.Expr) -> list[str]:
    """The names of columns that a call makes a part of its value."""
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()) if isinstance(node, exp.Func) else ""
    if not isinstance(node, exp.Tuple) and name.lower() not in _NAMES:
        return []
    return [part.name if isinstance(part, (exp.Column, exp.Dot)) else "" for part in node.iter_expressions()]


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
