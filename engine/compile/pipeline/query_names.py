"""Where a file's query names things, and what each name refers to: for renaming them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile.columns.name_uses import UseKind
from engine.errors import Location

if TYPE_CHECKING:
    from engine.compile.columns.find_columns import BoundQuery
    from engine.jinja import Rendered


@dataclass(frozen=True, slots=True)
class QueryName:
    """A name in a query.

    `place`: of a name that Jinja writes, where the tag begins. `literal`: the file has it as it is. `named_at` and
    `origin` as in `NameUse`. `names_column`: it names a column of the query, or of a set operation.
    """

    place: Location
    text: str
    literal: bool
    kind: UseKind
    named_at: int | str
    origin: tuple[str, str] | None = None
    names_column: bool = False


@dataclass(frozen=True, slots=True)
class QueryNames:
    """The names in a query.

    `unaliased`: what names a column without an alias: its `named_at`, the place behind it, and whether the file has
    that as it is. `outputs`: what gives each column its name, by it in lower case. `written`: spans (end exclusive)
    that the file has as they were rendered.
    """

    names: tuple[QueryName, ...] = ()
    unaliased: tuple[tuple[int, Location, bool], ...] = ()
    outputs: tuple[tuple[str, int | str], ...] = ()
    written: tuple[tuple[int, int], ...] = ()


def query_names(bound: BoundQuery, rendered: Rendered) -> QueryNames:
    """Return the names of a query in its file."""
    text = rendered.text
    names = []
    for use in sorted((bound.noted.uses or {}).values(), key=lambda one: one.start):
        written = text[use.start : use.end]
        literal = _is_written(rendered, use.start, use.end)
        names_column = use.start in bound.noted.unaliased
        place = rendered.location(use.start)
        names.append(QueryName(place, written, literal, use.kind, use.named_at, use.origin, names_column))
    unaliased = (
        (start, _place_behind(rendered, end), _is_written(rendered, start, end))
        for start, end in bound.noted.unaliased.items()
    )
    columns = bound.columns.columns or ()
    outputs = zip((column.name.lower() for column in columns), bound.named_at, strict=False)
    return QueryNames(tuple(names), tuple(unaliased), tuple(outputs), tuple(_written_spans(rendered)))


def _is_written(rendered: Rendered, start: int, end: int) -> bool:
    """Whether the file has a part of the text as it is, in one piece."""
    if not (rendered.is_literal(start) and rendered.is_literal(end - 1)):
        return False
    return end - start == 1 or _offset(rendered, end - 1) - _offset(rendered, start) == end - 1 - start


def _place_behind(rendered: Rendered, end: int) -> Location:
    place = rendered.location(end - 1)
    return Location(place.file, place.line, place.column + 1)


def _offset(rendered: Rendered, at: int) -> int:
    place = rendered.location(at)
    return sum(len(line) + 1 for line in rendered.template.split("\n")[: place.line - 1]) + place.column - 1


def _written_spans(rendered: Rendered) -> Iterator[tuple[int, int]]:
    ends = (*rendered.starts[1:], len(rendered.text))
    for (start, origin, literal), end in zip(rendered.runs, ends, strict=True):
        if literal:
            yield origin, origin + end - start
