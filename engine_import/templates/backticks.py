"""Names in double quotes as Spark quotes them: with backticks."""

from __future__ import annotations

import re
from typing import Final

from engine_import.templates.template_parts import PieceKind, pieces

# Warehouses in which double quotes make a name, as in standard SQL; in Spark, BigQuery and MySQL they make a string.
ADAPTERS: Final = frozenset(
    (
        "athena", "clickhouse", "crate", "db2", "dremio", "duckdb", "exasol", "fabric", "firebolt", "greenplum",
        "materialize", "motherduck", "netezza", "oracle", "postgres", "presto", "redshift", "risingwave", "snowflake",
        "sqlite", "sqlserver", "starburst", "synapse", "teradata", "trino", "vertica",
    )
)  # fmt: skip
# In their strings a backslash takes the meaning from what follows.
_WITH_ESCAPES: Final = frozenset(("snowflake", "redshift", "clickhouse", "athena"))
_QUOTES: Final = ("'", '"')
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_DOLLARS: Final = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")


def with_backticks(template: str, adapter: str) -> str:
    """Return a template of dbt with backticks around the names that its SQL has in double quotes.

    Strings, comments and what is inside of Jinja's braces stay; a name may be made by Jinja: `"{{ column }}"`.
    """
    if adapter not in ADAPTERS or '"' not in template:
        return template
    made: list[str] = []
    inside = ""
    for piece in pieces(template):
        if piece.part is not PieceKind.TEXT:
            made.append(piece.text)
            continue
        text, inside = _translated(piece.text, inside, escapes=adapter in _WITH_ESCAPES)
        made.append(text)
    # A quote that is never closed is left to the reader.
    return template if inside else "".join(made)


def _translated(text: str, inside: str, *, escapes: bool) -> tuple[str, str]:
    """Return a text with backticks, and what its end is inside of: a quote, or nothing."""
    made, at = [], 0
    while at < len(text):
        length = 1
        if inside in _QUOTES:
            part, inside, length = _in_quotes(text, at, inside, escapes=escapes)
        elif inside:
            part = inside if text.startswith(inside, at) else text[at]
            inside, length = "" if part == inside else inside, len(part)
        elif (found := _COMMENT.match(text, at) or _DOLLARS.match(text, at)) is not None:
            part, length = found[0], len(found[0])
            inside = part if part.startswith("$") else ""
        else:
            part, inside = "`" if text[at] == '"' else text[at], text[at] if text[at] in _QUOTES else ""
        made.append(part)
        at += length
    return "".join(made), inside


def _in_quotes(text: str, at: int, quote: str, *, escapes: bool) -> tuple[str, str, int]:
    """Return the translated character, whether the quotes continue, and how many characters it was."""
    sign = text[at]
    if quote == "'":
        pair = text[at : at + 2] if escapes and sign == "\\" else ""
        return pair or sign, "" if sign == quote else quote, len(pair) or 1
    if text.startswith('""', at):
        return '"', quote, 2
    return ("`", "", 1) if sign == quote else ("``" if sign == "`" else sign, quote, 1)
