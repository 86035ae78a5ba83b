"""Operators that Spark does not have, or that mean something else there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from engine_import.dialects.constructs.cast_types import is_fractional, type_end, type_text
from engine_import.dialects.syntax.script import Script, Written, last_operand
from engine_import.dialects.syntax.sql_tree import Node, is_brackets

_Write = Callable[[Script, Sequence[Node]], str]
_WHOLE = "a division of two integers cuts the fraction there; here it does not: write a div b for integers"
_PLAIN = re.compile(r"\w+")


def operator(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: _Write) -> int:
    word, warehouse = nodes[at].word, script.warehouse
    end = 0
    if word == "^" and warehouse.caret:
        end = _power(script, nodes, at, made, write)
    elif word in ("/", "//"):
        end = _division(script, nodes, at, gap, made)
    elif word in ("~", "~*", "!") and warehouse.tilde:
        end = _match(script, nodes, at, gap, made, write)
    elif word == ":" and warehouse.colon_paths and made and made[-1].kind == "operand":
        end = _path(script, nodes, at, made)
    elif word == "exclude" and made and made[-1].word == "*":
        end = _exclude(nodes, at, gap, made)
    return end


def _division(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if nodes[at].word == "//" and script.warehouse.dialect == "duckdb":
        made.append(Written(gap, "div", nodes[at : at + 1]))
        return at + 1
    if nodes[at].word == "//" or not script.warehouse.whole_slash or _is_certain(script, nodes, at):
        return 0
    made.append(Written(gap, f"/{script.note(_WHOLE)}", nodes[at : at + 1]))
    return at + 1


def _power(script: Script, nodes: Sequence[Node], at: int, made: list[Written], write: _Write) -> int:
    """Write `a ^ b`, which binds more strongly than all but a sign: both sides are single values."""
    end = _operand_end(nodes, at + 1)
    base = last_operand(made) if end > at + 1 else None
    if base is None:
        return 0
    if made and made[-1].word == "-" and (len(made) == 1 or made[-2].kind == "other"):
        # A sign binds more strongly than the power.
        sign = made.pop()
        base = Written(sign.gap, f"-{base.text}", [*sign.nodes, *base.nodes], "operand")
    text = f"power({base.text}, {write(script, nodes[at + 1 : end])})"
    made.append(Written(base.gap, text, [*base.nodes, *nodes[at:end]], "operand"))
    return end


def _operand_end(nodes: Sequence[Node], at: int) -> int:
    end = at + (at < len(nodes) and nodes[at].word in ("-", "+"))
    if end >= len(nodes) or (nodes[end].kind == "sign"):
        return at
    end += 1
    while end < len(nodes) and (nodes[end].kind == "brackets" or nodes[end].word == "."):
        end += 2 if nodes[end].word == "." else 1
    return min(end, len(nodes))


def _is_certain(script: Script, nodes: Sequence[Node], at: int) -> bool:
    """Return whether a division certainly has a fraction: one side is a number with a point, or a cast."""
    near = [*nodes[max(0, at - 4) : at], *nodes[at + 1 : at + 5]]
    texts = {node.word for node in near} | {inner.word for node in near for inner in node.inside}
    fractional = {"float", "double", "numeric", "decimal", "real", "float8"}
    return is_fractional(near, script.warehouse) or bool(texts & fractional)


def _match(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written], write: _Write) -> int:
    """Write `a ~ 'x'`, `a !~ 'x'` and `a ~* 'x'` as RLIKE."""
    negated = nodes[at].word == "!"
    sign = at + negated
    if sign >= len(nodes) or nodes[sign].word not in ("~", "~*"):
        return 0
    end = _operand_end(nodes, sign + 1)
    if end == sign + 1:
        return 0
    pattern = write(script, nodes[sign + 1 : end])
    if script.warehouse.tilde == "whole":
        pattern = f"concat('^(?:', {pattern}, ')$')"
    if nodes[sign].word == "~*":
        pattern = f"concat('(?i)', {pattern})"
    made.append(Written(gap, f"{'not ' if negated else ''}rlike {pattern}", nodes[at:end]))
    return end


def _path(script: Script, nodes: Sequence[Node], at: int, made: list[Written]) -> int:
    """Write Snowflake's `column:a.b[0]::type` as variant_get()."""
    end, path = at + 1, "$"
    while end < len(nodes):
        node = nodes[end]
        if nodes[end - 1].word in (":", ".") and node.kind in ("word", "name") and not script.tree.has_jinja(node):
            path += f".{node.text}" if _PLAIN.fullmatch(node.text) else f"['{node.text[1:-1]}']"
        elif is_brackets(node, "[") and len(node.inside) == 1 and node.inside[0].kind in ("number", "string"):
            path += f"[{node.inside[0].text}]"
        elif node.word != ".":
            break
        end += 1
    value = last_operand(made) if path != "$" else None
    if value is None:
        return 0
    quoted = "'" + path.replace("'", "\\'") + "'"
    kind = ""
    if end + 1 < len(nodes) and nodes[end].word == "::":
        last = type_end(nodes, end + 1)
        kind = f", '{type_text(script, nodes[end + 1 : last])}'"
        end = last
    text = f"variant_get({value.text}, {quoted}{kind})"
    made.append(Written(value.gap, text, [*value.nodes, *nodes[at:end]], "operand"))
    return end


def _exclude(nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    text = "EXCEPT" if nodes[at].text.isupper() else "except"
    following = nodes[at + 1] if at + 1 < len(nodes) else None
    if following is None or following.kind == "brackets":
        made.append(Written(gap, text, nodes[at : at + 1]))
        return at + 1
    made.append(Written(gap, f"{text} ({following.text})", nodes[at : at + 2]))
    return at + 2
