"""Values with their type before them: `ARRAY<INT64>[1, 2]`, `STRUCT<a STRING>('x')`, `DATETIME '2024-01-01'`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine_import.dialects.constructs.cast_types import type_text
from engine_import.dialects.syntax.call import styled
from engine_import.dialects.syntax.script import Script, Written
from engine_import.dialects.syntax.sql_tree import Node

# Types whose literals Spark does not have.
_OF_STRINGS = ("datetime", "numeric", "bignumeric")
_DEPTHS = {"<": 1, ">": -1, ">>": -2}


def typed_literal(
    script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: Callable[[Script, Node], str]
) -> int:
    if nodes[at].word in _OF_STRINGS and script.warehouse.dialect == "bigquery":
        return _of_string(script, nodes, at, gap, made)
    if nodes[at].word not in ("array", "struct") or at + 1 >= len(nodes) or nodes[at + 1].word != "<":
        return 0
    depth, end = 0, at + 1
    while end < len(nodes):
        depth += _DEPTHS.get(nodes[end].word, 0)
        end += 1
        if depth <= 0:
            break
    if depth or end >= len(nodes) or nodes[end].kind != "brackets" or nodes[end].text == "{":
        return 0
    name = nodes[at].text
    inside = f"{name}({write(script, nodes[end])[1:-1]})"
    kind = type_text(script, nodes[at:end])
    text = f"{styled('cast', name)}({inside}{styled(' as ', name)}{kind})"
    made.append(Written(gap, text, nodes[at : end + 1], "operand"))
    return end + 1


def _of_string(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if at + 1 >= len(nodes) or nodes[at + 1].kind != "string":
        return 0
    name, value = nodes[at].text, nodes[at + 1].text
    text = f"{styled('cast', name)}({value}{styled(' as ', name)}{type_text(script, nodes[at : at + 1])})"
    made.append(Written(gap, text, nodes[at : at + 2], "operand"))
    return at + 2
