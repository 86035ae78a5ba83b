"""Names in the Jinja of any file: ref(), source(), var(), macros."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.opened.open_project import OpenProject

_TEST = "test_"


@dataclass(frozen=True, slots=True)
class _Token:
    at: int
    kind: str
    text: str


@cache
def _environment() -> Any:
    from engine.jinja.environment import Environment

    return Environment({})


def jinja_places(opened: OpenProject, file: str) -> Iterator[NamedPlace]:
    text = opened.text(file)
    macros = {macro.name for macro in opened.manifest.macros}
    for tag in _tags(text, file):
        for index, token in enumerate(tag):
            before = tag[index - 1].text if index else ""
            behind = tag[index + 1].text if index + 1 < len(tag) else ""
            if token.kind == "string":
                yield from _called(file, tag, index)
            elif token.kind == "name" and token.text in macros and before != "." and behind != "=":
                yield _macro(file, token)


def _tags(text: str, file: str) -> Iterator[list[_Token]]:
    from engine.jinja.template_tokens import readable_tokens

    tag: list[_Token] = []
    for at, _, kind, value in readable_tokens(_environment(), text, file):
        if kind in {"variable_begin", "block_begin"}:
            tag = []
        elif kind in {"variable_end", "block_end"}:
            yield tag
            tag = []
        elif kind not in {"data", "whitespace", "comment", "comment_begin", "comment_end"} and value.strip():
            tag.append(_Token(at, kind, value))


def _macro(file: str, token: _Token) -> NamedPlace:
    if token.text.startswith(_TEST):
        name = Name(NameKind.TEST_KIND, token.text.removeprefix(_TEST))
        return NamedPlace(file, token.at + len(_TEST), len(name.name), name)
    return NamedPlace(file, token.at, len(token.text), Name(NameKind.MACRO, token.text))


def _arguments(tag: list[_Token], index: int) -> tuple[str, list[_Token]]:
    """The function whose direct argument a string is, and the strings that are its arguments so far, with it."""
    strings = [tag[index]]
    at = index - 1
    while at > 0 and tag[at].text == "," and tag[at - 1].kind == "string":
        strings.insert(0, tag[at - 1])
        at -= 2
    if at > 0 and tag[at].text == "(" and tag[at - 1].kind == "name":
        return tag[at - 1].text, strings
    return "", strings


def _called(file: str, tag: list[_Token], index: int) -> Iterator[NamedPlace]:
    function, strings = _arguments(tag, index)
    value = tag[index].text[1:-1]
    at = tag[index].at + 1
    behind = tag[index + 1].text if index + 1 < len(tag) else ""
    if function == "ref" and behind == ")":
        yield NamedPlace(file, at, len(value), Name(NameKind.MODEL, value))
    elif function == "source":
        yield from _source(file, at, value, [one.text[1:-1] for one in strings[:-1]])
    elif function == "var" and len(strings) == 1:
        yield NamedPlace(file, at, len(value), Name(NameKind.VARIABLE, value))


def _source(file: str, at: int, value: str, before: list[str]) -> Iterator[NamedPlace]:
    if before:
        yield NamedPlace(file, at, len(value), Name(NameKind.TABLE, value, before[0]))
        return
    yield from dotted_source(file, at, value)


def dotted_source(file: str, at: int, written: str) -> Iterator[NamedPlace]:
    source, dot, table = written.partition(".")
    yield NamedPlace(file, at, len(source), Name(NameKind.SOURCE, source))
    if dot:
        yield NamedPlace(file, at + len(source) + 1, len(table), Name(NameKind.TABLE, table, source))


def strings_of(opened: OpenProject, file: str, word: str) -> Iterator[int]:
    for tag in _tags(opened.text(file), file):
        yield from (token.at + 1 for token in tag if token.kind == "string" and token.text[1:-1] == word)


def words_of_tag(text: str, file: str, start: int, word: str) -> Iterator[int]:
    """Return where a word is in the strings of the tag that begins at a place; what is in quotes in them is none."""
    pattern = re.compile(rf"'[^']*'|\"[^\"]*\"|(?<!\w)({re.escape(word)})(?!\w)", re.IGNORECASE)
    for tag in _tags(text, file):
        if tag and text.rfind("{", 0, tag[0].at) - 1 == start:
            for token in (one for one in tag if one.kind == "string"):
                inside = pattern.finditer(token.text, 1, len(token.text) - 1)
                yield from (token.at + match.start() for match in inside if match[1])
            return


def computed_names(opened: OpenProject, file: str, function: str) -> bool:
    """Whether a file calls a function with something else than a text: with which name, only rendering shows."""
    text = opened.text(file)
    for tag in _tags(text, file) if f"{function}(" in text.replace(" ", "") else ():
        for token, bracket, argument in zip(tag, tag[1:], tag[2:], strict=False):
            if (token.kind, token.text, bracket.text) == ("name", function, "(") and argument.kind != "string":
                return True
    return False


def local_names(opened: OpenProject, file: str) -> Iterator[tuple[int, str]]:
    text = opened.text(file)
    for tag in _tags(text, file):
        names = [token for token in tag if token.kind == "name"]
        if tag and tag[0].text in {"macro", "call"}:
            yield from ((one.at, one.text) for one in names[2:])
        elif tag and tag[0].text in {"set", "for"}:
            end = next((i for i, token in enumerate(tag) if token.text in {"=", "in"}), len(tag))
            yield from ((token.at, token.text) for token in tag[1:end] if token.kind == "name")
