"""`_metadata`, where a record came from: a column of a source that `select *` leaves out.

The view of a source has the column only in models that name it, and there every star over the source gets an
`EXCEPT (<source>._metadata)`. (Spark's own hidden columns end at a view.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.config.window_config import Edit
from engine.compile.sql.dialect import tokenize
from engine.compile.sql.parse import ParsedQuery
from engine.sources import ORIGIN

_BEFORE_STAR = {TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA, TokenType.L_PAREN, TokenType.DOT}
_SET_OPERATORS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
# Elsewhere FROM stands behind a select list, or in a call: extract(year from ts).
_BEFORE_FROM = {None, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ALL, *_SET_OPERATORS}
_BEGIN_QUERY = {TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}


@dataclass(slots=True)
class _Level:
    """A pair of brackets, or the text outside all: the SELECT in it so far, if there is one."""

    above: _Level | None
    select: _Select | None = None

    def nearest(self) -> _Select | None:
        """The SELECT that something at this place belongs to."""
        return self.select or (self.above.nearest() if self.above else None)


@dataclass(slots=True)
class _Select:
    """One SELECT: the sources it reads, and its stars as (offset behind it, qualifier, whether EXCEPT follows)."""

    names: list[str] = field(default_factory=list)
    stars: list[tuple[int, str, bool]] = field(default_factory=list)


def names_metadata(text: str) -> bool:
    """Whether a query may name `_metadata`; one in a text or comment counts too, and does no harm."""
    return ORIGIN in text.lower()


def star_edits(text: str, query: ParsedQuery, names: Mapping[int, str]) -> Iterator[Edit]:
    """The edits that keep `_metadata` out of the stars of a query.

    Args:
        text: the rendered query.
        query: as parsed from it.
        names: for each reference to a source, by its offset, the name that qualifies its columns.
    """
    tokens = tokenize(text[: query.end])
    written = {start: name.lower() for start, _, name in query.qualifiers}
    for select in _selects(tokens, names, written):
        for offset, qualifier, listed in select.stars:
            hidden = [name for name in dict.fromkeys(select.names) if qualifier in {"", name.strip("`").lower()}]
            columns = ", ".join(f"{name}.{ORIGIN}" for name in hidden)
            if columns:
                yield Edit(offset, offset, f"{columns}, " if listed else f" EXCEPT ({columns})")


def _selects(tokens: list[Token], names: Mapping[int, str], written: Mapping[int, str]) -> list[_Select]:
    level, found = _Level(None), []
    for index, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[index - 1].token_type if index else None
        begins = kind is TokenType.SELECT or (kind is TokenType.FROM and before in _BEFORE_FROM)
        if kind is TokenType.L_PAREN:
            level = _Level(level)
        elif kind is TokenType.R_PAREN:
            level = level.above or level
        elif kind in _SET_OPERATORS and not _excepts_columns(tokens, index):
            level.select = None
        elif begins and level.select is None:
            level.select = _Select()
            found.append(level.select)
        elif kind is TokenType.STAR and before in _BEFORE_STAR and not _is_count(tokens, index):
            _add_star(level.nearest(), tokens, index, written)
        elif token.start in names and (select := level.nearest()) is not None:
            select.names.append(names[token.start])
    return found


def _excepts_columns(tokens: list[Token], index: int) -> bool:
    """`* except (a)` and not `select * except (select ..)`."""
    around = [token.token_type for token in tokens[max(index - 1, 0) : index + 3]]
    star, _, bracket, first = [*around, None, None][:4]
    return star is TokenType.STAR and bracket is TokenType.L_PAREN and first not in _BEGIN_QUERY


def _is_count(tokens: list[Token], index: int) -> bool:
    return index > 1 and tokens[index - 1].token_type is TokenType.L_PAREN and tokens[index - 2].text.lower() == "count"


def _add_star(select: _Select | None, tokens: list[Token], index: int, written: Mapping[int, str]) -> None:
    if select is None:
        return
    before = tokens[index - 2] if tokens[index - 1].token_type is TokenType.DOT and index > 1 else None
    qualifier = written.get(before.start, before.text.lower()) if before else ""
    listed = index + 2 < len(tokens) and _excepts_columns(tokens, index + 1)
    offset = tokens[index + 2].end + 1 if listed else tokens[index].end + 1
    select.stars.append((offset, qualifier, listed))
