"""Which columns a query may read: every name in its text counts, so that nothing is missed."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.compile.sql.dialect import parse_text, tokenize

# Iceberg's columns of a row's place: compaction changes them.
_PLACES = {
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_metadata",
}
_NO_NAMES = {TokenType.STRING, TokenType.NUMBER}


def read_names(sql: str) -> frozenset[str] | None:
    """Return the names in a query, in lower case: a column that is not among them is not read.

    Returns:
        None: any column may be read, by `*`, a natural join, PIVOT or TABLE.
    """
    tokens = tokenize(sql)
    if any(token.token_type is TokenType.TABLE for token in tokens):
        return None
    tree = parse_text(sql)
    stars = (star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
    joins = (join for join in tree.find_all(exp.Join) if join.args.get("method"))
    if any(True for _ in stars) or any(True for _ in joins) or tree.find(exp.Pivot) is not None:
        return None
    return frozenset(token.text.lower() for token in tokens if token.token_type not in _NO_NAMES)


def reads_places(sql: str) -> bool:
    """Return whether a query may read where a row is stored, which compaction changes."""
    return any(token.text.lower() in _PLACES for token in tokenize(sql))
