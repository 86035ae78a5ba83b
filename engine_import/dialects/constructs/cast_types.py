"""Types in casts: a warehouse's names as Spark's."""

from __future__ import annotations

from collections.abc import Sequence

from engine_import.dialects.syntax.script import Script
from engine_import.dialects.syntax.sql_tree import Node, is_brackets
from engine_import.dialects.syntax.warehouse import Warehouse
from engine_import.dialects.syntax.warehouse_types import spark_type

_SAME = frozenset(("integer", "smallint", "tinyint", "dec", "long", "byte", "short"))
_INTEGERS = frozenset(("int", "bigint", "integer", "smallint", "tinyint"))
_FRACTIONS = frozenset(
    (
        "avg", "sqrt", "exp", "ln", "log", "log10", "pow", "power", "stddev", "variance", "percentile_cont",
        "safe_divide", "ieee_divide", "div0",
    )
)  # fmt: skip
_WORDS_OF_TWO = {
    "double": ("precision",), "character": ("varying",), "time": ("with", "without"), "timestamp": ("with", "without"),
}  # fmt: skip


def type_text(script: Script, nodes: Sequence[Node]) -> str:
    text = script.tree.text[nodes[0].start : nodes[-1].end]
    if any(script.tree.has_jinja(node) for node in nodes) or script.tree.has_block(nodes[0].start, nodes[-1].end):
        return text
    if len(nodes) > 1 and nodes[1].word == "<":
        return _nested(script, nodes)
    if is_brackets(nodes[-1], "[") and not nodes[-1].inside:
        return f"array<{type_text(script, nodes[:-1])}>"
    new = _type(text, script.warehouse)
    return text if new == " ".join(text.casefold().split()) else new.upper() if text.isupper() else new


def _type(text: str, warehouse: Warehouse) -> str:
    plain = " ".join(text.casefold().split())
    if plain in warehouse.types:
        return warehouse.types[plain]
    word = plain.partition("(")[0].rstrip()
    if "(" in plain and word in warehouse.types and word not in ("numeric", "number", "decimal"):
        return warehouse.types[word]
    return plain if plain in _SAME else spark_type(plain)


def _nested(script: Script, nodes: Sequence[Node]) -> str:
    made = []
    for at, node in enumerate(nodes):
        gap = script.gap(nodes[at - 1].end, node.start) if at else ""
        following = nodes[at + 1] if at + 1 < len(nodes) else None
        names = following is not None and following.kind == "word" and node.kind == "word"
        made.append(gap + (type_text(script, [node]) if node.kind == "word" and not names else node.text))
    return "".join(made)


def type_end(nodes: Sequence[Node], at: int) -> int:
    end = at + 1
    if end < len(nodes) and nodes[end].word in _WORDS_OF_TWO.get(nodes[at].word, ()):
        end += 1 if nodes[end].word in ("precision", "varying") else 3
    while end < len(nodes) and nodes[end].kind == "brackets" and nodes[end].text in "([":
        if nodes[end].text == "[" and nodes[end].inside:
            break
        end += 1
    return min(end, len(nodes))


def is_integer(new_type: str) -> bool:
    return new_type.casefold() in _INTEGERS


def is_fractional(nodes: Sequence[Node], warehouse: Warehouse) -> bool:
    """Return whether a value certainly has a fraction: a division, an average, or a number with a point."""
    for at, node in enumerate(nodes):
        following = nodes[at + 1] if at + 1 < len(nodes) else None
        if node.word == "/" and not warehouse.whole_slash:
            return True
        # Where halves go to the even number, those of decimals do not.
        if node.kind == "number" and "." in node.text and warehouse.rounds == "round":
            return True
        if node.word in _FRACTIONS and is_brackets(following):
            return True
        if is_brackets(node) and (not at or nodes[at - 1].kind != "word") and is_fractional(node.inside, warehouse):
            return True
    return False
