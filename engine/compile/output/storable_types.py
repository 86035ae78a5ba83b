"""Columns that no Iceberg table holds, and partition fields and orders that do not fit the type of their column.

Measured with Spark 4.1.4 and Iceberg 1.12.0, format versions 2 and 3 (tests/compile/fixtures/storable.json). Where the
types of a query are not known, a build checks again before it writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.compile.nodes.manifest import Model
from engine.compile.types import spark_types
from engine.errors import Diagnostic, Location
from engine.relations import Partition

_DEFAULT_VERSION = 2
_VARIANT_VERSION = 3
_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_DAYS = {"date", "timestamp", "timestamp_ntz"}
_CUT = {*_WHOLE, "decimal", "string", "binary"}
# What a transform takes; a decimal counts by its name, and what is not here takes every type that is not a container.
_TAKES: Mapping[str, frozenset[str]] = {
    "year": frozenset(_DAYS),
    "month": frozenset(_DAYS),
    "day": frozenset(_DAYS),
    "hour": frozenset(_DAYS - {"date"}),
    "bucket": frozenset(_CUT | _DAYS),
    "truncate": frozenset(_CUT),
}
_CONTAINERS = ("array<", "map<", "struct<", "variant")
_WORDS = re.compile(r"\bvoid\b")
_COLLATED = re.compile(r"\bstring collate \w+", re.IGNORECASE)
# Characters of an expression that a hint repeats, and of a type.
_SHOWN, _LONGEST = 60, 200


@dataclass(frozen=True, slots=True)
class GivenColumn:
    """A column that a query gives: its type (None: unknown), and its SQL as written (empty: unknown)."""

    name: str
    type: str | None
    sql: str = ""


@dataclass(frozen=True, slots=True)
class _Unfit:
    """A part of a column that a table cannot hold; `whole` is the column's type, with what else is in it."""

    path: str
    type: str
    whole: str


def storable_faults(
    model: Model, returned: Sequence[GivenColumn], place: Callable[[int], Location] | None = None
) -> Iterator[Diagnostic]:
    """Return what of a model's columns its table cannot hold, partition or sort; an unknown type is not a fault.

    `place` gives the place of the column of a number; None: only the file is known.
    """
    if not model.in_catalog:
        return
    view = model.computed_when_read
    version, out = None if view else _version(model), {name.lower() for name in model.write.exclude}
    types = {
        column.name.lower(): _without_collation(column.type) for column in returned if column.name.lower() not in out
    }
    alone = version is not None and set(types.values()) == {"void"}
    for index, column in enumerate(returned):
        type_ = types.get(column.name.lower())
        unfit = next(_unfit_parts(column.name, type_, type_, version, alone=alone), None) if type_ else None
        if unfit is not None:
            holder = "a view" if view else "an Iceberg table"
            message = f"the column '{unfit.path}' is {_describe_type(unfit.type)}, which {holder} cannot hold"
            if unfit.type == "variant":
                message = f"the column '{unfit.path}' is variant, which needs 'format_version: {_VARIANT_VERSION}'"
            where = place(index) if place is not None else Location(model.file)
            yield Diagnostic("column-storage", message, _fix(column, unfit), node=model.name, location=where)
    yield from _layout_faults(model, types)


def _without_collation(type_: str | None) -> str | None:
    """A type in one form; how strings compare is nothing that a table holds."""
    return spark_types.normal(_COLLATED.sub("string", type_)) if type_ else None


def _version(model: Model) -> int:
    text = str(model.write.format_version or model.write.table_properties.get("format-version", _DEFAULT_VERSION))
    return int(text) if text.isdecimal() else _DEFAULT_VERSION


def _unfit_parts(path: str, type_: str, whole: str, version: int | None, *, alone: bool = True) -> Iterator[_Unfit]:
    """Yield the parts of a type that a table cannot hold.

    `version` None: it is a view, which stores no values. `alone`: no column or field beside it has a value, so that
    files would have nothing to hold.
    """
    if (inner := spark_types.element(type_)) is not None:
        yield from _unfit_parts(f"{path}.element", inner, whole, version)
    elif type_.startswith("map<"):
        key, value = spark_types.entry(type_)
        yield from _unfit_parts(f"{path}.key", key or "", whole, version or _DEFAULT_VERSION)
        yield from _unfit_parts(f"{path}.value", value or "", whole, version)
    elif (members := spark_types.fields(type_)) is not None:
        names = {name.lower() for name, _ in members}
        if version is not None and (not members or len(names) < len(members)):
            yield _Unfit(path, type_, whole)
        empty = {part for _, part in members} == {"void"}
        for name, part in members:
            yield from _unfit_parts(f"{path}.{name}", part, whole, version, alone=empty)
    elif type_.startswith(("interval", "time(")) or _needs_more(type_, version, alone=alone):
        yield _Unfit(path, type_, whole)


def _needs_more(type_: str, version: int | None, *, alone: bool) -> bool:
    """Whether a type needs another version of the format, or a column or field beside it."""
    if version is None or type_ not in {"void", "variant"}:
        return False
    return version < _VARIANT_VERSION or (type_ == "void" and alone)


def _describe_type(type_: str) -> str:
    if type_ == "void":
        return "void (NULL without a type)"
    if type_ == "struct<>":
        return "a struct without fields"
    return "a struct with two fields of one name" if type_.startswith("struct<") else type_


def _short(type_: str) -> str:
    return type_ if len(type_) <= _LONGEST else f"{type_[:_LONGEST]}..."


def _fix(column: GivenColumn, unfit: _Unfit) -> str:
    """How to store a column of such a type."""
    sql = column.sql if column.sql and len(column.sql) <= _SHOWN and column.sql != "*" else "..."
    name = spark_types.quote_name(column.name)
    inside = unfit.type != unfit.whole
    if unfit.type == "void":
        return f"Give it a type: cast({sql} as {_short(_WORDS.sub('string', unfit.whole))}) as {name}."
    if unfit.type == "variant":
        text = "to_json(..) of that part" if inside else f"to_json({sql}) as {name}"
        return f"Set 'format_version: {_VARIANT_VERSION}', or store it as a string: {text}."
    if unfit.type.startswith("struct<"):
        return "Give it a field, or remove it." if unfit.type == "struct<>" else "Give one of them another name."
    if inside:
        return f"Cast that part: cast(.. as string), or remove it. The column is {_short(unfit.whole)}."
    number = _number(unfit.type, sql)
    text = f"Store it as a string: cast({sql} as string) as {name}"
    return f"{text}; or as a number: {number} as {name}." if number else f"{text}."


def _number(type_: str, sql: str) -> str:
    """An interval as a number; empty where it has none."""
    units = type_.removeprefix("interval").split()
    if not units:
        return ""
    if units[-1] in {"year", "month"}:
        return f"cast(cast({sql} as interval month) as int)"
    return f"cast(cast({sql} as interval second) as decimal(18, 6))" if units[0] != "interval" else ""


def _layout_faults(model: Model, types: Mapping[str, str | None]) -> Iterator[Diagnostic]:
    """Fields of `partition_by` and `sort_by` that do not fit the type of their column."""
    for part in model.write.partition_by:
        type_ = types.get(part.column.lower())
        if type_ is not None and not _takes_type(part.transform, type_):
            field = _text(part)
            message = f"'partition_by' cannot take {field}: '{part.column}' is {_short(type_)}"
            yield _layout_fault(model, "partition_by", message, _fitting_field(part, type_))
    for sort in model.write.sort_by:
        type_ = types.get(sort.column.lower())
        if type_ is not None and type_.startswith(_CONTAINERS):
            message = f"'sort_by' cannot order by '{sort.column}', which is {_short(type_)}"
            yield _layout_fault(model, "sort_by", message, "Sort by a column that is not a struct, array or map.")


def _takes_type(transform: str, type_: str) -> bool:
    base = type_.partition("(")[0]
    if transform in _TAKES:
        return base in _TAKES[transform] or _is_reported_elsewhere(type_)
    return not type_.startswith(_CONTAINERS)


def _is_reported_elsewhere(type_: str) -> bool:
    return type_.startswith(("interval", "time("))


def _text(part: Partition) -> str:
    if part.transform == "identity":
        return part.column
    return f"{part.transform}({part.column if part.number is None else f'{part.number}, {part.column}'})"


def _fitting_field(part: Partition, type_: str) -> str:
    column = spark_types.quote_name(part.column)
    fitting = [name for name in ("day", "hour", "bucket", "truncate") if _takes_type(name, type_)]
    if type_.startswith(_CONTAINERS):
        return "Partition by a column that is not a struct, array or map: select a field of it as a column."
    if part.transform in {"year", "month", "day", "hour"} and "day" not in fitting:
        return f"Partition by a date or timestamp: select cast({column} as timestamp) as a column."
    if fitting and part.transform != "identity":
        forms = {"day": f"day({column})", "hour": f"hour({column})"}
        return f"Write {' or '.join(forms.get(name, f'{name}(16, {column})') for name in fitting)}, or {column} itself."
    return f"Write {column} itself, or cast it: cast({column} as bigint) as a column."


def _layout_fault(model: Model, key: str, message: str, hint: str) -> Diagnostic:
    place = model.positions.settings.get(key) or Location(model.file)
    return Diagnostic("partition-type", message, hint, node=model.name, location=place)
