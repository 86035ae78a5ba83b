"""A model's settings after the layers are merged: the winning value of each key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.compile.config.column_config import read_meta, read_tag
from engine.errors import Diagnostic, Location
from engine.project import ModelFile
from engine.project.yaml_section import Section, quote_text

_UNSAID: tuple[object, ...] = (None, False, "false", [], {})
# In backquotes or without, as in SQL; a name of several words needs neither there.
_COLUMN = re.compile(r"`([^`]+)`|([\w]+(?:[ -][\w]+)*)")


@dataclass(frozen=True, slots=True)
class NamedColumn:
    key: str
    column: str
    location: Location


@dataclass(frozen=True, slots=True)
class MergedSettings:
    """The winning value of each key; `layers`: all values, weakest first; `own`: not folder defaults."""

    model: ModelFile
    keys: dict[str, Section]
    own: frozenset[str]
    layers: list[Section]
    diagnostics: list[Diagnostic]
    named_columns: list[NamedColumn] = field(default_factory=list)

    @property
    def tags(self) -> tuple[str, ...]:
        parts = (part for layer in self.layers if (part := layer.child("tags")))
        return tuple(dict.fromkeys(text for part in parts for item in part.items() if (text := read_tag(item))))

    @property
    def meta(self) -> dict[str, Any]:
        """The keys of all layers, the strongest of each."""
        return {k: v for layer in self.layers for k, v in read_meta(layer.child("meta")).items()}

    def get(self, key: str) -> Section | None:
        return self.keys.get(key)

    def text(self, key: str) -> str:
        """The value as text; empty if there is none."""
        return self.keys[key].text() if key in self.keys else ""

    def boolean(self, key: str) -> bool:
        """The value as true or false; false if there is none."""
        return self.keys[key].boolean() if key in self.keys else False

    def word(self, key: str, *allowed: str) -> str:
        """The value as one of a closed set of words; empty if it is none of them."""
        value = self.keys[key].choice(*allowed) if key in self.keys else ""
        return value if value in allowed else ""

    def says(self, key: str) -> bool:
        return key in self.keys and self.keys[key].value not in _UNSAID

    def columns(self, key: str) -> tuple[str, ...]:
        return tuple(column for column, _ in self.column_places(key))

    def column_places(self, key: str) -> list[tuple[str, Section]]:
        section = self.get(key)
        places: dict[str, tuple[str, Section]] = {}
        for item in section.items() if section else ():
            column = self._column(key, item)
            if column.lower() in places:
                item.report("duplicate-name", f"'{key}' names '{column}' twice", "Keep one of them.")
            elif column:
                places[column.lower()] = (column, item)
        return list(places.values())

    def _column(self, key: str, item: Section) -> str:
        text = item.text().strip()
        match = _COLUMN.fullmatch(text)
        if match is None:
            if text:
                hint = f"Write a list: {key}: [{text}]." if "," in text else "Name a column of the SELECT."
                item.report("bad-value", f"{quote_text(text)} is not a column", hint)
            return ""
        column = match[1] or match[2]
        self.name(key, column, item)
        return column

    def name(self, key: str, column: str, at: Section) -> None:
        self.named_columns.append(NamedColumn(key, column, at.place))

    def where(self, key: str) -> str:
        place = self.keys[key].key_place
        return f"in line {place.line}" if place.file == self.model.file else f"in {place}"

    def refuse(self, key: str, code: str, message: str, hint: str) -> None:
        """Report a key that does not fit the others; a folder default is reported at the model."""
        section = self.keys[key]
        if key in self.own:
            section.report(code, message, hint, at_key=True)
            return
        message = f"{message} ('{key}' comes from {section.key_place})"
        place = Location(self.model.file)
        self.diagnostics.append(Diagnostic(code, message, hint, node=self.model.name, location=place))

    def places(self) -> Iterator[tuple[str, Location]]:
        for key, section in self.keys.items():
            yield key, section.key_place


def merge_settings(
    model: ModelFile, defaults: Sequence[Section], own: Sequence[Section], diagnostics: list[Diagnostic]
) -> MergedSettings:
    """A deeper folder wins over one around it, and the model over all; tags and meta add up."""
    layers = [*defaults, *own]
    keys = {k: s for layer in layers for k, s in layer.mapping() if not s.empty}
    own_keys = frozenset(k for layer in own for k, s in layer.mapping() if not s.empty)
    return MergedSettings(model, keys, own_keys, layers, diagnostics)
