"""The columns that Spark gives a schema, without Spark: what its SchemaConverters does, in Spark 4.1.

A union with null may be NULL; [int, long] is bigint, [float, double] double, any other union a struct (member0, ..).
time-millis, time-micros and nanoseconds stay numbers; uuid is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecoder
from typing import Final

from engine.errors import Location, ProjectError
from engine.sources.avro_schema.avro_types import (  # fmt: skip
    Array,
    AvroError,
    AvroUnion,
    Enum,
    Fixed,
    Logical,
    Map,
    Path,
    Primitive,
    Record,
    Schema,
    Type,
)
from engine.sources.avro_schema.default_values import default_bytes
from engine.sources.avro_schema.parse_schema import parse

_PLAIN: Final = {
    "null": "void", "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "bytes": "binary", "string": "string",
}  # fmt: skip
_LOGICAL: Final = {
    "date": "date",
    **dict.fromkeys(("timestamp-millis", "timestamp-micros"), "timestamp"),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), "timestamp_ntz"),
}
_WIDER: Final = ({"int", "long"}, "bigint"), ({"float", "double"}, "double")
_MOST_DIGITS: Final = 38
_HINT: Final = "Correct the schema by the Avro specification, or use the columns that 'engine source inspect' prints."


@dataclass(frozen=True, slots=True)
class AvroColumn:
    name: str
    type: str
    doc: str = ""


def read_schema(text: str, file: str) -> Schema:
    """The schema of a file, which Spark can read into columns.

    Raises ProjectError: `avro-schema`, at the place of the fault.
    """
    try:
        schema = parse(text)
        columns(schema)
    except AvroError as error:
        offset = error.offset if error.offset is not None else _offset_or_none(text, error.path)
        line, start = text.count("\n", 0, offset) + 1, text.rfind("\n", 0, offset) + 1
        raise ProjectError(
            "avro-schema", str(error), _HINT, location=Location(file, line, offset - start + 1)
        ) from error
    return schema


def columns(schema: Schema) -> tuple[AvroColumn, ...]:
    """The columns of a schema; one that is not a record is a column `value`.

    Raises AvroError: Spark cannot have such columns.
    """
    record = schema.record
    walk = _Walk(schema)
    path: Path = () if isinstance(schema.follow(schema.root), Record) else ("",)
    if not record.fields:
        raise AvroError("the schema has no fields", path)
    types = walk.fields(record, (record.name,), path)
    return tuple(AvroColumn(f.name, type_, f.doc) for f, type_ in zip(record.fields, types, strict=True))


def ddl(schema: Schema) -> str:
    """The columns as Spark DDL. Raises AvroError: Spark cannot have such columns."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns(schema))


class _Walk:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def fields(self, record: Record, around: tuple[str, ...], path: Path) -> Iterator[str]:
        names_by_key: dict[str, str] = {}
        for index, field in enumerate(record.fields):
            at = (*path, "fields", index)
            if (other := names_by_key.setdefault(field.name.lower(), field.name)) != field.name:
                message = (
                    f"the fields '{other}' and '{field.name}' differ only in case, and Spark's column names "
                    "are case-insensitive"
                )
                raise AvroError(message, (*at, "name"))
            if field.default:
                default_bytes(self.schema, field, at)
            yield self.type(field.type, around, (*at, "type"))

    def type(self, type_: Type, around: tuple[str, ...], path: Path) -> str:
        followed_type = self.schema.follow(type_)
        if isinstance(followed_type, Record):
            return self.record(followed_type, around, path)
        if isinstance(followed_type, AvroUnion):
            return self.union(followed_type, around, path)
        if isinstance(followed_type, Array):
            return f"array<{self.type(followed_type.items, around, (*path, 'items'))}>"
        if isinstance(followed_type, Map):
            return f"map<string, {self.type(followed_type.values, around, (*path, 'values'))}>"
        if isinstance(followed_type, Enum):
            return "string"
        return _simple_type(followed_type, path)

    def record(self, record: Record, around: tuple[str, ...], path: Path) -> str:
        if record.name in around:
            raise AvroError(f"'{record.name}' contains itself, which Spark does not support", path)
        types = self.fields(record, (*around, record.name), path)
        typed_fields = zip(record.fields, types, strict=True)
        return f"struct<{', '.join(f'{quoted(field.name)}: {type_}' for field, type_ in typed_fields)}>"

    def union(self, union: AvroUnion, around: tuple[str, ...], path: Path) -> str:
        branches = [(i, b) for i, b in enumerate(union.branches) if b != Primitive("null")]
        if not branches:
            raise AvroError("the union has no type but null", path)
        if len(branches) == 1:
            return self.type(branches[0][1], around, (*path, branches[0][0]))
        kinds = [self.schema.follow(branch).kind for _, branch in branches]
        for pair, wider in _WIDER:
            if len(kinds) == len(pair) and set(kinds) == pair:
                return wider
        types = [self.type(branch, around, (*path, index)) for index, branch in branches]
        return f"struct<{', '.join(f'member{number}: {type_}' for number, type_ in enumerate(types))}>"


def _simple_type(type_: Primitive | Fixed, path: Path) -> str:
    logical: Logical | None = type_.logical
    if logical and logical.name == "decimal":
        if logical.precision > _MOST_DIGITS:
            raise AvroError(f"a decimal of {logical.precision} digits; Spark's have {_MOST_DIGITS} at most", path)
        return f"decimal({logical.precision},{logical.scale})"
    if isinstance(type_, Fixed):
        return "binary"
    return _LOGICAL.get(logical.name if logical else "", _PLAIN[type_.kind])


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`"


def _offset_or_none(text: str, path: Path) -> int:
    """The same; 0 for what is nested too deeply to be looked through."""
    try:
        return _offset(text, path)
    except (RecursionError, ValueError):
        return 0


def _offset(text: str, path: Path) -> int:
    start = _space(text, 0)
    for step in path:
        inner = dict(_members(text, start)).get(step)
        if inner is None:
            break
        start = inner
    return start


def _members(text: str, start: int) -> Iterator[tuple[str | int, int]]:
    decoder, at, number = JSONDecoder(), start + 1, 0
    while text[start] in "{[" and text[at := _space(text, at)] not in "}]":
        key: str | int = number
        if text[start] == "{":
            key, at = decoder.raw_decode(text, at)
            at = _space(text, _space(text, at) + 1)
        yield key, at
        _, at = decoder.raw_decode(text, at)
        at = _space(text, at)
        at, number = at + (text[at] == ","), number + 1


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
