"""What Spark reads as a query and sqlglot does not: `TABLE t` and `VALUES ..`, written as SELECTs with their places.

As AstBuilder has it: visitTable, visitInlineTable.
"""

from __future__ import annotations

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

_SETS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}


def with_selects(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with a SELECT in place of what sqlglot does not read."""
    lower = text.lower()
    if "table" not in lower and "values" not in lower:
        return tokens
    result: list[Token] = []
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.TABLE and _starts_query(tokens, index) and _names(tokens, index + 1):
            result += _select_star(token)
        elif kind is TokenType.VALUES and _starts_query(tokens, index) and not _is_bracketed(tokens, index):
            result += [*_select_star(token), token]
        else:
            result.append(token)
    return result


def _select_star(token: Token) -> list[Token]:
    words = (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")
    return [Token(*word, token.line, token.col, token.start, token.end) for word in words]


def _starts_query(tokens: list[Token], index: int) -> bool:
    """Whether a query may begin here: at the begin, in brackets, behind UNION and its like, behind WITH."""
    if not index:
        return True
    before = tokens[index - 1].token_type
    if before in {TokenType.ALL, TokenType.DISTINCT} and index > 1:
        before = tokens[index - 2].token_type
    return before in {*_SETS, TokenType.L_PAREN} or (before is TokenType.R_PAREN and _ends_ctes(tokens, index - 1))


def _ends_ctes(tokens: list[Token], index: int) -> bool:
    """Whether a bracket closes a CTE: it is opened behind AS."""
    depth = 0
    for place in range(index, 0, -1):
        kind = tokens[place].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if not depth:
            return tokens[place - 1].token_type is TokenType.ALIAS
    return False


def _names(tokens: list[Token], index: int) -> bool:
    """Whether the name of a relation comes: `table` may be a column, and `TABLE(..)` an argument."""
    return index < len(tokens) and tokens[index].token_type in {TokenType.VAR, TokenType.IDENTIFIER}


def _is_bracketed(tokens: list[Token], index: int) -> bool:
    """Whether VALUES is the first in brackets: that sqlglot reads."""
    return index > 0 and tokens[index - 1].token_type is TokenType.L_PAREN
