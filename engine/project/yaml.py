"""YAML with positions, read by the 1.2 core schema.

PyYAML composes the nodes (with its C parser where there is one); the values are made here, because YAML
1.1 would turn `NO`, `on`, `12:30` and dates into something else. A leading zero (`0123`) stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml as pyyaml

from engine.errors import Diagnostic, Location

Path = tuple[str | int, ...]

MAX_NODES = 100_000
MAX_DEPTH = 40

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
        file: the file as shown to users.
        values: place of the value at each path.
        keys: place of the key at each path.
        origin: the place that stands for everything without one of its own.
    """

    data: Any
    file: str
    values: Mapping[Path, Location] = field(default_factory=dict)
    keys: Mapping[Path, Location] = field(default_factory=dict)
    origin: Location | None = None

    def value_at(self, path: Path) -> Location:
        """Where the value at the path stands, or the nearest thing around it."""
        return self._nearest(self.values, path)

    def key_at(self, path: Path) -> Location:
        """Where the key at the path stands, or the nearest thing around it."""
        return self.keys[path] if path in self.keys else self._nearest(self.values, path)

    def _nearest(self, places: Mapping[Path, Location], path: Path) -> Location:
        while path and path not in places:
            path = path[:-1]
        return places.get(path) or self.origin or Location(self.file)


def load_yaml(text: str, file: str, *, line: int = 1) -> tuple[Yaml, list[Diagnostic]]:
    """Read one document.

    Args:
        text: the YAML text.
        file: the file as shown to users.
        line: the line of the file on which `text` begins, for YAML inside a model's header.

    Returns:
        The document and what is wrong with it; the data of a broken document is an empty dict.
    """
    reader = _Reader(file, line)
    try:
        node = pyyaml.compose(text, Loader=_Loader)
        data = reader.value(node, (), 0) if node is not None else None
    except pyyaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = reader.place(mark) if mark else Location(file, line)
        problem = error.problem or "the text is not YAML"
        reader.found.append(Diagnostic("yaml-syntax", f"YAML: {problem}", _syntax_hint(problem), location=place))
        data = {}
    except (pyyaml.YAMLError, _TooLargeError) as error:
        code = "yaml-too-large" if isinstance(error, _TooLargeError) else "yaml-syntax"
        reader.found.append(Diagnostic(code, f"YAML: {error}", location=Location(file, line)))
        data = {}
    return Yaml(data, file, reader.values, reader.keys, Location(file, line)), reader.found


def _syntax_hint(problem: str) -> str:
    if "could not find expected ':'" in problem or "mapping values are not allowed" in problem:
        return "Each key is followed by a colon and a blank; quote text that holds ': '."
    if "cannot start any token" in problem:
        return "Indent with blanks, not tabs, and quote text that begins with a special character."
    if "alias" in problem or "anchor" in problem:
        return "Quote text that begins with * or &."
    return "Check the indentation and the brackets around this place."


class _TooLargeError(ValueError):
    """More nodes or levels than a project file has."""


class _Reader:
    """Turns composed nodes into plain data and remembers where everything stood."""

    def __init__(self, file: str, line: int) -> None:
        self.file = file
        self.line = line
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self.found: list[Diagnostic] = []
        self.nodes = 0

    def place(self, mark: Any) -> Location:
        return Location(self.file, mark.line + self.line, mark.column + 1)

    def value(self, node: Any, path: Path, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _TooLargeError(f"more than {MAX_NODES} values or {MAX_DEPTH} levels")
        self.values[path] = self.place(node.start_mark)
        if isinstance(node, pyyaml.MappingNode):
            return self.mapping(node, path, depth)
        if isinstance(node, pyyaml.SequenceNode):
            items = [self.value(child, (*path, i), depth + 1) for i, child in enumerate(node.value)]
            self.check_split(items, path)
            return items
        return self.scalar(node)

    def mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self.place(key_node.start_mark)
            if not isinstance(key_node, pyyaml.ScalarNode):
                self.found.append(Diagnostic("yaml-syntax", "YAML: a key is not plain text", _QUOTE, location=place))
                continue
            key = key_node.value
            if key in result:
                first = self.keys[(*path, key)].line
                self.found.append(
                    Diagnostic(
                        "yaml-duplicate-key",
                        f"'{key}' stands here twice (first in line {first})",
                        "Keep one of them.",
                        location=place,
                    )
                )
                continue
            self.keys[(*path, key)] = place
            result[key] = self.value(value_node, (*path, key), depth + 1)
        return result

    def scalar(self, node: Any) -> Any:
        text = node.value
        if node.style in {"'", '"', "|", ">"}:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            return int(text)
        if _OTHER_INT.match(text):
            return int(text, 0)
        if _FLOAT.match(text):
            return float(text)
        return text

    def check_split(self, items: list[Any], path: Path) -> None:
        """Find `bucket(16, id)` that an unquoted comma cut in two inside a flow list."""
        for index, item in enumerate(items[:-1]):
            if isinstance(item, str) and item.count("(") > item.count(")"):
                rest = items[index + 1]
                whole = f"{item}, {rest}"
                self.found.append(
                    Diagnostic(
                        "yaml-split-item",
                        f"the comma inside '{whole}' ends the list item here",
                        f'Quote the item: "{whole}".',
                        location=self.values[(*path, index)],
                    )
                )


_QUOTE = "Jinja and other text that begins with a brace must be quoted: \"{{ var('x') }}\"."
