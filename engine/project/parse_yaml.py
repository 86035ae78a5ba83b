"""YAML with positions, read by the 1.2 core schema.

PyYAML composes the nodes (with its C parser where there is one); the values are made here, because YAML
1.1 would turn `NO`, `on`, `12:30` and dates into something else. A leading zero (`0123`) stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml as pyyaml

from engine.errors import Diagnostic, Location

Path = tuple[str | int, ...]

MAX_NODES = 100_000
MAX_DEPTH = 40
# Longer runs of digits are not numbers of a settings file; Python does not convert the longest.
MAX_DIGITS = 18

_Loader: Any = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_OTHER_INT = re.compile(r"0o[0-7]+$|0x[0-9a-fA-F]+$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Yaml:
    """A document as plain data, with the place of every key and value.

    Attributes:
        data: dicts, lists, text, numbers, booleans and None.
        values: place of the value at each path.
        keys: place of the key at each path.
        written: numbers as the user wrote them (1.10), at each path.
        origin: the place that stands for everything without one of its own.
    """

    data: Any
    file: str
    values: Mapping[Path, Location] = field(default_factory=dict)
    keys: Mapping[Path, Location] = field(default_factory=dict)
    written: Mapping[Path, str] = field(default_factory=dict)
    origin: Location | None = None

    def value_at(self, path: Path) -> Location:
        """Where the value at the path is, or the nearest thing around it."""
        return self._nearest(self.values, path)

    def key_at(self, path: Path) -> Location:
        """Where the key at the path is, or the nearest thing around it."""
        return self.keys[path] if path in self.keys else self._nearest(self.values, path)

    def _nearest(self, places: Mapping[Path, Location], path: Path) -> Location:
        while path and path not in places:
            path = path[:-1]
        return places.get(path) or self.origin or Location(self.file)


def load_yaml(text: str, file: str) -> tuple[Yaml, list[Diagnostic]]:
    """Read one document; the data of a broken one is an empty dict. `text` has the lines of its file."""
    reader = _Reader(file)
    data: Any = {}
    try:
        reader.check_depth(text)
        node = pyyaml.compose(text, Loader=_Loader)
        data = reader.value(node, (), 0) if node is not None else None
    except pyyaml.MarkedYAMLError as error:
        reader.diagnostics.append(_syntax_error(error, text, reader))
    except _TooLargeError as error:
        reader.diagnostics.append(Diagnostic("yaml-too-large", f"YAML: {error}", _TOO_LARGE, location=error.place))
    except _MergeKeyError as error:
        reader.diagnostics.append(Diagnostic("yaml-syntax", f"YAML: {error}", _MERGED, location=error.place))
    except (pyyaml.YAMLError, ValueError) as error:
        hint = "Correct the file; a value with special characters goes in quotes."
        reader.diagnostics.append(Diagnostic("yaml-syntax", f"YAML: {error}", hint, location=Location(file)))
    return Yaml(data, file, reader.values, reader.keys, reader.written, Location(file)), reader.diagnostics


_TOO_LARGE = "Nest values less deeply, and repeat values instead of nesting aliases (*name)."
_MERGED = "Write the keys out, or make them defaults of a folder in project.yml: models: {staging: {+tags: [nightly]}}."
_JINJA = "Quote Jinja and other strings that start with a brace: \"{{ var('x') }}\"."
_BRACKETS = "Check the indentation and the brackets around this place."
# what PyYAML says -> what we say, and what to do
_PROBLEMS = {
    "could not find expected ':'": (
        "a key without a colon",
        "Write 'key: value', with a space after the colon; quote strings of several lines.",
    ),
    "mapping values are not allowed": (
        "unexpected ':'",
        "Quote values that contain ': ', and check the indentation.",
    ),
    "cannot start any token": (
        "a character that cannot start a value",
        "Indent with spaces, not tabs, and quote strings that start with a special character.",
    ),
    "found undefined alias": ("an undefined alias", "Quote strings that start with *."),
    "but found another document": (
        "a second document",
        "Keep one document in a file: remove the line '---'.",
    ),
    "found unexpected end of stream": ("an unclosed quote", "Close the quote that starts here."),
}


def _syntax_error(error: pyyaml.MarkedYAMLError, text: str, reader: _Reader) -> Diagnostic:
    problem = error.problem or "invalid YAML"
    unclosed = "unexpected end of stream" in problem
    mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
    place = reader.place(mark) if mark else Location(reader.file)
    message, hint = problem, _BRACKETS
    for words, (our_text, remedy) in _PROBLEMS.items():
        if words in problem:
            message, hint = our_text, remedy
    lines = text.split("\n")
    if mark and mark.line < len(lines) and re.search(r":\s+\{[{%]", lines[mark.line]):
        hint = _JINJA
    return Diagnostic("yaml-syntax", f"YAML: {message}", hint, location=place)


class _TooLargeError(ValueError):
    def __init__(self, message: str, place: Location) -> None:
        super().__init__(message)
        self.place = place


class _MergeKeyError(ValueError):
    def __init__(self, place: Location) -> None:
        super().__init__("merge keys (<<) are not read")
        self.place = place


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self.written: dict[Path, str] = {}
        self.diagnostics: list[Diagnostic] = []
        self.nodes = 0

    def place(self, mark: Any) -> Location:
        return Location(self.file, mark.line + 1, mark.column + 1)

    def report(self, code: str, message: str, hint: str, node: Any) -> None:
        self.diagnostics.append(Diagnostic(code, message, hint, location=self.place(node.start_mark)))

    def value(self, node: Any, path: Path, depth: int) -> Any:
        self.nodes += 1
        self.values[path] = self.place(node.start_mark)
        if self.nodes > MAX_NODES:
            place = self.keys.get(path[:1]) or self.place(node.start_mark)
            raise _TooLargeError(f"more than {MAX_NODES:,} values, aliases counted out", place)
        if depth > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_DEPTH} levels", self.place(node.start_mark))
        if isinstance(node, pyyaml.MappingNode):
            return self.mapping(node, path, depth)
        if isinstance(node, pyyaml.SequenceNode):
            children = self.joined_items(node) if node.flow_style else node.value
            return [self.value(child, (*path, i), depth + 1) for i, child in enumerate(children)]
        return self.scalar(node, path)

    def check_depth(self, text: str) -> None:
        """Refuse deep nesting before composing: PyYAML's C composer is recursive and would crash."""
        # Each level takes one of these characters.
        if sum(map(text.count, "[{:-?")) <= MAX_DEPTH:
            return
        depth = 0
        for event in pyyaml.parse(text, Loader=_Loader):
            depth += isinstance(event, pyyaml.CollectionStartEvent)
            depth -= isinstance(event, pyyaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _TooLargeError(f"more than {MAX_DEPTH} levels", self.place(event.start_mark))

    def mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any] | None:
        result: dict[str, Any] = {}
        for key_node, value_node in self.joined_pairs(node) if node.flow_style else node.value:
            if not isinstance(key_node, pyyaml.ScalarNode):
                self.report("yaml-syntax", "YAML: a key is not plain text", _JINJA, node)
                return None
            key = key_node.value
            if key == "<<" and not key_node.style:
                raise _MergeKeyError(self.place(key_node.start_mark))
            if key in result:
                first = self.keys[(*path, key)].line
                message = f"'{key}' is set twice (first in line {first})"
                self.report("yaml-duplicate-key", message, "Keep one of them.", key_node)
                continue
            self.keys[(*path, key)] = self.place(key_node.start_mark)
            result[key] = self.value(value_node, (*path, key), depth + 1)
        return result

    def scalar(self, node: Any, path: Path) -> Any:
        text = node.value
        if node.style in {"'", '"', "|", ">"}:
            return text
        if text in _WORDS:
            return _WORDS[text]
        number = _number(text)
        if number is None:
            return text
        self.written[path] = text
        return number

    def joined_items(self, node: Any) -> list[Any]:
        """The items of a flow list; `bucket(16, id)` that an unquoted comma cut in two is one again."""
        items: list[Any] = []
        cut: set[int] = set()
        for child in node.value:
            if items and _is_open(items[-1]) and _is_plain(child):
                items[-1] = _joined(items[-1], child)
                cut.add(len(items) - 1)
            else:
                items.append(child)
        self.report_cut(items[index] for index in sorted(cut))
        return items

    def joined_pairs(self, node: Any) -> list[tuple[Any, Any]]:
        """The same for a flow mapping: in `{hour: tumbling(ts, 1 hour)}` the comma begins another key."""
        pairs: list[tuple[Any, Any]] = []
        cut: set[int] = set()
        for key, value in node.value:
            if pairs and _is_open(pairs[-1][1]) and _is_plain(key) and _is_plain(value) and not value.value:
                pairs[-1] = (pairs[-1][0], _joined(pairs[-1][1], key))
                cut.add(len(pairs) - 1)
            else:
                pairs.append((key, value))
        self.report_cut(pairs[index][1] for index in sorted(cut))
        return pairs

    def report_cut(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            message = f"YAML splits '{node.value}' at its comma"
            self.report("yaml-split-item", message, f'Quote it: "{node.value}".', node)


def _joined(first: Any, second: Any) -> Any:
    return pyyaml.ScalarNode(first.tag, f"{first.value}, {second.value}", first.start_mark, second.end_mark)


def _is_plain(node: Any) -> bool:
    return isinstance(node, pyyaml.ScalarNode) and node.style not in {"'", '"', "|", ">"}


def _is_open(node: Any) -> bool:
    return _is_plain(node) and node.value.count("(") > node.value.count(")")


def _number(text: str) -> int | float | None:
    if len(text) > MAX_DIGITS:
        return None
    if _INT.match(text):
        return int(text)
    if _OTHER_INT.match(text):
        return int(text, 0)
    if _FLOAT.match(text) and math.isfinite(number := float(text)):
        return number
    return None
