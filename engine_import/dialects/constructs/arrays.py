"""Arrays: literals in square brackets, and elements by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine_import.dialects.syntax.script import Script, Written, last_operand
from engine_import.dialects.syntax.sql_tree import Node, is_brackets, split

_Write = Callable[[Script, Sequence[Node]], str]
# BigQuery: the first is 0 or 1, and whether an element that is not there is an error or NULL.
_BY_WORD = {
    "offset": "{array}[{index}]", "ordinal": "element_at({array}, {index})",
    "safe_offset": "get({array}, {index})", "safe_ordinal": "try_element_at({array}, {index})",
}  # fmt: skip


def array_literal(
    script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: Callable[[Script, Node], str]
) -> int:
    """Write `[a, b]` and `ARRAY[a, b]` as `array(a, b)`."""
    text = f"({write(script, nodes[at])[1:-1]})"
    if made and made[-1].word == "array":
        made[-1] = Written(made[-1].gap, made[-1].text + text, [*made[-1].nodes, nodes[at]], "operand")
    else:
        made.append(Written(gap, f"array{text}", nodes[at : at + 1], "operand"))
    return at + 1


def subscript(script: Script, nodes: Sequence[Node], at: int, made: list[Written], write: _Write) -> int:
    """Write `a[n]` with Spark's index, which begins with 0."""
    node = nodes[at]
    inside = node.inside
    if made[-1].word == "array":
        return array_literal(script, nodes, at, "", made, lambda _, brackets: f"[{write(script, brackets.inside)}]")
    array = last_operand(made)
    if array is None:
        return 0
    text = ""
    if len(inside) == 2 and is_brackets(inside[1]) and inside[0].word in _BY_WORD:  # noqa: PLR2004 - OFFSET and its brackets
        index = write(script, inside[1].inside)
        text = _BY_WORD[inside[0].word].format(array=array.text, index=index)
    elif script.warehouse.first_index is not None and _is_number(inside):
        function = "try_element_at" if script.warehouse.first_index else "get"
        text = f"{function}({array.text}, {write(script, inside)})"
    elif script.warehouse.first_index and any(inner.word == ":" for inner in inside):
        message = "a slice of an array is not translated: slice(a, from, length)"
        text = f"{array.text}[{write(script, inside)}]{script.note(message)}"
    elif script.warehouse.first_index and not (len(inside) == 1 and inside[0].kind == "string"):
        message = "the first element of an array is 1 there and 0 here: not translated"
        text = f"{array.text}[{write(script, inside)}]{script.note(message)}"
    else:
        text = f"{array.text}[{write(script, inside)}]"
    made.append(Written(array.gap, text, [*array.nodes, node], "operand"))
    return at + 1


def struct_literal(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: _Write) -> int:
    """Write `{'a': 1}` as `named_struct('a', 1)`."""
    parts = split(nodes[at].inside)
    if not parts or any(len(part) < 3 or part[1].word != ":" for part in parts):  # noqa: PLR2004 - name, colon, value
        return 0
    names = (part[0].text if part[0].kind == "string" else f"'{part[0].text.strip(chr(34))}'" for part in parts)
    pairs = ", ".join(f"{name}, {write(script, part[2:])}" for name, part in zip(names, parts, strict=True))
    made.append(Written(gap, f"named_struct({pairs})", nodes[at : at + 1], "operand"))
    return at + 1


def _is_number(nodes: Sequence[Node]) -> bool:
    return bool(nodes) and nodes[-1].kind == "number" and [node.word for node in nodes[:-1]] in ([], ["-"])
