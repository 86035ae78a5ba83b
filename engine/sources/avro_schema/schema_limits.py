"""How large a schema may be once its named types are written out wherever they are used.

Thirty records that use the next twice have 10^9 columns: sizes are added up from the inner types, without writing out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.sources.avro_schema.avro_types import Array, AvroError, AvroUnion, Map, NamedReference, Record, Schema, Type

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
