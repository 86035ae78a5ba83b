"""What the text says of a call and sqlglot's tree does not, to be put into the key by which it is compared.

sqlglot has one class for several of Spark's functions, drops arguments and rewrites patterns of dates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.types.builtin_functions import SYNONYMS

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
    """Return calls by the places of their names; raise LostArgumentError if the parser drops one's argument."""
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
    """Return what is said of a call beside its tree, by the key under which it becomes a part of that.

    `bound`: the tree is compared in the columns of the inputs, where a name in its text would mean nothing.

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
