"""Tokens of operators: whether they follow each other, and where brackets are."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

_RARE = {
    TokenType.AMP, TokenType.CARET, TokenType.PIPE, TokenType.DPIPE, TokenType.LR_ARROW, TokenType.COLLATE,
}  # fmt: skip
_COMPARING = {
    TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE,
    TokenType.IS, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.BETWEEN,
}  # fmt: skip
_DIVIDING = {
    TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.WHERE,
    TokenType.ON, TokenType.HAVING, TokenType.SELECT, TokenType.FROM,
}  # fmt: skip
# Marks the brackets of the text, which differ so from those that sqlglot adds, and `<=>`.
WRITTEN = "\x00written"


def mark_brackets(tokens: list[Token]) -> list[Token]:
    """The tokens with a comment at each bracket and `<=>`, which sqlglot keeps at the node that it makes."""
    kinds = {TokenType.L_PAREN, TokenType.NULLSAFE_EQ}
    return [
        Token(t.token_type, t.text, t.line, t.col, t.start, t.end, [*t.comments, WRITTEN])
        if t.token_type in kinds
        else t
        for t in tokens
    ]


def is_written(node: exp.Expr) -> bool:
    """Whether a node of marked tokens is a bracket of the text, or a `<=>` and not IS DISTINCT FROM."""
    return WRITTEN in (node.comments or ())


def are_mixed(tokens: list[Token]) -> bool:
    """Whether operators may follow each other without brackets, AND or OR: a quick look at the tokens only."""
    kinds = {token.token_type for token in tokens}
    if not kinds.isdisjoint(_RARE) or {TokenType.DASH, TokenType.DCOLON} <= kinds:
        return True
    comparing, between, outside = False, False, list[tuple[bool, bool]]()
    for token in tokens:
        kind = token.token_type
        if kind in _COMPARING:
            if comparing:
                return True
            comparing, between = True, kind is TokenType.BETWEEN
        elif kind is TokenType.L_PAREN:
            outside.append((comparing, between))
            comparing = between = False
        elif kind is TokenType.R_PAREN and outside:
            comparing, between = outside.pop()
        elif kind is TokenType.AND and between:
            between = False
        elif comparing and kind in _DIVIDING:
            comparing = False
    return False
