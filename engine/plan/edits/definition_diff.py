"""What an edit changes of a model, as lines: both sides in the normal form, so that a format is not a change."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.compile.nodes.facts import Facts, plain

# A string, a name in backticks, or what blanks separate: the normal form has one between all others.
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\S+")
_CLAUSES = frozenset(
    [
        "from",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "union",
        "intersect",
        "except",
        "left",
        "right",
        "full",
        "inner",
        "cross",
        "anti",
        "semi",
        "join",
        "qualify",
        "window",
        "lateral",
        "select",
        "with",
    ]
)
# Words of a join, of which only the first begins a line.
_OF_JOINS = frozenset(["left", "right", "full", "inner", "cross", "anti", "semi", "join", "natural"])
_DEEP = 60
_OPEN, _CLOSE = "()"
_READ = re.compile(r"`@(ref|source) ([^`]*)`")
_NAME = re.compile(r"\w+|`[^`]*`")
# Words that are not functions.
_BEFORE_BRACKETS = _CLAUSES | {
    *["as", "in", "on", "and", "or", "not", "by", "over", "exists", "when", "then", "else", "values"]
}
# Of the facts: what follows from others, or says nothing to people.
_NOT_SHOWN = frozenset(["form", "relation", "state", "keyed", "stateful", "inlined", "sql"])
_CONTEXT = 1


def definition_diff(before: Facts, after: Facts) -> tuple[str, ...]:
    """Return lines removed (`- `), added (`+ `) and beside them (`  `); none: nothing that people wrote."""
    was, now = definition_lines(plain(before)), definition_lines(plain(after))
    lines = difflib.unified_diff(was, now, n=_CONTEXT, lineterm="")
    diff_lines = [line for number, line in enumerate(lines) if number > 1]
    return tuple("..." if line.startswith("@@") else f"{line[0]} {line[1:]}" for line in diff_lines[1:])


def definition_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the settings of a model and its query, a line each: a clause, an item of a SELECT, a value."""
    setting_lines = [line for key in sorted(facts.keys() - _NOT_SHOWN) for line in _settings(key, facts[key])]
    return [*setting_lines, *_clauses(str(facts.get("sql", "")))]


def _settings(name: str, value: Any) -> Iterator[str]:
    if value in (None, [], (), {}, ""):
        return
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _settings(f"{name}.{key}", value[key])
    elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(one, Mapping) for one in value):
        for number, one in enumerate(value):
            # Inputs have names; what has none is called by its place.
            called = one.get("name") if isinstance(one, Mapping) else None
            inner = {k: v for k, v in one.items() if k != "name"} if called and isinstance(one, Mapping) else one
            yield from _settings(f"{name}.{called or number}", inner)
    else:
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"


def _clauses(sql: str) -> list[str]:
    lines: list[list[str]] = [[]]
    depth, queries, last = 0, [0], ""
    indents = [0]
    for token in _TOKEN.findall(sql):
        word = token.lower()
        # Brackets of a call stay in their line; those of a query begin lines of their own.
        at_clause = depth == queries[-1] and word in _CLAUSES and not (word in _OF_JOINS and last in _OF_JOINS)
        if (at_clause or (last == "," and depth == queries[-1])) and lines[-1]:
            lines.append([])
            indents.append(min(len(queries) - 1, _DEEP))
        if last == _OPEN and word in {"select", "with"}:
            queries.append(depth)
            lines.append([])
            indents.append(min(len(queries) - 1, _DEEP))
        if token == _CLOSE:
            depth -= 1
            if len(queries) > 1 and depth < queries[-1]:
                queries.pop()
                lines.append([])
                indents.append(min(len(queries) - 1, _DEEP))
        lines[-1].append(token)
        depth += token == _OPEN
        last = word
    return [f"{'  ' * indent}{_joined(line)}" for indent, line in zip(indents, lines, strict=True) if line]


def _joined(tokens: Sequence[str]) -> str:
    """Tokens as people write them: no blank before a comma, around a dot or inside brackets."""
    text, last = "", ""
    for token in tokens:
        read_token = _READ.fullmatch(token)
        token_text = _called(*read_token.groups()) if read_token else token
        called = token == _OPEN and _NAME.fullmatch(last) is not None and last.lower() not in _BEFORE_BRACKETS
        close = not text or last in {"(", "."} or token in {",", ")", "."} or called
        text += token_text if close else f" {token_text}"
        last = token
    return text


def _called(kind: str, name: str) -> str:
    quoted = ", ".join(f"'{part}'" for part in (name.split(".", 1) if kind == "source" else [name]))
    return f"{{{{ {kind}({quoted}) }}}}"
