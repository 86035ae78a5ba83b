"""The relations that an SQL step of a job reads, replaced by ref() and source()."""

from __future__ import annotations

from collections.abc import Mapping

_END = {"WHERE", "GROUP", "ORDER", "HAVING", "UNION", "LIMIT", "ON", "USING", "LATERAL", "WINDOW", "SELECT", "CLUSTER"}


def with_references(sql: str, names: Mapping[str, str]) -> str:
    """Return the SQL with names of inputs and steps replaced where a relation is named: after FROM, JOIN and commas.

    Args:
        sql: of a step; one that cannot be read stays as it is.
        names: what stands for a name in lower case.
    """
    from sqlglot.errors import TokenError

    from engine.compile.sql.dialect import tokenize

    try:
        tokens = tokenize(sql)
    except TokenError:
        return sql
    parts, at, depth = [], 0, 0
    # Whether a comma at a depth separates relations.
    listing: dict[int, bool] = {}
    expected = False
    for number, token in enumerate(tokens):
        word = token.text.upper()
        depth += (word == "(") - (word == ")")
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if expected and token.text.casefold() in names and following not in (".", "("):
            parts += [sql[at : token.start], names[token.text.casefold()]]
            at = token.end + 1
        expected = word in ("FROM", "JOIN") or (word == "," and listing.get(depth, False))
        if word == "FROM":
            listing[depth] = True
        elif word in _END or word == "(":
            listing[depth] = False
    return "".join([*parts, sql[at:]])
