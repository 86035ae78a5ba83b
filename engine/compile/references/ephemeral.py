"""Ephemeral models: their SQL is inside that of the models that read them.

One brings its own streams with their watermarks: a reader lists it as a stream and has its inputs among its own; the
columns of the two stay apart, so that lineage goes through both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.compile.config.stream_config import StreamConfig
from engine.compile.config.window_config import Edit
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.facts import NO_FACTS, Facts
from engine.compile.nodes.manifest import Input, Slot, SourceMap
from engine.jinja import Rendered


@dataclass(frozen=True, slots=True)
class Spliced:
    """The SQL that runs, the map back, and where inputs are named in it."""

    sql: str
    positions: SourceMap
    slots: tuple[Slot, ...]


def splice(rendered: Rendered, edits: list[Edit], end: int) -> Spliced:
    """Apply the edits to the rendered text up to `end`.

    Edits do not overlap; of two for the same span the first counts. Blank lines at both ends (the
    blanked-out header) go.
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


# What is before an ephemeral model's SQL where that is a relation.
_BEFORE = "(\n"


@dataclass(frozen=True, slots=True)
class Inlined:
    """What an ephemeral model gives to those that read it.

    `inputs`: what it reads, with the views that are in its SQL. `stateful`: it keeps state when it is streamed.
    `slots`: where its SQL names what it reads.
    """

    name: str
    sql: str
    inputs: tuple[Input, ...]
    stateful: bool
    facts: Facts = NO_FACTS
    deterministic: bool = True
    slots: tuple[Slot, ...] = ()

    @property
    def streamed(self) -> bool:
        return any(item.stream for item in self.inputs)

    @property
    def brought(self) -> tuple[Input, ...]:
        """Its inputs as those of a model that reads it."""
        return tuple(replace(item, through=item.through or self.name) for item in self.inputs)

    def text(self, alias: str) -> str:
        """Its SQL as a relation."""
        return f"{_BEFORE}{self.sql}\n)" + (f" AS `{alias}`" if alias else "")

    @property
    def slots_in_text(self) -> tuple[Slot, ...]:
        return tuple(slot.moved(len(_BEFORE)) for slot in self.slots)


@dataclass(frozen=True, slots=True)
class GivenNode:
    """What a node gives to the models that read it; `unsafe`: the sources above it that cannot be re-read."""

    columns: InputColumns
    inlined: Inlined | None = None
    unsafe: tuple[str, ...] = ()


# Characters of a query with the ephemeral models in it.
MAX_SQL = 2_000_000


def too_large(text: str, names: Iterable[str], ephemeral: Mapping[str, Inlined]) -> tuple[str, str] | None:
    """Return message and hint if a query is too large with ephemeral models inlined as often as `names` has them."""
    times = Counter(names)
    size = len(text) + sum(number * len(ephemeral[name].sql) for name, number in times.items())
    if not times or size <= MAX_SQL:
        return None
    largest = max(times, key=lambda name: times[name] * len(ephemeral[name].sql))
    message = f"with the ephemeral models in it the query has {size:,} characters, more than {MAX_SQL:,}"
    hint = f"Make '{largest}' (read {times[largest]} times) a table or a view."
    return message, hint


def ephemeral_fault(inlined: Inlined, stream: StreamConfig | None) -> tuple[str, str, str] | None:
    """What is wrong with the way an ephemeral model is read: code, message and hint."""
    name = inlined.name
    if stream is None and inlined.streamed:
        hint = f"List it: 'streams: [{name}]' in the header."
        return "stream-unlisted", f"'{name}' is ephemeral and reads streams, but is not listed as a stream", hint
    if stream is not None and not inlined.streamed:
        hint = f"Remove '{name}' from 'streams:', or list its own streams in its header."
        return "stream-not-streamable", f"'{name}' is listed as a stream, but is ephemeral and reads none", hint
    if stream is not None and stream.places:
        key = next(iter(stream.places))
        hint = f"Set it in the header of '{name}': an ephemeral model has its own streams."
        return "bad-value", f"'{key}' cannot be set for the ephemeral model '{name}'", hint
    return None
