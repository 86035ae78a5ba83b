"""Paths into a VARIANT, `v:item[0].name` (SemiStructuredExtract), which sqlglot reads as `v['item'][0].name`."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

_BEFORE = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET}
_TYPES = {"array", "map", "struct"}


def with_brackets(tokens: list[Token]) -> list[Token]:
    """The tokens with brackets around the first key of each path; a colon in a type stays."""
    if not any(token.token_type is TokenType.COLON for token in tokens):
        return tokens
    result: list[Token] = []
    types, opened = 0, False
    for index, token in enumerate(tokens):
        kind = token.token_type
        types += kind is TokenType.LT and index > 0 and tokens[index - 1].text.lower() in _TYPES
        types -= kind is TokenType.GT and types > 0
        if opened:
            result += [_as(token, TokenType.STRING, token.text), _as(token, TokenType.R_BRACKET, "]")]
            opened = False
        elif kind is TokenType.COLON and not types and 0 < index < len(tokens) - 1 and _ends_value(tokens[index - 1]):
            opened = tokens[index + 1].token_type is not TokenType.L_BRACKET
            if tokens[index + 1].token_type is TokenType.STAR:
                return tokens
            result += [_as(token, TokenType.L_BRACKET, "[")] if opened else []
        else:
            result.append(token)
    return result


def _ends_value(token: Token) -> bool:
    return token.token_type in _BEFORE


def _as(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def is_path(node: exp.Expr, text: str) -> bool:
    """Whether brackets and dots are a path into a VARIANT; `text` is the query."""
    while isinstance(node, (exp.Bracket, exp.Dot)):
        key = node.expressions[0] if isinstance(node, exp.Bracket) and node.expressions else None
        start = key.meta.get("start", 0) if isinstance(key, exp.Literal) else 0
        if text[:start].rstrip().removesuffix("[").rstrip().endswith(":"):
            return True
        node = node.this
    return False


def path_name(node: exp.Expr) -> str:
    """Spark's name for a path: the last key of it that is a name."""
    while isinstance(node, (exp.Bracket, exp.Dot)):
        if isinstance(node, exp.Dot):
            return str(node.expression.name)
        key = node.expressions[0] if node.expressions else None
        if isinstance(key, exp.Literal) and key.is_string:
            return str(key.name)
        node = node.this
    return ""
