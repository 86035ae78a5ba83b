"""Commas with nothing after them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine_import.dialects.syntax.script import Script, Written
from engine_import.dialects.syntax.sql_tree import Node

_ENDS = frozenset(("from", "where", "union", "intersect", "except", "select"))
_LAST_OF_LOOP = re.compile(r"\s*\{%-?\s*endfor\s*-?%\}")


def trailing_comma(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    """Leave out a comma before FROM, a closing bracket or the SELECT after a list of CTEs.

    A comma at the end of a loop of Jinja is left out in the last turn only.
    """
    if nodes[at].word != "," or script.warehouse.dialect not in ("bigquery", "duckdb", "snowflake", "redshift"):
        return 0
    following = nodes[at + 1] if at + 1 < len(nodes) else None
    if following is not None and following.word not in _ENDS:
        return 0
    outside = nodes[0] is script.tree.nodes[0]
    if following is None and outside:
        return 0
    if following is not None and following.word == "select" and not _after_cte(nodes, at):
        return 0
    end = following.start if following is not None else _end(script, nodes[at].end)
    text = ""
    if script.tree.has_block(nodes[at].end, end):
        if _LAST_OF_LOOP.match(script.tree.text, nodes[at].end):
            text = '{{ "," if not loop.last }}'
        else:
            text = "," + script.note("a comma that a block of Jinja follows may have nothing after it: not translated")
    made.append(Written(gap, text, nodes[at : at + 1]))
    return at + 1


def _after_cte(nodes: Sequence[Node], at: int) -> bool:
    return nodes[at - 1].kind == "brackets" and any(node.word == "with" for node in nodes[:at])


def _end(script: Script, at: int) -> int:
    found = re.compile(r"[)\]]").search(script.tree.text, at)
    return found.start() if found else at
