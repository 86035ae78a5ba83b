"""Writing the SQL that runs: the user's own text with replacements spliced in, and the map back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compile.config.window_config import Edit
from engine.compile.nodes.manifest import Slot, SourceMap
from engine.jinja import Rendered


@dataclass(frozen=True, slots=True)
class Spliced:
    """The SQL that runs, the map back, and where inputs are named in it."""

    sql: str
    positions: SourceMap
    slots: tuple[Slot, ...]


def splice(rendered: Rendered, edits: list[Edit], end: int) -> Spliced:
    """Apply the edits to the rendered text up to `end`, and take blank lines off both ends.

    Edits do not overlap; of two for the same span the first counts.
    """
    text = rendered.text
    begin = len(text) - len(text.lstrip())
    stop = max(len(text[:end].rstrip()), begin)
    out: list[str] = []
    runs: list[tuple[int, int, int, bool]] = []
    slots: list[Slot] = []
    length = 0

    def copy(start: int, until: int) -> None:
        nonlocal length
        marks = {start, *(s for s in rendered.starts if start < s < until), *_line_starts(text, start, until)}
        runs.extend((length + mark - start, *rendered.line_and_column(mark), True) for mark in sorted(marks))
        out.append(text[start:until])
        length += until - start

    cursor = begin
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < cursor or edit.end > stop:
            continue
        copy(cursor, edit.start)
        runs.append((length, *rendered.line_and_column(edit.start), False))
        out.append(edit.text)
        slots += [slot.moved(length) for slot in edit.slots]
        length += len(edit.text)
        cursor = edit.end
    copy(cursor, stop)
    return Spliced("".join(out), SourceMap(tuple(runs)), tuple(slots))


def _line_starts(text: str, start: int, until: int) -> Iterator[int]:
    last = max(until - 1, 0)
    at = text.find("\n", start, last) + 1
    while at:
        yield at
        at = text.find("\n", at, last) + 1
