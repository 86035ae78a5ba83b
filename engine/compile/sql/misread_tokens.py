"""Tokens that sqlglot's parser (30.30) misreads: a form that it reads, and their own form again in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.literal_checks import is_interval_unit

_HIDDEN = "p1v0t"
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSED = {TokenType.R_PAREN, TokenType.R_BRACKET}
# What may follow the call that is read as it is.
_BEHIND_CALL = {"filter", "within", "over", "ignore", "respect"}
# What an expression may end with, so that a word behind it is an alias.
_ENDS = {
    *_CLOSED, TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER, TokenType.END, TokenType.NULL,
}  # fmt: skip
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}


def with_calls(tokens: list[Token]) -> list[Token]:
    """The tokens with a call around each result of a PIVOT that is none."""
    result: list[Token] = []
    copied = 0
    for start in range(len(tokens) - 1):
        if tokens[start].token_type is TokenType.PIVOT and tokens[start + 1].token_type is TokenType.L_PAREN:
            for first, last in _results(tokens, start + 2):
                if not _is_call(tokens[first:last]):
                    result += [*tokens[copied:first], *_around(tokens[first]), *tokens[first:last]]
                    result.append(_like(TokenType.R_PAREN, ")", tokens[last - 1]))
                    copied = last
    return [*result, *tokens[copied:]] if copied else tokens


def without_calls(tree: exp.Expr) -> None:
    """Take the calls out of the tree again."""
    for call in list(tree.find_all(exp.Anonymous)):
        if call.this == _HIDDEN:
            pivot = call.find_ancestor(exp.Pivot)
            call.replace(call.expressions[0])
            if pivot is not None:
                pivot.set("columns", None)


def _results(tokens: list[Token], start: int) -> Iterator[tuple[int, int]]:
    """Where each result begins and ends, without its alias."""
    depth, first = 0, start
    for place in range(start, len(tokens)):
        kind = tokens[place].token_type
        if depth == 0 and kind in {TokenType.COMMA, TokenType.FOR}:
            yield first, max(_without_alias(tokens, first, place), first + 1)
            first = place + 1
            if kind is TokenType.FOR:
                return
        depth += (kind in _OPEN) - (kind in _CLOSED)
        if depth < 0:
            return


def _without_alias(tokens: list[Token], first: int, end: int) -> int:
    kinds = [token.token_type for token in tokens[first:end]]
    if kinds[-2:-1] == [TokenType.ALIAS]:
        return end - 2
    return end - 1 if len(kinds) > 1 and kinds[-1] in _NAMES and kinds[-2] in _ENDS else end


def _is_call(tokens: list[Token]) -> bool:
    """Whether a result is one call, or a CASE: as the parser reads it."""
    if tokens[0].token_type is TokenType.CASE:
        return tokens[-1].token_type is TokenType.END
    if len(tokens) == 1 or tokens[1].token_type is not TokenType.L_PAREN or tokens[0].token_type is TokenType.L_PAREN:
        return False
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSED)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            return place + 1 == len(tokens) or tokens[place + 1].text.lower() in _BEHIND_CALL
    return False


def _around(token: Token) -> tuple[Token, Token]:
    return _like(TokenType.VAR, _HIDDEN, token), _like(TokenType.L_PAREN, "(", token)


def _like(kind: TokenType, text: str, token: Token) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


# It cannot read `window` right after GROUP BY; a name of the same length keeps all positions.
_HIDDEN_WINDOW = "w1nd0w"
_IGNORING = {"any_value", "first", "first_value", "last", "last_value"}
_BEHIND_NAME = {TokenType.COMMA, TokenType.FROM, TokenType.ALIAS, TokenType.R_PAREN, TokenType.DOT}


# In a text without these words nothing is misread.
_MISREAD = re.compile("window|all|false|interval|recursion|pivot", re.IGNORECASE)


def correct_tokens(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of a text in a form that sqlglot's parser understands."""
    if _MISREAD.search(text) is None:
        return tokens
    result = list(tokens)
    left_out: set[int] = set()
    aliased: set[int] = set()
    for index, (token, name) in enumerate(pairwise(tokens)):
        if token.token_type is TokenType.GROUP_BY and name.text.lower() == "window":
            result[index + 1] = _named_token(name, _HIDDEN_WINDOW)
        elif name.token_type is TokenType.ALL and _is_name(token, tokens[index + 2 : index + 3]):
            result[index + 1] = _named_token(name, name.text)
        elif name.token_type is TokenType.FALSE and token.token_type is TokenType.COMMA:
            left_out |= _default_nulls(tokens, index)
        elif _is_alias_of_interval(tokens, index):
            aliased.add(index + 1)
        elif token.token_type is TokenType.VAR and token.text.lower() == "max" and name.text.lower() == "recursion":
            left_out |= _recursion_level(tokens, index)
    if left_out or aliased:
        remaining = ((index, token) for index, token in enumerate(result) if index not in left_out)
        result = [one for index, token in remaining for one in ([_as(token), token] if index in aliased else [token])]
    return with_calls(result)


def _default_nulls(tokens: list[Token], comma: int) -> set[int]:
    """The places of `, false` in `first_value(x, false)`: the default, which sqlglot cannot read."""
    depth = 1
    if comma + 2 >= len(tokens) or tokens[comma + 2].token_type is not TokenType.R_PAREN:
        return set()
    for place in range(comma - 1, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth == 1 and kind is TokenType.COMMA:
            return set()
        if not depth:
            return {comma, comma + 1} if tokens[place - 1].text.lower() in _IGNORING else set()
    return set()


def _recursion_level(tokens: list[Token], at: int) -> set[int]:
    """The places of `max recursion level 100` behind the name of a CTE, which is a limit only."""
    words = [token.text.lower() for token in tokens[at : at + 3]]
    level = tokens[at + 3 : at + 4]
    if words == ["max", "recursion", "level"] and level and level[0].token_type is TokenType.NUMBER:
        return set(range(at, at + 4))
    return set()


def _is_alias_of_interval(tokens: list[Token], at: int) -> bool:
    """Whether the word behind `interval '1 day'` is an alias: the parser takes any for a unit."""
    if tokens[at].token_type is not TokenType.STRING or not at or tokens[at - 1].token_type is not TokenType.INTERVAL:
        return False
    word = tokens[at + 1]
    return word.token_type in {TokenType.VAR, TokenType.IDENTIFIER} and not is_interval_unit(word)


def _as(token: Token) -> Token:
    return Token(TokenType.ALIAS, "AS", token.line, token.col, token.start, token.end)


def _named_token(token: Token, name: str) -> Token:
    """A word as a name of a column."""
    return Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)


def _is_name(before: Token, after: list[Token]) -> bool:
    """Whether ALL behind SELECT or GROUP BY is a column, as Spark's grammar reads it before a comma and its like."""
    if before.token_type is TokenType.SELECT:
        return not after or after[0].token_type in _BEHIND_NAME
    return before.token_type is TokenType.GROUP_BY and bool(after) and after[0].token_type is TokenType.COMMA


def restore_names(tree: exp.Expr) -> None:
    """Give `window` its name back, and results of PIVOT their form."""
    without_calls(tree)
    for node in tree.find_all(exp.Anonymous, exp.Identifier):
        if node.this == _HIDDEN_WINDOW:
            node.set("this", "window")
