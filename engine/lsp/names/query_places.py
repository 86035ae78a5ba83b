"""Names in the SQL of models and singular tests."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping

from engine.compile.columns.name_uses import UseKind
from engine.compile.pipeline.query_names import QueryName, QueryNames
from engine.errors import Location
from engine.lsp.names.jinja_places import words_of_tag
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import offset_of

_WINDOW, _WATERMARK = "window ", "watermark "


def query_places(opened: OpenProject, file: str, names: QueryNames, node: str) -> Iterator[NamedPlace]:
    """Return the names in a query.

    Args:
        opened: the project.
        file: of the query.
        names: in it.
        node: the model that it is; empty: a test.
    """
    text = opened.text(file)
    read = _Query(file, node, text, names)
    for use in names.names:
        name = read.name_of(use)
        # `{{ ref('flights') }}.id`: the tag has the name.
        if name is None or use.text.startswith("`@"):
            continue
        start = offset_of(use.place, text)
        if not use.literal:
            yield from _written_by_jinja(file, text, start, use, name)
            continue
        quoted = int(use.text.startswith("`"))
        keeps = use.names_column and read.gives(use) != name
        yield NamedPlace(
            file, start + quoted, len(use.text) - 2 * quoted, name, after=f" as {use.text}" if keeps else ""
        )
    for at, end, literal in names.unaliased:
        name = read.given.get(at)
        if name is not None:
            blocked = "" if literal else f"{file}:{end.line}:{end.column} writes the name with Jinja"
            yield NamedPlace(file, offset_of(end, text), 0, name, before=" as ", blocked=blocked)


def _written_by_jinja(file: str, text: str, start: int, use: QueryName, name: Name) -> Iterator[NamedPlace]:
    """The name in the strings of the tag that writes it: `{{ share('f.delay > 60') }}`; one that computes it is not."""
    word = use.text.strip("`")
    found = [*words_of_tag(text, file, start, word)]
    yield from (NamedPlace(file, at, len(word), name) for at in found)
    if not found:
        place = f"{file}:{use.place.line}:{use.place.column}"
        yield NamedPlace(file, start, 0, name, blocked=f"{place} writes '{word}' with Jinja")


class _Query:
    def __init__(self, file: str, node: str, text: str, names: QueryNames) -> None:
        self.file, self.text = file, text
        self.ctes = {one.named_at for one in names.names if one.kind is UseKind.CTE}
        given = {at: Name(NameKind.INNER, _word_before(text, end), file, at) for at, end, _ in names.unaliased}
        if node:
            outputs = ((at, column) for column, at in names.outputs if isinstance(at, int) and at >= 0)
            given |= {at: Name(NameKind.COLUMN, column, node) for at, column in outputs}
        self.given: Mapping[int, Name] = given

    def gives(self, use: QueryName) -> Name | None:
        """The column of the query that an item without an alias names."""
        return self.given.get(use.named_at) if isinstance(use.named_at, int) else None

    def name_of(self, use: QueryName) -> Name | None:
        at, word = use.named_at, use.text.strip("`").lower()
        if use.kind is not UseKind.COLUMN:
            return self._relation(at, word)
        if isinstance(at, str):
            return self._declared(at, word)
        if at >= 0:
            return self.given.get(at) or Name(NameKind.INNER, word, self.file, at)
        return Name(NameKind.COLUMN, use.origin[1].lower(), use.origin[0]) if use.origin else None

    def _relation(self, at: int | str, word: str) -> Name | None:
        if isinstance(at, str):
            kind, _, rest = at.partition(".")
            if kind == "model":
                return Name(NameKind.MODEL, rest)
            return Name(NameKind.TABLE, rest.partition(".")[2], rest.partition(".")[0])
        if at < 0:
            return None
        return Name(NameKind.CTE if at in self.ctes else NameKind.ALIAS, word, self.file, at)

    def _declared(self, at: str, word: str) -> Name | None:
        if at.startswith(_WINDOW):
            return Name(NameKind.WINDOW, at.removeprefix(_WINDOW), self.file)
        return Name(NameKind.EVENT_TIME, word, self.file) if at.startswith(_WATERMARK) else None


def _word_before(text: str, place: Location) -> str:
    before = text[: offset_of(place, text)].rstrip("`")
    end = len(before.rstrip("_" + string.ascii_letters + string.digits))
    return before[end:].lower()
