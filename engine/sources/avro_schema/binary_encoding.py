"""Avro's binary form, as far as finding where a value ends; the encoding of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from engine.sources.avro_schema.avro_types import Array, AvroUnion, Enum, Fixed, Map, Primitive, Record, Schema, Type

# Bytes and the position of a value to the position behind it. It may lie behind the end of the bytes.
Skip = Callable[[bytes, int], int]

_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
# Java would make room for that many before it reads the first; engine/spark sets the same limit there.
MOST_ITEMS: Final = 1 << 24
_MOST_BITS: Final = 63
_LOW: Final = 0x7F  # the bits of a byte that count; the high one says that the number continues


class CorruptError(ValueError):
    pass


def write_long(number: int) -> bytes:
    rest = (number << 1) ^ (number >> _MOST_BITS)
    encoded = bytearray()
    while rest > _LOW:
        encoded.append(rest & _LOW | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def read_long(value: bytes, pos: int) -> tuple[int, int]:
    """A number, and the position behind it.

    Raises:
        IndexError: the value ends before.
        CorruptError: it has more than 64 bits.
    """
    byte = value[pos]
    number, shift = byte & _LOW, 7
    while byte > _LOW:
        if shift > _MOST_BITS:
            raise CorruptError
        pos += 1
        byte = value[pos]
        number |= (byte & _LOW) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), pos + 1


def skips(schema: Schema) -> Callable[[Type], Skip]:
    """A function that gives the skip of any type of a schema, also of one that contains itself.

    A skip raises CorruptError or IndexError where the bytes cannot be of the type.
    """
    record_skips: dict[str, Skip] = {}

    def skip_of(type_: Type) -> Skip:
        followed_type = schema.follow(type_)
        if isinstance(followed_type, Record):
            if followed_type.name not in record_skips:
                # A record inside itself is looked up when it is met.
                record_skips[followed_type.name] = partial(_later, record_skips, followed_type.name)
                record_skips[followed_type.name] = _all([skip_of(field.type) for field in followed_type.fields])
            return record_skips[followed_type.name]
        if isinstance(followed_type, Array):
            return _blocks(skip_of(followed_type.items))
        if isinstance(followed_type, Map):
            return _blocks(_all([_text, skip_of(followed_type.values)]))
        if isinstance(followed_type, AvroUnion):
            return _one_of([skip_of(branch) for branch in followed_type.branches])
        return _simple(followed_type)

    return skip_of


def _later(record_skips: dict[str, Skip], name: str, value: bytes, pos: int) -> int:
    return record_skips[name](value, pos)


def _simple(type_: Type) -> Skip:
    if isinstance(type_, Fixed):
        return _width(type_.size)
    if isinstance(type_, Primitive) and type_.kind in _WIDTHS:
        return _width(_WIDTHS[type_.kind])
    if isinstance(type_, Enum) or type_.kind in {"int", "long"}:
        return _varint
    return _text


def _width(size: int) -> Skip:
    return lambda _, pos: pos + size


def _varint(value: bytes, pos: int) -> int:
    while value[pos] > _LOW:
        pos += 1
    return pos + 1


def _text(value: bytes, pos: int) -> int:
    size, pos = read_long(value, pos)
    if not 0 <= size <= len(value) - pos:
        raise CorruptError
    return pos + size


def _all(parts: list[Skip]) -> Skip:
    def skip(value: bytes, pos: int) -> int:
        for part in parts:
            pos = part(value, pos)
        return pos

    return skip


def _one_of(branches: list[Skip]) -> Skip:
    def skip(value: bytes, pos: int) -> int:
        number, pos = read_long(value, pos)
        if not 0 <= number < len(branches):
            raise CorruptError
        return branches[number](value, pos)

    return skip


def _blocks(item: Skip) -> Skip:
    def skip(value: bytes, pos: int) -> int:
        while True:
            count, pos = read_long(value, pos)
            if count == 0:
                return pos
            if count < 0:
                count, (_, pos) = -count, read_long(value, pos)
            if count > MOST_ITEMS:
                raise CorruptError
            for _ in range(count):
                pos = item(value, pos)

    return skip
