"""Read the JSON text of a schema, by the rules of Avro 1.12, which Spark uses, and bound its size.

Named types count where they are used: thirty records that each use the next one twice are a short text and a thousand
million columns. Sizes are added up from the inner types to the outer ones, so that nothing is written out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from engine.sources.avro_schema.avro_types import (
    Array,
    AvroError,
    AvroUnion,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    NamedReference,
    Path,
    Primitive,
    Record,
    Schema,
    Type,
)

MOST_TEXT: Final = 1_000_000
MOST_TYPES: Final = 10_000
MOST_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class _Size:
    types: int = 1
    depth: int = 1
    text: int = 0


def check(schema: Schema) -> None:
    """Make sure that a schema is of bearable size; a record inside itself counts once. Raises AvroError: it is not."""
    measured: dict[str, _Size] = {}
    # Those inside were defined before those around them.
    for name, type_ in schema.named_types.items():
        measured[name] = _measure(type_, measured)
    size = _measure(schema.root, measured)
    if size.depth > MOST_DEPTH:
        raise AvroError(f"its types are nested more than {MOST_DEPTH} levels deep")
    if size.types > MOST_TYPES:
        raise AvroError(f"with its named types expanded it has more than {MOST_TYPES:,} types")
    if size.text > MOST_TEXT:
        raise AvroError(f"with its named types expanded its field names have more than {MOST_TEXT:,} characters")


def _measure(type_: Type, measured: dict[str, _Size]) -> _Size:
    """The size of a type; numbers end just above their bound."""
    if isinstance(type_, NamedReference):
        # A named type inside itself: one more place, whose size is not known yet.
        return measured.get(type_.name, _Size())
    if isinstance(type_, Record) and type_.name in measured:
        return measured[type_.name]
    inner = [_measure(part, measured) for part in _parts(type_)]
    names = sum(len(field.name) for field in type_.fields) if isinstance(type_, Record) else 0
    return _Size(
        min(1 + sum(part.types for part in inner), MOST_TYPES + 1),
        min(1 + max((part.depth for part in inner), default=0), MOST_DEPTH + 1),
        min(names + sum(part.text for part in inner), MOST_TEXT + 1),
    )


def _parts(type_: Type) -> tuple[Type, ...]:
    if isinstance(type_, Record):
        return tuple(field.type for field in type_.fields)
    if isinstance(type_, AvroUnion):
        return type_.branches
    return (type_.items,) if isinstance(type_, Array) else (type_.values,) if isinstance(type_, Map) else ()


Defined = TypeVar("Defined", Record, Enum, Fixed)

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_LOGICAL: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    **dict.fromkeys(("timestamp-millis", "timestamp-micros", "timestamp-nanos"), ("long",)),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"), ("long",)),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
}
_UUID_BYTES: Final = 16
# Of the JSON: a level of the schema takes up to three keys and indices.
_MOST_PATH: Final = 3 * MOST_DEPTH + 3
_MOST_BYTES: Final = 2**31 - 1
_MOST_DIGITS: Final = 10_000


def parse(text: str, imported: Iterable[str] = ()) -> Schema:
    """Read a schema; `imported` schemas are in the order in which they use each other.

    Raises AvroError: the text is no Avro schema, or is too large.
    """
    parser = _Parser()
    for other in imported:
        parser.read(other)
    schema = Schema(parser.read(text), parser.named_types)
    check(schema)
    return schema


class _Parser:
    def __init__(self) -> None:
        self.named_types: dict[str, Named] = {}
        self.open: set[str] = set()

    def read(self, text: str) -> Type:
        if len(text) > MOST_TEXT:
            raise AvroError(f"the schema has more than {MOST_TEXT:,} characters")
        try:
            return self.type(json.loads(text), "", ())
        except json.JSONDecodeError as error:
            raise AvroError(f"not valid JSON: {error.msg}", offset=error.pos) from error
        except ValueError as error:
            if isinstance(error, AvroError):
                raise
            # A number of more digits than Python reads.
            raise AvroError("it contains a number that is too long") from error
        except RecursionError as error:
            raise AvroError("the schema is nested too deeply") from error

    def type(self, data: Any, space: str, path: Path) -> Type:
        if len(path) > _MOST_PATH:
            raise AvroError(f"its types are nested more than {MOST_DEPTH} levels deep", path)
        if isinstance(data, str):
            return self.by_name(data, space, path)
        if isinstance(data, list):
            return self.union(data, space, path)
        if not isinstance(data, dict):
            raise AvroError(f"{json.dumps(data)} is not a type", path)
        kind = data.get("type")
        if not isinstance(kind, str):
            # A type inside "type" is Avro's older habit, which its parser rejects by now.
            raise AvroError("the type has no name: 'type' must be a string such as \"record\"", path)
        if kind in _COMPOSED:
            return _COMPOSED[kind](self, data, space, path)
        primitive = self.by_name(kind, space, (*path, "type"))
        return replace(primitive, logical=_logical(data, kind, 0)) if isinstance(primitive, Primitive) else primitive

    def by_name(self, text: str, space: str, path: Path) -> Primitive | NamedReference:
        if text in PRIMITIVES:
            return Primitive(text)
        name = text if "." in text or not space else f"{space}.{text}"
        if name not in self.named_types and name not in self.open:
            raise AvroError(f"unknown type '{name}'", path)
        return NamedReference(name)

    def union(self, data: list[Any], space: str, path: Path) -> AvroUnion:
        branches = tuple(self.type(item, space, (*path, index)) for index, item in enumerate(data))
        branch_names: set[str] = set()
        for index, branch in enumerate(branches):
            if isinstance(branch, AvroUnion):
                raise AvroError("a union directly inside a union", (*path, index))
            key = branch.name if isinstance(branch, Named | NamedReference) else branch.kind
            if key in branch_names:
                raise AvroError(f"the union has '{key}' twice", (*path, index))
            branch_names.add(key)
        return AvroUnion(branches)

    def record(self, data: dict[str, Any], space: str, path: Path) -> Record:
        name, inside, aliases = self.name(data, space, path)
        fields = data.get("fields")
        if not isinstance(fields, list):
            raise AvroError(f"the record '{name}' has no list of fields", path)
        self.open.add(name)
        new_record = Record(
            name, tuple(self.field(f, inside, (*path, "fields", i)) for i, f in enumerate(fields)), aliases
        )
        self.open.discard(name)
        field_names: set[str] = set()
        for index, field in enumerate(new_record.fields):
            if field.name in field_names:
                raise AvroError(f"the record '{name}' has '{field.name}' twice", (*path, "fields", index, "name"))
            field_names.add(field.name)
        return self.define(new_record, path)

    def field(self, data: Any, space: str, path: Path) -> Field:
        name = data.get("name") if isinstance(data, dict) else None
        if not isinstance(name, str) or "type" not in data:
            raise AvroError("a field needs a name and a type", path)
        if not _NAME.fullmatch(name):
            raise AvroError(f"'{name}' is not a valid field name", (*path, "name"))
        type_ = self.type(data["type"], space, (*path, "type"))
        if _is_deep(data.get("default"), MOST_DEPTH):
            raise AvroError(f"the default of '{name}' is nested more than {MOST_DEPTH} levels deep", (*path, "default"))
        doc = data.get("doc")
        return Field(
            name,
            type_,
            (data["default"],) if "default" in data else (),
            _texts(data.get("aliases"), (*path, "aliases")),
            doc if isinstance(doc, str) else "",
        )

    def enum(self, data: dict[str, Any], space: str, path: Path) -> Enum:
        name, _, aliases = self.name(data, space, path)
        symbols = _texts(data.get("symbols"), (*path, "symbols"))
        known_symbols: set[str] = set()
        for index, symbol in enumerate(symbols):
            if not _NAME.fullmatch(symbol) or symbol in known_symbols:
                fault = "is listed twice" if symbol in known_symbols else "is not a name"
                raise AvroError(f"the symbol '{symbol}' of '{name}' {fault}", (*path, "symbols", index))
            known_symbols.add(symbol)
        default = data.get("default")
        if default is not None and (not isinstance(default, str) or default not in known_symbols):
            raise AvroError(f"the default of '{name}' is not one of its symbols", (*path, "default"))
        return self.define(Enum(name, symbols, default, aliases), path)

    def fixed(self, data: dict[str, Any], space: str, path: Path) -> Fixed:
        name, _, aliases = self.name(data, space, path)
        size = data.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MOST_BYTES:
            raise AvroError(f"the size of '{name}' must be a number of bytes", path)
        return self.define(Fixed(name, size, aliases, _logical(data, "fixed", size)), path)

    def define(self, named_type: Defined, path: Path) -> Defined:
        if self.named_types.setdefault(named_type.name, named_type) != named_type:
            raise AvroError(f"'{named_type.name}' is defined twice", (*path, "name"))
        return named_type

    def array(self, data: dict[str, Any], space: str, path: Path) -> Array:
        return Array(self.inner(data, "items", space, path))

    def map(self, data: dict[str, Any], space: str, path: Path) -> Map:
        return Map(self.inner(data, "values", space, path))

    def inner(self, data: dict[str, Any], key: str, space: str, path: Path) -> Type:
        if key not in data:
            raise AvroError(f"the {data['type']} has no '{key}'", path)
        return self.type(data[key], space, (*path, key))

    def name(self, data: dict[str, Any], space: str, path: Path) -> tuple[str, str, tuple[str, ...]]:
        short, own = data.get("name"), data.get("namespace", space)
        if not isinstance(short, str) or not isinstance(own, str):
            raise AvroError(f"the {data['type']} has no name", path)
        full = short if "." in short or not own else f"{own}.{short}"
        if not all(_NAME.fullmatch(part) for part in full.split(".")) or full in PRIMITIVES:
            raise AvroError(f"'{full}' is not a valid type name", (*path, "name"))
        if full in self.open:
            raise AvroError(f"'{full}' is defined twice", (*path, "name"))
        inside = full.rpartition(".")[0]
        aliases = _texts(data.get("aliases"), (*path, "aliases"))
        return full, inside, tuple(a if "." in a or not inside else f"{inside}.{a}" for a in aliases)


def _is_deep(data: Any, most: int) -> bool:
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(most == 0 or _is_deep(item, most - 1) for item in inner)


def _texts(data: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(item, str) for item in data):
        if data is None and path[-1] == "aliases":
            return ()
        raise AvroError(f"'{path[-1]}' must be a list of strings", path[:-1])
    return tuple(data)


def _logical(data: Mapping[str, Any], kind: str, size: int) -> Logical | None:
    """The logical type; one that does not fit its plain type is none, as in Avro."""
    name = data.get("logicalType")
    if not isinstance(name, str) or kind not in _LOGICAL.get(name, ()):
        return None
    if name == "uuid" and kind == "fixed" and size != _UUID_BYTES:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = data.get("precision"), data.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or not precision:
        return None
    if kind == "fixed" and size <= _MOST_DIGITS and (precision > 3 * size or 10**precision > 2 ** (8 * size - 1)):
        return None
    return Logical(name, precision, scale)


_COMPOSED: Final[Mapping[str, Callable[[_Parser, dict[str, Any], str, Path], Type]]] = {
    "record": _Parser.record,
    "error": _Parser.record,
    "enum": _Parser.enum,
    "fixed": _Parser.fixed,
    "array": _Parser.array,
    "map": _Parser.map,
}
