"""Fixture pairs: an input and what is expected of it, in files that read as documentation.

A file begins with prose, and with the parts that all its cases share. A case is

    -- case: its name
    -- modes: append          a part of one line, anywhere in the case
    select ...                the input
    -- reader                 a part of several lines
    ...
    -- expect                 what the input becomes
    ...

Blank lines around a part do not count. A part of a case wins over the one of its file. A comment of a single word
is always a part; one that is not in `PARTS` is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PARTS = frozenset({"expect", "header", "modes", "reader", "schema", "sql", "window"})
_CASE = re.compile(r"^-- case: (.*)$", re.MULTILINE)
_PART = re.compile(r"-- ([a-z]+)(?:: (.+))?")


@dataclass(frozen=True, slots=True)
class Pair:
    """One case of a fixture file."""

    name: str
    given: str
    expected: str
    parts: Mapping[str, str]

    def __str__(self) -> str:
        return self.name


def read_pairs(folder: Path, pattern: str = "*.sql") -> list[Pair]:
    """Return the cases of the files of a folder, in the order of the files' names."""
    return [pair for file in sorted(folder.glob(pattern)) for pair in _pairs(file)]


def _pairs(file: Path) -> Iterator[Pair]:
    before, *cases = _CASE.split(file.read_text(encoding="utf-8"))
    try:
        shared = _parts(before)
        for name, body in zip(cases[::2], cases[1::2], strict=True):
            parts = shared | _parts(body)
            yield Pair(f"{file.stem}: {name}", parts.pop(""), parts.pop("expect"), parts)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error


def _parts(text: str) -> dict[str, str]:
    """Take a text apart; what precedes its first part has the name ''."""
    parts: dict[str, list[str]] = {"": []}
    lines = parts[""]
    for line in text.split("\n"):
        mark = _PART.fullmatch(line)
        if mark is None:
            lines.append(line)
            continue
        name, value = mark.groups()
        if name not in PARTS:
            raise ValueError(f"unknown part '{name}'")
        if value:
            parts.setdefault(name, []).append(value)
        elif name in parts:
            raise ValueError(f"two parts '{name}' in a case")
        else:
            lines = parts[name] = []
    return {name: "\n".join(lines).strip() for name, lines in parts.items()}


def read_lists(file: Path) -> dict[str, list[str]]:
    """Return the lines of each part of a file, which begins with `-- its name`; prose precedes the first part."""
    _, *parts = re.split(r"^-- (\w+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        part: [line for line in body.split("\n") if line.strip()]
        for part, body in zip(parts[::2], parts[1::2], strict=True)
    }


def unescape(text: str) -> str:
    """Replace `\\u200b` and the like by characters that cannot be seen."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)


def read_rows(file: Path, part: str, columns: int) -> list[tuple[str, ...]]:
    """Return the rows of a part of a file (see `read_lists`): cells between ` => `, in which ¶ is a line break.

    The last cells may be left out, and are empty.
    """
    rows = (line.replace("¶", "\n").split(" => ") for line in read_lists(file)[part])
    return [(*cells, *[""] * (columns - len(cells))) for cells in rows]
