"""Every place where a project writes a name."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import Location
from engine.lsp.names.header_names import header_names
from engine.lsp.names.jinja_places import jinja_places
from engine.lsp.names.named_places import Name, NamedPlace
from engine.lsp.names.query_places import query_places
from engine.lsp.names.yaml_places import fixture_places, yaml_places
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import offset_of


def places_in(opened: OpenProject, file: str) -> list[NamedPlace]:
    """Return the names in a file, by their places; each once."""
    found: dict[tuple[int, Name, str], NamedPlace] = {}
    for place in _places_in(opened, file):
        found.setdefault((place.start, place.name, place.before), place)
    return sorted(found.values(), key=lambda one: (one.start, one.length))


def _places_in(opened: OpenProject, file: str) -> Iterator[NamedPlace]:
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
        edited = opened.analysed(file)
        if edited is not None and edited.query_names is not None:
            yield from query_places(opened, file, edited.query_names, model.id)
    elif (names := opened.names_of_test(file)) is not None:
        yield from query_places(opened, file, names, "")


def place_at(opened: OpenProject, location: Location) -> NamedPlace | None:
    """Return the name at a place of a file."""
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
            found += (one for one in places_in(opened, file) if one.name == name)
    return found
