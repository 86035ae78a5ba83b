"""Where the items of a SELECT are in the text, from its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}
# What is between SELECT and its first item.
_BEFORE = {TokenType.HINT, TokenType.DISTINCT, TokenType.ALL}
_ENDS = {
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SORT_BY,
    TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LATERAL, TokenType.LIMIT, TokenType.OFFSET,
    TokenType.WINDOW, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
}  # fmt: skip
# Behind these a name must follow, whatever else its word may be: `select offset, t.limit, a as window`.
_NAMING = {TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.ALIAS, *_BEFORE}


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """The place of an item: begin and end (exclusive), and the end of its expression if its last word is an alias."""

    start: int
    end: int
    unaliased: int


def item_places(tokens: Sequence[Token]) -> tuple[ItemPlace, ...]:
    """Return the places of the items of the first SELECT that is in no brackets; of a pipe, of its last operator."""
    return first_places(_last_operator(tokens))


def first_places(tokens: Sequence[Token]) -> tuple[ItemPlace, ...]:
    """The same without a look at pipes."""
    return tuple(_place(item) for item in _items(tokens) if item)


def _last_operator(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of the last operator of a pipe; all of them if there is none."""
    depth, begin = 0, 0
    for index, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if not depth and token.token_type is TokenType.PIPE_GT:
            begin = index + 1
    behind = tokens[begin:]
    return behind if not begin or (behind and behind[0].token_type is TokenType.SELECT) else ()


def _items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    depth, item, inside = 0, list[Token](), False
    for index, token in enumerate(tokens):
        kind = token.token_type
        depth -= kind in _CLOSING
        if not inside:
            inside = kind is TokenType.SELECT and not depth
        elif depth or not (kind is TokenType.COMMA or _ends(tokens, index)):
            if item or kind not in _BEFORE:
                item.append(token)
        else:
            yield item
            item = []
            if kind is not TokenType.COMMA:
                return
        depth += kind in _OPENING
    yield item


def _ends(tokens: Sequence[Token], index: int) -> bool:
    kind, before = tokens[index].token_type, tokens[index - 1].token_type
    if kind not in _ENDS or before in _NAMING:
        return False
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    # `* except (a, b)` names columns; `* except select ..` is another query.
    return not (kind is TokenType.EXCEPT and before is TokenType.STAR and after is TokenType.L_PAREN)


def _place(item: Sequence[Token]) -> ItemPlace:
    end = item[-1].end + 1
    expression = item[:-2] if len(item) > 1 and item[-2].token_type is TokenType.ALIAS else item[:-1]
    return ItemPlace(item[0].start, end, expression[-1].end + 1 if expression else end)
