"""What a place of a model's header means: a key, a model or source, a column, a window.

Columns of models and sources as they were compiled last, with the fields of structs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.compile import Model, Source
from engine.compile.nodes.manifest import Column
from engine.compile.types import spark_types
from engine.errors import Location
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import range_word
from engine.project.model_header import split_header
from engine.project.parse_yaml import Path, Yaml
from engine.schema import ConfigBlock, ConfigKey, ValueForm
from engine.schema.all_blocks import BLOCKS


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column, or a field of one: its node (empty: the model itself), name as written, type and description."""

    node: str
    name: str
    type: str | None
    description: str = ""


def columns_of(opened: OpenProject, node: str) -> tuple[Column, ...]:
    place_or_node = opened.manifest.nodes.get(node)
    if isinstance(place_or_node, Model) and place_or_node.file in opened.edited:
        place_or_node = opened.edited[place_or_node.file].model
    return place_or_node.columns if isinstance(place_or_node, Model | Source) else ()


def input_columns(opened: OpenProject, model: Model, node: str) -> Iterator[KnownColumn]:
    """Return the columns that a model sees of an input, with the one that a watermark makes."""
    columns = columns_of(opened, node)
    for column in columns:
        yield KnownColumn(node, column.name, column.type, column.description)
    for item in model.inputs:
        watermark = item.watermark
        if (
            item.node == node
            and watermark
            and watermark.expression
            and watermark.column not in {c.name for c in columns}
        ):
            place_or_node = at_path(columns_known(node, columns), watermark.expression.split("."))
            yield KnownColumn(node, watermark.column, place_or_node.type if place_or_node else "timestamp")


def columns_known(node: str, columns: Iterable[Column]) -> list[KnownColumn]:
    return [KnownColumn(node, one.name, one.type, one.description) for one in columns]


def at_path(columns: Iterable[KnownColumn], path: list[str]) -> KnownColumn | None:
    """Return the column, or the field in it, that a dotted name leads to; Spark does not tell upper from lower case."""
    first = next((one for one in columns if one.name.lower() == path[0].lower()), None)
    if first is None or len(path) == 1:
        return first
    inner = at_path(fields_of(first), path[1:])
    return KnownColumn(first.node, f"{first.name}.{inner.name}", inner.type) if inner else None


def fields_of(column: KnownColumn) -> list[KnownColumn]:
    fields = spark_types.fields(column.type) or ()
    return [KnownColumn(column.node, name.strip(), type_.strip()) for name, type_ in fields]


# Keys whose values name columns of the query, alone or in SQL, wherever they are in the header.
OF_OUTPUT = frozenset(
    ["unique_key", "sequence_by", "partition_by", "sort_by", "exclude", "check", "delete_when", "where", "expression"]
)
# The keys of these are names of the user.
_OF_USER = frozenset({ValueForm.MAPPING, ValueForm.VALUES, ValueForm.TESTS})
# The same for columns of the stream that they are below.
OF_STREAM = frozenset({"watermark", "dedup", "as", "column"})


@dataclass(frozen=True, slots=True)
class HeaderPlace:
    """A key or value of a header, and the word of it at a place. `word`: with dots."""

    path: Path
    is_key: bool
    word: str


@dataclass(frozen=True, slots=True)
class HeaderWord:
    key: ConfigKey | None = None
    node: str = ""
    column: KnownColumn | None = None
    window: str = ""


def header_place(text: str, place: Location) -> tuple[Yaml, HeaderPlace] | None:
    """Return the key or value at a place; None: there is none, or the header cannot be read."""
    header = _header(text, place.file)
    line = text.split("\n")[place.line - 1]
    if header is None or line[: place.column - 1].rpartition(" #")[1] or not header.keys:
        return None
    place_or_node: tuple[tuple[int, int], Path, bool] | None = None
    for places, is_key in ((header.values, False), (header.keys, True)):  # a mapping begins with its first key
        for path, at in places.items():
            spot = (at.line, at.column)
            if path and spot <= (place.line, place.column) and (place_or_node is None or spot >= place_or_node[0]):
                place_or_node = (spot, path, is_key)
    if place_or_node is None:
        return None
    spot, path, is_key = place_or_node
    if is_key and (spot[0] != place.line or place.column > spot[1] + len(str(path[-1]))):
        return None
    return header, HeaderPlace(path, is_key, str(path[-1]) if is_key else range_word(line, place.column - 1).strip("."))


@lru_cache(maxsize=8)
def _header(text: str, file: str) -> Yaml | None:
    """The header of a text; of the same one many words are asked for."""
    return split_header(text, file).header


def meaning(opened: OpenProject, model: Model, header: Yaml, place: HeaderPlace) -> HeaderWord | None:
    """Return what a word of a header means; None: it is a text for people, or nothing that is known."""
    names = [part for part in place.path if isinstance(part, str)]
    key, _, named_by_user = schema_at(names)
    if not place.is_key:
        return _of_value(opened, model, header, place, names) or _choice(key)
    if named_by_user:
        top, *rest = names
        return _named_word(opened, model, top, place.word) if rest == [place.word] else None
    return HeaderWord(key=key) if key else None


def _of_value(
    opened: OpenProject, model: Model, header: Yaml, place: HeaderPlace, names: list[str]
) -> HeaderWord | None:
    top, last = names[0], names[-1]
    if top == "streams":
        return _in_stream(opened, model, names, place.word)
    if top == "windows":
        return _word_of(one for item in model.inputs for one in _of_input(opened, model, item.node, place.word))
    if last in {"to", "field"}:
        return _related(opened, header, place, last)
    return _word_of(_columns_at(columns_known("", model.columns), place.word)) if last in OF_OUTPUT else None


def _choice(key: ConfigKey | None) -> HeaderWord | None:
    return HeaderWord(key=key) if key is not None and (key.choices or key.form is ValueForm.BOOLEAN) else None


def schema_at(names: Sequence[str]) -> tuple[ConfigKey | None, ConfigBlock | None, bool]:
    """Return what the schema says of a path of keys.

    Returns:
        The key at its end; the keys that may come below it, None where names of the user, or nothing, come next; and
        whether it ends with a name of the user, such as that of a column.
    """
    block: ConfigBlock | None = BLOCKS["model"]
    key: ConfigKey | None = None
    named_by_user = user = False
    for name in names:
        user = named_by_user
        if named_by_user:
            named_by_user, key = False, None
            continue
        key = next((one for one in block.keys if one.name == name), None) if block else None
        if key is None:
            return None, None, False
        named_by_user = key.form in _OF_USER or ValueForm.BY_NAME in (key.form, *key.also)
        block = BLOCKS["data_test"] if key.form is ValueForm.TESTS else BLOCKS.get(key.block)
    return key, None if named_by_user else block, user


def _named_word(opened: OpenProject, model: Model, top: str, name: str) -> HeaderWord | None:
    if top == "streams":
        return _node(opened, name)
    if top == "windows" and name in model.windows:
        return HeaderWord(window=name)
    return _word_of(_columns_at(columns_known("", model.columns), name)) if top == "columns" else None


def _node(opened: OpenProject, name: str) -> HeaderWord | None:
    ids = (f"model.{name}", f"source.{name}")
    return next((HeaderWord(node=i) for i in ids if i in opened.manifest.nodes), None)


def _in_stream(opened: OpenProject, model: Model, names: list[str], word: str) -> HeaderWord | None:
    if len(names) == 1:
        return _node(opened, word)
    place_or_node = _node(opened, names[1])
    if place_or_node is None or names[-1] not in OF_STREAM:
        return None
    return _word_of(_of_input(opened, model, place_or_node.node, word))


def _of_input(opened: OpenProject, model: Model, node: str, word: str) -> list[KnownColumn]:
    return _columns_at(list(input_columns(opened, model, node)), word)


def _columns_at(columns: list[KnownColumn], word: str) -> list[KnownColumn]:
    place_or_node = at_path(columns, word.split(".")) if word else None
    return [place_or_node] if place_or_node else []


def _word_of(place_or_node: Any) -> HeaderWord | None:
    return next((HeaderWord(column=one) for one in place_or_node), None)


def _related(opened: OpenProject, header: Yaml, place: HeaderPlace, last: str) -> HeaderWord | None:
    """The model and the column of `relationships: {to: airports, field: faa}`."""
    data: Any = header.data
    for part in place.path[:-1]:
        data = data[part]
    to = (
        _node(opened, str(data.get("to", "")).removeprefix("ref('").removesuffix("')"))
        if isinstance(data, dict)
        else None
    )
    if to is None or last == "to":
        return to
    return _word_of(_columns_at(columns_known(to.node, columns_of(opened, to.node)), place.word))
