"""Nodes in Spark's dialect: each construct that differs is replaced at its place, all else stays as it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from engine_import.dialects.constructs.arrays import array_literal, struct_literal, subscript
from engine_import.dialects.constructs.cast_types import is_fractional, is_integer, type_end, type_text
from engine_import.dialects.constructs.infix_operators import operator
from engine_import.dialects.constructs.qualify import with_subquery
from engine_import.dialects.constructs.sort_order import with_null_order
from engine_import.dialects.constructs.trailing_commas import trailing_comma
from engine_import.dialects.constructs.typed_literals import typed_literal
from engine_import.dialects.constructs.unnest import unnested
from engine_import.dialects.syntax.call import Argument, Call, styled
from engine_import.dialects.syntax.literals import name_text, string_text, string_value
from engine_import.dialects.syntax.script import Script, Written, last_operand
from engine_import.dialects.syntax.sql_tree import Node, is_brackets, split
from engine_import.dialects.syntax.warehouse import Noted, Rule

_COMMENT = re.compile(r"--([^\n]*)|/\*(.*?)(?:\*/|\Z)", re.DOTALL)
_RENAMED = re.compile(r"\w+\(\{\*\}\)")
_CASTS = ("cast", "safe_cast", "try_cast")
# Brackets after these words are not arguments.
_NOT_CALLS = frozenset(
    (
        "and", "or", "not", "in", "as", "on", "using", "over", "when", "then", "else", "where", "from", "join", "by",
        "select", "case", "like", "ilike", "between", "exists", "all", "some", "union", "except", "intersect",
        "distinct", "having", "limit", "values", "with", "qualify", "within", "end", "interval", "pivot", "unpivot",
        "lateral", "return", "partition", "order", "offset", "is", "exclude", "replace", "recursive", "unnest", "any",
    )
)  # fmt: skip
_CLAUSES = _NOT_CALLS | {
    "asc", "desc", "nulls", "first", "last", "rows", "range", "group", "inner", "cross", "outer", "full", "for", "set",
    "null", "true", "false",
}  # fmt: skip
_NULL_TREATMENT = ("first_value", "last_value", "lead", "lag", "nth_value")


def write(script: Script, nodes: Sequence[Node], *, ordered: bool = False) -> str:
    """Write nodes, from the beginning of the first to the end of the last.

    Args:
        script: the translation.
        nodes: of one level of brackets.
        ordered: an ORDER BY among them decides on rows or values.
    """
    if not nodes:
        return ""
    if script.replaced:
        return _written(script, nodes, ordered=ordered)
    # Rules write an argument that others write again: without this the time doubles with each level of brackets.
    place = nodes[0].start, nodes[-1].end, ordered
    text = script.written.get(place)
    if text is None:
        text = script.written[place] = _written(script, nodes, ordered=ordered)
    return text


def _written(script: Script, nodes: Sequence[Node], *, ordered: bool) -> str:
    made: list[Written] = []
    at = 0
    while at < len(nodes):
        gap = script.gap(nodes[at - 1].end, nodes[at].start) if at else ""
        at = next(end for part in _PARTS if (end := part(script, nodes, at, gap, made)))
    with_null_order(script, made, ordered=ordered)
    with_subquery(script, made, write)
    return "".join(entry.gap + entry.text for entry in made)


def write_brackets(script: Script, node: Node, *, ordered: bool = False) -> str:
    closing = script.tree.text[node.end - 1]
    if not node.inside:
        return script.gap(node.start, node.end)
    before = script.gap(node.start + 1, node.inside[0].start)
    after = script.gap(node.inside[-1].end, node.end - 1)
    return f"{node.text}{before}{write(script, node.inside, ordered=ordered)}{after}{closing}"


def _unnested(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    return unnested(script, nodes, at, gap, made, write)


def _typed(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    return typed_literal(script, nodes, at, gap, made, write_brackets)


def _subscript(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if is_brackets(nodes[at], "{"):
        return struct_literal(script, nodes, at, gap, made, write)
    if not is_brackets(nodes[at], "["):
        return 0
    if made and made[-1].kind == "operand" and not gap:
        return subscript(script, nodes, at, made, write)
    return array_literal(script, nodes, at, gap, made, write_brackets)


def _operator(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    return operator(script, nodes, at, gap, made, write)


def _double_colon(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if nodes[at].word != "::" or at + 1 >= len(nodes):
        return 0
    end = type_end(nodes, at + 1)
    kind = type_text(script, nodes[at + 1 : end])
    operand = last_operand(made)
    if operand is None:
        made.append(Written(gap, f"::{kind}", nodes[at:end], "operand"))
        return end
    if is_integer(kind) and is_fractional(operand.nodes, script.warehouse):
        operand.text = f"{script.warehouse.rounds}({operand.text})"
    mark = _text_without_length(script, nodes[at + 1 : end])
    made.append(Written(operand.gap, f"{operand.text}{gap}::{kind}{mark}", [*operand.nodes, *nodes[at:end]], "operand"))
    return end


def _cast(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if nodes[at].word not in _CASTS or not _is_call(nodes, at):
        return 0
    inside = nodes[at + 1].inside
    between = next((place for place, node in enumerate(inside) if node.word == "as"), 0)
    if not between or between + 1 >= len(inside):
        return 0
    name, kinds = nodes[at].text, inside[between + 1 :]
    kind = type_text(script, kinds) + _text_without_length(script, kinds)
    if any(node.word == "format" for node in kinds):
        kind += script.note("CAST .. FORMAT is not translated: write to_date() or date_format() with Spark's pattern")
    value = write(script, inside[:between])
    if is_integer(type_text(script, kinds)) and is_fractional(inside[:between], script.warehouse):
        value = f"{styled(script.warehouse.rounds, name)}({value})"
    new_name = styled("try_cast", name) if nodes[at].word == "safe_cast" else name
    opening = script.gap(nodes[at].end, nodes[at + 1].start + 1) + script.gap(nodes[at + 1].start + 1, inside[0].start)
    middle = script.gap(inside[between - 1].end, kinds[0].start)
    closing = script.gap(inside[-1].end, nodes[at + 1].end)
    text = f"{new_name}{opening}{value}{middle}{kind}{closing}"
    made.append(Written(gap, text, nodes[at : at + 2], "operand"))
    return at + 2


def _text_without_length(script: Script, kinds: Sequence[Node]) -> str:
    """Return a note if a type cuts a text, which Spark's string does not."""
    sized = (
        len(kinds) > 1
        and is_brackets(kinds[-1])
        and kinds[0].word in ("varchar", "char", "character", "nvarchar", "bpchar")
    )
    if not sized or script.warehouse.dialect in ("duckdb", "bigquery"):
        return ""
    return script.note(f"a cast to {kinds[0].word}(n) cuts a longer text; here it does not: write left(x, n)")


def _call(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    start = at
    if nodes[at].word == "safe" and at + 2 < len(nodes) and nodes[at + 1].word == ".":
        at += 2
    if not _is_call(nodes, at) or (start == at and made and made[-1].kind == "dot"):
        return 0
    prefix = "safe." if at > start else ""
    text = _call_text(script, prefix, nodes[at], nodes[at + 1])
    made.append(Written(gap, text, nodes[start : at + 2], "operand"))
    return at + 2


def _is_call(nodes: Sequence[Node], at: int) -> bool:
    node = nodes[at]
    return node.kind == "word" and at + 1 < len(nodes) and is_brackets(nodes[at + 1]) and node.word not in _NOT_CALLS


def _call_text(script: Script, prefix: str, name: Node, brackets: Node) -> str:
    """Return a call by its rule, or as it is written, with its arguments translated."""
    warehouse, key = script.warehouse, f"{prefix}{name.word}"
    inside, treatment = _null_treatment(name.word, brackets.inside)
    parts = split(inside)
    rule = warehouse.functions.get(f"{key}/{len(parts)}") or warehouse.functions.get(key)
    if isinstance(rule, str) and _RENAMED.fullmatch(rule):
        return _as_written(script, styled(rule.removesuffix("({*})"), name.text), name, brackets, treatment)
    if rule is not None and not script.tree.has_block(brackets.start, brackets.end):
        arguments = tuple(_argument(script, part) for part in parts)
        new = _by_rule(rule, Call(name.text, arguments, lambda some: write(script, some, ordered=True)))
        text = new.text if isinstance(new, Noted) else new
        if text is not None:
            mark = script.note(f"{name.word}(): {new.note}") if isinstance(new, Noted) else ""
            return f"{text}{mark}{treatment}{_lost_comments(script, brackets, text)}"
    shown = name.text
    if prefix:
        shown = f"SAFE.{shown}{script.note(f'SAFE.{name.word}() is not translated')}"
    elif rule is not None and script.tree.has_block(brackets.start, brackets.end):
        shown += script.note(f"{name.word}() is not translated: blocks of Jinja are among its arguments")
    elif key in warehouse.kept:
        shown += script.note(f"{name.word}(): {warehouse.kept[key]}")
    return _as_written(script, shown, name, brackets, treatment)


def _by_rule(rule: Rule, call: Call) -> str | Noted | None:
    """What a rule makes of a call; None if it does not fit."""
    if callable(rule):
        return rule(call)
    template = rule.text if isinstance(rule, Noted) else rule
    if not call.takes(template):
        return None
    return Noted(call.fill(template), rule.note) if isinstance(rule, Noted) else call.fill(template)


def _lost_comments(script: Script, brackets: Node, text: str) -> str:
    places = [
        brackets.start + 1,
        *(place for node in brackets.inside for place in (node.start, node.end)),
        brackets.end - 1,
    ]
    gaps = (script.gap(start, end) for start, end in zip(places[::2], places[1::2], strict=True))
    comments = [match[1] or match[2] for gap in gaps for match in _COMMENT.finditer(gap) if match[0] not in text]
    return "".join(f" /* {comment.strip()} */" for comment in comments if "*/" not in comment)


def _as_written(script: Script, shown: str, name: Node, brackets: Node, treatment: str) -> str:
    return f"{shown}{script.gap(name.end, brackets.start)}{_arguments(script, brackets, treatment)}{treatment}"


def _arguments(script: Script, brackets: Node, treatment: str) -> str:
    """Return the brackets of a call, without a treatment of NULLs that is written behind them."""
    if treatment:
        return f"({script.gap(brackets.start + 1, brackets.inside[0].start)}{write(script, brackets.inside[:-2])})"
    return write_brackets(script, brackets, ordered=any(node.word == "order" for node in brackets.inside))


def _null_treatment(name: str, inside: Sequence[Node]) -> tuple[Sequence[Node], str]:
    """Split off IGNORE NULLS, which Spark has behind the brackets."""
    if name in _NULL_TREATMENT and [node.word for node in inside[-2:]] in (["ignore", "nulls"], ["respect", "nulls"]):
        return inside[:-2], f" {inside[-2].text} {inside[-1].text}"
    return inside, ""


def _argument(script: Script, nodes: Sequence[Node]) -> Argument:
    value = string_value(nodes[0], escapes=script.warehouse.escapes) if len(nodes) == 1 else None
    return Argument(nodes, write(script, nodes), value)


def _over(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    if nodes[at].word != "over" or at + 1 >= len(nodes) or not is_brackets(nodes[at + 1]):
        return 0
    space = script.gap(nodes[at].end, nodes[at + 1].start)
    text = f"{nodes[at].text}{space}{write_brackets(script, nodes[at + 1], ordered=True)}"
    made.append(Written(gap, text, nodes[at : at + 2]))
    return at + 2


def _leaf(script: Script, nodes: Sequence[Node], at: int, gap: str, made: list[Written]) -> int:
    node = nodes[at]
    after_dot = bool(made) and made[-1].kind == "dot"
    kind = "operand" if after_dot or (node.kind != "sign" and node.word not in _CLAUSES) else "other"
    text = node.text
    if node.kind == "brackets":
        text = write_brackets(script, node)
    elif (
        kind == "operand"
        and not after_dot
        and (text.strip('"`').lower() in script.replaced)
        and not _is_qualifier(nodes, at)
    ):
        text = script.replaced[text.strip('"`').lower()]
    elif node.kind == "name":
        text = name_text(text)
    elif node.kind == "string":
        new = string_text(text, escapes=script.warehouse.escapes)
        text = text + script.note(f"Spark has no string of the kind {text[:20]}") if new is None else new
    elif node.word == ".":
        kind = "dot"
    made.append(Written(gap, text, (node,), kind))
    return at + 1


def _is_qualifier(nodes: Sequence[Node], at: int) -> bool:
    return at + 1 < len(nodes) and nodes[at + 1].word == "."


_Part = Callable[[Script, Sequence[Node], int, str, list[Written]], int]
_PARTS: tuple[_Part, ...] = (
    trailing_comma, _typed, _unnested, _subscript, _operator, _double_colon, _cast, _over, _call, _leaf,
)  # fmt: skip
