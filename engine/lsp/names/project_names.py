"""Every place where a project writes a name. Names in the SQL of models and singular tests."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping

from engine.compile import Model
from engine.compile.columns.name_uses import UseKind
from engine.compile.pipeline.query_names import QueryName, QueryNames
from engine.errors import Location
from engine.lsp.names.jinja_places import dotted_source, jinja_places, words_of_tag
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.yaml_places import fixture_places, relation, test_name, yaml_places
from engine.lsp.opened.header_places import HeaderWord, header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, offset_of, segments
from engine.project.model_header import location_of, split_header
from engine.project.parse_yaml import Path, Yaml

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_HOOKS = ("pre_hook", "post_hook")


def header_names(opened: OpenProject, model: Model, text: str) -> Iterator[NamedPlace]:
    part = next((one for one in segments(text) if one.kind is TextKind.HEADER), None)
    header = split_header(text, model.file).header
    if part is None or header is None:
        return
    for path, place in header.keys.items():
        yield from test_name(opened, model.file, text, path, offset_of(place, text), is_key=True)
    for path, place in header.values.items():
        yield from test_name(opened, model.file, text, path, offset_of(place, text), is_key=False)
        yield from _listed(opened, model, header, text, path)
    for match in _WORD.finditer(text, part.start, part.end):
        at = header_place(text, location_of(text, match.start(), model.file))
        header_word = meaning(opened, model, *at) if at else None
        if at is None or header_word is None:
            continue
        path, is_key = at[1].path, at[1].is_key
        if is_key or _names(path, text, offset_of(header.value_at(path), text), match):
            yield from _places(model, text, path, match, header_word, is_key=is_key)


def _names(path: Path, text: str, begin: int, match: re.Match[str]) -> bool:
    """Whether a word of a value is a name: not a function, a part of a string, a length of time or a word of YAML."""
    value = text[begin : match.start()]
    if text[match.end() :].lstrip(" ").startswith("(") or path[-1] == "to":
        return False
    if value[:1] != "'" and value.count("'") % 2:
        return False
    if path[:1] == ("windows",):
        return value.count("(") > 0 and "," not in value.partition("(")[2]
    if "watermark" in path and path[-1] == "watermark":
        return " delay " not in value.lower() and not re.fullmatch(r"(?i)as|delay", match[0])
    return True


def _places(
    model: Model, text: str, path: Path, match: re.Match[str], header_word: HeaderWord, *, is_key: bool
) -> Iterator[NamedPlace]:
    file, at, word = model.file, match.start(), match[0]
    if header_word.node.startswith("source."):
        yield from dotted_source(file, at, word)
    elif header_word.node:
        yield NamedPlace(file, at, len(word), Name(NameKind.MODEL, word))
    elif header_word.window:
        yield NamedPlace(file, at, len(word), Name(NameKind.WINDOW, header_word.window, file))
    elif header_word.column is not None:
        first = word.partition(".")[0]
        node = header_word.column.node or model.id
        name = Name(NameKind.COLUMN, first.lower(), node)
        if header_word.column.node and _is_computed(model, node, path, text, match):
            name = Name(NameKind.EVENT_TIME, first.lower(), file)
        if not is_key or word == str(path[-1]):
            yield NamedPlace(file, at, len(first), name)


def _is_computed(model: Model, node: str, path: Path, text: str, match: re.Match[str]) -> bool:
    """Whether a column of an input is the one that a watermark of the model makes."""
    watermarks = [item.watermark for item in model.inputs if item.node == node and item.watermark]
    first = match[0].partition(".")[0].lower()
    if not any(one.expression is not None and one.column.lower() == first for one in watermarks):
        return False
    if path[-1] == "watermark":
        return bool(re.search(r"\sas\s+`?$", text[: match.start()], re.IGNORECASE))
    # The SQL of the mapping form is over what the input has.
    return path[-1] != "as"


def _listed(opened: OpenProject, model: Model, header: Yaml, text: str, path: Path) -> Iterator[NamedPlace]:
    value = _data(header, path)
    at = offset_of(header.values[path], text)
    if path[:1] == ("columns",) and path[2:] == ("name",) and isinstance(value, str):
        quoted = int(text[at] in "\"'")
        yield NamedPlace(model.file, at + quoted, len(value), Name(NameKind.COLUMN, value.lower(), model.id))
    elif path[-1:] == ("to",) and isinstance(value, str):
        yield from relation(opened, model.file, text, at + int(text[at] in "\"'"), value)
    elif path[:1] == ("expectations",) and path[2:] == ("name",) and isinstance(value, str):
        yield NamedPlace(model.file, at, len(value), Name(NameKind.EXPECTATION, value, model.name))


def hooks_with(model: Model, text: str, word: str) -> str:
    header = split_header(text, model.file).header
    for path, place in header.values.items() if header is not None else ():
        value = _data(header, path) if header is not None else None
        hooked = path[:1] and path[0] in _HOOKS and isinstance(value, str)
        if hooked and re.search(rf"(?i)\b{re.escape(word)}\b", str(value)):
            return f"{place.file}:{place.line} names it in a hook"
    return ""


def _data(header: Yaml, path: Path) -> object:
    match: object = header.data
    for part in path:
        try:
            match = match[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return match


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
