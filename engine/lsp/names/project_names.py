"""Every place where a project writes a name."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import Location
from engine.lsp.names.header_names import header_names
from engine.lsp.names.jinja_places import jinja_places
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.query_places import query_places
from engine.lsp.names.yaml_places import fixture_places, yaml_places
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import offset_of

# What a query gives a name to: nothing outside of its file has it.
_INSIDE = {NameKind.WINDOW, NameKind.CTE, NameKind.ALIAS, NameKind.INNER, NameKind.EVENT_TIME}


def places_in(opened: OpenProject, file: str, *, with_query: bool = True) -> list[NamedPlace]:
    """Return the names in a file, by their places; those in its SQL require compiling it."""
    found: dict[tuple[int, Name, str], NamedPlace] = {}
    for place in _places_in(opened, file, with_query=with_query):
        found.setdefault((place.start, place.name, place.before), place)
    return sorted(found.values(), key=lambda one: (one.start, one.length))


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
    found = (
        one for one in places_in(opened, location.file) if one.length and one.start <= at <= one.start + one.length
    )
    return next(found, None)


def places_of(opened: OpenProject, name: Name) -> list[NamedPlace]:
    """Return all places of a name; only files that have the word are looked at."""
    word = name.name.lower()
    found: list[NamedPlace] = []
    for file in opened.files():
        if word in opened.text(file).lower():
            with_query = _may_be_in_query(opened, file, name)
            found += (one for one in places_in(opened, file, with_query=with_query) if one.name == name)
    return found


def _may_be_in_query(opened: OpenProject, file: str, name: Name) -> bool:
    if name.kind in _INSIDE:
        return file == name.owner
    nodes = {NameKind.MODEL: f"model.{name.name}", NameKind.TABLE: f"source.{name.owner}.{name.name}"}
    node = name.owner if name.kind is NameKind.COLUMN else nodes.get(name.kind)
    model = opened.model_of(file)
    return node is not None and (model is None or model.id == node or node in model.depends_on)
