"""Results of PIVOT that are more than one call, such as `sum(x) + 1`: sqlglot's parser reads only calls there."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

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
