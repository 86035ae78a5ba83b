"""UNNEST: a table of the elements of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine_import.dialects.syntax.call import styled
from engine_import.dialects.syntax.script import Script, Written, last_operand
from engine_import.dialects.syntax.sql_tree import Node, is_brackets

_Write = Callable[[Script, Sequence[Node]], str]
_CLAUSES = frozenset(("select", "from", "where", "group", "having", "order", "qualify"))
_NO_ALIAS = _CLAUSES | frozenset(
    (
        "join", "left", "right", "inner", "cross", "full", "on", "using", "with", "limit", "union", "window",
        "lateral", "natural",
    )
)  # fmt: skip


def unnested(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: _Write) -> int:
    """Write UNNEST(a) after FROM and JOIN as explode(a), `x IN UNNEST(a)` as array_contains(a, x)."""
    if nodes[at].word == "in" and at + 2 < len(nodes) and nodes[at + 1].word == "unnest" and is_brackets(nodes[at + 2]):
        return _contained(script, nodes, at, gap, made, write)
    if nodes[at].word != "unnest" or at + 1 >= len(nodes) or not is_brackets(nodes[at + 1]):
        return 0
    array = write(script, nodes[at + 1].inside)
    clause = next((node.word for node in reversed(nodes[:at]) if node.word in _CLAUSES), "")
    if clause != "from":
        made.append(Written(gap, f"{styled('explode', nodes[at].text)}({array})", nodes[at : at + 2], "operand"))
        return at + 2
    element, end = _alias(nodes, at + 2)
    place, end = _with_offset(nodes, end)
    if not element and not place and end < len(nodes) and nodes[end].word not in _NO_ALIAS | {","}:
        return 0
    lateral = "" if made[-1].word == "from" else "lateral "
    if made[-1].word == "join" and (len(made) < 2 or made[-2].word not in ("cross", "left", "inner", "outer")):  # noqa: PLR2004 - the word before JOIN
        made[-1].text = f"cross {made[-1].text}" if not _has_condition(nodes, end) else made[-1].text
    function = "posexplode" if place else "explode"
    names = ", ".join(filter(None, (place, element or ("element" if place else ""))))
    columns = element if "(" in element else f"{element or 'element'}({names})" if names else ""
    head, name = styled(f"{lateral}{function}", nodes[at].text), styled(" as ", nodes[at].text)
    text = f"{head}({array})" + (f"{name}{columns}" if columns else "")
    if made[-1].word == "join" and not _has_condition(nodes, end) and _is_left(made):
        text += styled(" on true", nodes[at].text)
    made.append(Written(gap, text, nodes[at:end]))
    return end


def _contained(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: _Write) -> int:
    negation = made.pop() if made and made[-1].word == "not" else None
    value = last_operand(made)
    array = write(script, nodes[at + 2].inside)
    if value is None:
        made += [negation] if negation else []
        mark = script.note("IN UNNEST is not translated: array_contains(array, x)")
        made.append(Written(gap, f"{nodes[at].text}{mark}", nodes[at : at + 1]))
        return at + 1
    function = styled("not array_contains" if negation else "array_contains", nodes[at].text)
    text = f"{function}({array}, {value.text})"
    made.append(Written(value.gap, text, [*value.nodes, *nodes[at : at + 3]], "operand"))
    return at + 3


def _alias(nodes: Sequence[Node], at: int) -> tuple[str, int]:
    end = at + (at < len(nodes) and nodes[at].word == "as")
    if end >= len(nodes) or nodes[end].kind not in ("word", "name") or nodes[end].word in _NO_ALIAS:
        return "", at
    name = nodes[end].text
    if (
        end + 1 < len(nodes)
        and is_brackets(nodes[end + 1])
        and all(node.kind != "brackets" for node in nodes[end + 1].inside)
    ):
        columns = ", ".join(node.text for node in nodes[end + 1].inside if node.word != ",")
        return f"{name}({columns})", end + 2
    return name, end + 1


def _with_offset(nodes: Sequence[Node], at: int) -> tuple[str, int]:
    if [node.word for node in nodes[at : at + 2]] != ["with", "offset"]:
        return "", at
    name, end = _alias(nodes, at + 2)
    return name or "offset", end


def _has_condition(nodes: Sequence[Node], at: int) -> bool:
    return at < len(nodes) and nodes[at].word in ("on", "using")


def _is_left(made: Sequence[Written]) -> bool:
    return "left" in [entry.word for entry in made[-3:]]
