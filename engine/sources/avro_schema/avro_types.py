"""Avro schemas as values, and their one text.

Properties that say nothing of the data are dropped, so that Spark never sees what the engine has not understood.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Path = tuple[str | int, ...]


class AvroError(ValueError):
    """`path` leads to the fault in the JSON text; `offset` is set where the text is no JSON at all."""

    def __init__(self, message: str, path: Path = (), offset: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Logical:
    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True, slots=True)
class Primitive:
    kind: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    name: str
    size: int
    aliases: tuple[str, ...] = ()
    logical: Logical | None = None
    kind: str = "fixed"


@dataclass(frozen=True, slots=True)
class Enum:
    """One of some words; a reader's default stands for words it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    kind: str = "enum"


@dataclass(frozen=True, slots=True)
class Array:
    items: Type
    kind: str = "array"


@dataclass(frozen=True, slots=True)
class Map:
    values: Type
    kind: str = "map"


@dataclass(frozen=True, slots=True)
class AvroUnion:
    branches: tuple[Type, ...]
    kind: str = "union"


@dataclass(frozen=True, slots=True)
class NamedReference:
    name: str
    kind: str = "reference"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record; `default` is a list of one JSON value, or empty."""

    name: str
    type: Type
    default: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    doc: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()
    kind: str = "record"


Named = Fixed | Enum | Record
Type = Primitive | Named | Array | Map | AvroUnion | NamedReference


@dataclass(frozen=True, slots=True)
class Schema:
    root: Type
    named_types: Mapping[str, Named]

    def follow(self, type_: Type) -> Primitive | Named | Array | Map | AvroUnion:
        return self.named_types[type_.name] if isinstance(type_, NamedReference) else type_

    @property
    def record(self) -> Record:
        """Return the outermost record; another type is the one field `value` of a record, with the same bytes."""
        root = self.follow(self.root)
        return root if isinstance(root, Record) else Record("value", (Field("value", root),))


def to_json(schema: Schema, extra: Iterable[Field] = (), *, docs: bool = False) -> str:
    record = schema.record
    whole = replace(record, fields=(*record.fields, *extra))
    return json.dumps(_Writer(schema, docs=docs).type(whole), ensure_ascii=False, separators=(",", ":"))


class _Writer:
    def __init__(self, schema: Schema, *, docs: bool) -> None:
        self.schema = schema
        self.docs = docs
        self.written: set[str] = set()

    def type(self, type_: Type) -> Any:
        if isinstance(type_, NamedReference):
            return type_.name if type_.name in self.written else self.type(self.schema.follow(type_))
        if isinstance(type_, Primitive):
            return {"type": type_.kind, **_logical_json(type_.logical)} if type_.logical else type_.kind
        if isinstance(type_, AvroUnion):
            return [self.type(branch) for branch in type_.branches]
        if isinstance(type_, Array):
            return {"type": "array", "items": self.type(type_.items)}
        if isinstance(type_, Map):
            return {"type": "map", "values": self.type(type_.values)}
        return self.definition(type_)

    def definition(self, type_: Named) -> Any:
        if type_.name in self.written:
            return type_.name
        self.written.add(type_.name)
        space, _, short = type_.name.rpartition(".")
        head = {"type": type_.kind, "name": short, "namespace": space, **_listed("aliases", type_.aliases)}
        if isinstance(type_, Fixed):
            return {**head, "size": type_.size, **_logical_json(type_.logical)}
        if isinstance(type_, Enum):
            default = {} if type_.default is None else {"default": type_.default}
            return {**head, "symbols": list(type_.symbols), **default}
        return {**head, "fields": [self.field(inner) for inner in type_.fields]}

    def field(self, inner: Field) -> Any:
        default = {"default": inner.default[0]} if inner.default else {}
        also = {**default, **({"doc": inner.doc} if inner.doc and self.docs else {})}
        return {"name": inner.name, "type": self.type(inner.type), **also, **_listed("aliases", inner.aliases)}


def _listed(key: str, values: tuple[str, ...]) -> dict[str, list[str]]:
    return {key: list(values)} if values else {}


def _logical_json(logical: Logical | None) -> dict[str, Any]:
    if logical is None:
        return {}
    sizes = {"precision": logical.precision, "scale": logical.scale} if logical.name == "decimal" else {}
    return {"logicalType": logical.name, **sizes}
