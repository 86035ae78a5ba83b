"""Every place where a project writes a name. Names in the SQL of models and singular tests."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping

from engine.compile.columns.name_uses import UseKind
from engine.compile.pipeline.query_names import QueryName, QueryNames
from engine.errors import Location
from engine.lsp.names.header_names import header_names
from engine.lsp.names.jinja_places import jinja_places, words_of_tag
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.yaml_places import fixture_places, yaml_places
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import offset_of

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
        name = read.inner_names.get(at)
        if name is not None:
            blocked = "" if literal else f"{file}:{end.line}:{end.column} writes the name with Jinja"
            yield NamedPlace(file, offset_of(end, text), 0, name, before=" as ", blocked=blocked)


def _written_by_jinja(file: str, text: str, start: int, use: QueryName, name: Name) -> Iterator[NamedPlace]:
    """The name in the strings of the tag that writes it: `{{ share('f.delay > 60') }}`; one that computes it is not."""
    word = use.text.strip("`")
    places = [*words_of_tag(text, file, start, word)]
    yield from (NamedPlace(file, at, len(word), name) for at in places)
    if not places:
        place = f"{file}:{use.place.line}:{use.place.column}"
        yield NamedPlace(file, start, 0, name, blocked=f"{place} writes '{word}' with Jinja")


class _Query:
    def __init__(self, file: str, node: str, text: str, names: QueryNames) -> None:
        self.file, self.text = file, text
        self.ctes = {one.named_at for one in names.names if one.kind is UseKind.CTE}
        inner_names = {at: Name(NameKind.INNER, _word_before(text, end), file, at) for at, end, _ in names.unaliased}
        if node:
            outputs = ((at, column) for column, at in names.outputs if isinstance(at, int) and at >= 0)
            inner_names |= {at: Name(NameKind.COLUMN, column, node) for at, column in outputs}
        self.inner_names: Mapping[int, Name] = inner_names

    def gives(self, use: QueryName) -> Name | None:
        """The column of the query that an item without an alias names."""
        return self.inner_names.get(use.named_at) if isinstance(use.named_at, int) else None

    def name_of(self, use: QueryName) -> Name | None:
        at, word = use.named_at, use.text.strip("`").lower()
        if use.kind is not UseKind.COLUMN:
            return self._relation(at, word)
        if isinstance(at, str):
            return self._declared(at, word)
        if at >= 0:
            return self.inner_names.get(at) or Name(NameKind.INNER, word, self.file, at)
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


# What a query gives a name to: nothing outside of its file has it.
_INSIDE = {NameKind.WINDOW, NameKind.CTE, NameKind.ALIAS, NameKind.INNER, NameKind.EVENT_TIME}


def places_in(opened: OpenProject, file: str, *, with_query: bool = True) -> list[NamedPlace]:
    """Return the names in a file, by their places; those in its SQL require compiling it."""
    places: dict[tuple[int, Name, str], NamedPlace] = {}
    for place in _places_in(opened, file, with_query=with_query):
        places.setdefault((place.start, place.name, place.before), place)
    return sorted(places.values(), key=lambda one: (one.start, one.length))


def _places_in(opened: OpenProject, file: str, *, with_query: bool) -> Iterator[NamedPlace]:
    if file.endswith(".csv"):
        yield from fixture_places(opened, file)
        return
    if file.endswith((".yml", ".yaml")):
        yield from yaml_places(opened, file)
    if file.endswith((".yml", ".yaml", ".sql")):
        yield from jinja_places(opened, file)
    model = opened.model_of(file)
    if model is not None:
        yield from header_names(opened, model, opened.text(file))
        edited = opened.analysed(file) if with_query else None
        if edited is not None and edited.query_names is not None:
            yield from query_places(opened, file, edited.query_names, model.id)
    elif with_query and (names := opened.names_of_test(file)) is not None:
        yield from query_places(opened, file, names, "")


def place_at(opened: OpenProject, location: Location) -> NamedPlace | None:
    at = offset_of(location, opened.text(location.file))
    places = (
        one for one in places_in(opened, location.file) if one.length and one.start <= at <= one.start + one.length
    )
    return next(places, None)


def places_of(opened: OpenProject, name: Name) -> list[NamedPlace]:
    """Return all places of a name; only files that have the word are looked at."""
    word = name.name.lower()
    places: list[NamedPlace] = []
    for file in opened.files():
        if word in opened.text(file).lower():
            with_query = _may_be_in_query(opened, file, name)
            places += (one for one in places_in(opened, file, with_query=with_query) if one.name == name)
    return places


def _may_be_in_query(opened: OpenProject, file: str, name: Name) -> bool:
    if name.kind in _INSIDE:
        return file == name.owner
    nodes = {NameKind.MODEL: f"model.{name.name}", NameKind.TABLE: f"source.{name.owner}.{name.name}"}
    node = name.owner if name.kind is NameKind.COLUMN else nodes.get(name.kind)
    model = opened.model_of(file)
    return node is not None and (model is None or model.id == node or node in model.depends_on)
