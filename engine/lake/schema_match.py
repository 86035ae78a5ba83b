"""How the columns of a query fit those of an existing table.

Columns match by name in any letter case; the table's spelling stays. Spark would cast on write, silently (ANSI store
assignment: 1.25 becomes 1), so a type that differs, at any depth, is (1) narrower than the table's, each value of it
one of the table's: written as it is; (2) wider by a promotion of Iceberg's: the table is altered first; or (3)
incompatible.

Schemas are documents as Spark's JSON has them (`StructType.jsonValue()`): no Java is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# A type: a name, or a struct, array or map.
Document = str | Mapping[str, Any]
# A column, or a field in one: the names on the way to it. A name may have a dot, so paths are joined only to be shown.
Path = tuple[str, ...]
# Names of types in SQL where those of the JSON are others.
_OF_SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
# By the narrower type: the wider one to which Iceberg promotes it.
_PROMOTIONS = {"int": "bigint", "float": "double"}
_IDENTIFIER = re.compile(r"\w+")
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True, slots=True)
class TypeDifference:
    """`path` of nested types ends in element, key or value: (ids, element), (totals, key)."""

    path: Path
    table: str
    query: str


@dataclass(frozen=True, slots=True)
class SchemaMatch:
    """The columns of a query beside those of a table.

    `names` are the query's in order, as the table spells them. By path, `added` are columns and fields that the table
    lacks, `missing` fields that the query lacks. `dropped` columns of the table are NULL in the query's rows.
    `promoted` ones must be widened first; values of `incompatible` ones cannot be held as they are.
    """

    names: tuple[str, ...]
    added: tuple[Path, ...] = ()
    missing: tuple[Path, ...] = ()
    dropped: tuple[str, ...] = ()
    promoted: tuple[TypeDifference, ...] = ()
    incompatible: tuple[TypeDifference, ...] = ()

    @property
    def added_columns(self) -> tuple[str, ...]:
        return tuple(path[0] for path in self.added if len(path) == 1)

    @property
    def added_fields(self) -> tuple[Path, ...]:
        return tuple(path for path in self.added if len(path) > 1)

    @property
    def alters(self) -> bool:
        return bool(self.added or self.promoted)


def match(query: Mapping[str, Any], table: Mapping[str, Any]) -> SchemaMatch:
    findings = _Findings()
    table_columns = _by_name(table)
    names = []
    for column in query["fields"]:
        table_column = table_columns.get(column["name"].lower())
        names.append(table_column["name"] if table_column else column["name"])
        if table_column is None:
            findings.added.append((column["name"],))
        else:
            _compare((table_column["name"],), table_column["type"], column["type"], findings)
    query_columns = _by_name(query)
    return SchemaMatch(
        tuple(names),
        tuple(findings.added),
        tuple(findings.missing),
        tuple(column["name"] for name, column in table_columns.items() if name not in query_columns),
        tuple(findings.promoted),
        tuple(findings.incompatible),
    )


@dataclass(slots=True)
class _Findings:
    added: list[Path] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    promoted: list[TypeDifference] = field(default_factory=list)
    incompatible: list[TypeDifference] = field(default_factory=list)


def _by_name(struct: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {field["name"].lower(): field for field in struct["fields"]}


def _compare(path: Path, table: Document, query: Document, findings: _Findings) -> None:
    if isinstance(table, str) or isinstance(query, str) or table["type"] != query["type"]:
        if not _is_storable(query, table):
            difference = TypeDifference(path, type_text(table), type_text(query))
            (findings.promoted if _widens(table, query) else findings.incompatible).append(difference)
    elif table["type"] == "struct":
        _compare_fields(path, table, query, findings)
    elif table["type"] == "array":
        _compare((*path, "element"), table["elementType"], query["elementType"], findings)
    else:
        _compare_keys((*path, "key"), table["keyType"], query["keyType"], findings)
        _compare((*path, "value"), table["valueType"], query["valueType"], findings)


def _compare_fields(path: Path, table: Mapping[str, Any], query: Mapping[str, Any], findings: _Findings) -> None:
    table_fields, query_fields = _by_name(table), _by_name(query)
    for name, part in query_fields.items():
        table_field = table_fields.get(name)
        if table_field is None:
            findings.added.append((*path, part["name"]))
        else:
            _compare((*path, table_field["name"]), table_field["type"], part["type"], findings)
    findings.missing += [(*path, part["name"]) for name, part in table_fields.items() if name not in query_fields]


def _compare_keys(path: Path, table: Document, query: Document, findings: _Findings) -> None:
    inside = _Findings()
    _compare(path, table, query, inside)
    if inside.added or inside.missing or inside.promoted or inside.incompatible:
        findings.incompatible.append(TypeDifference(path, type_text(table), type_text(query)))


def _is_storable(query: Document, table: Document) -> bool:
    """Whether each value of the query's type is a value of the table's: the same, narrower, or always NULL."""
    return type_text(query) == type_text(table) or query == "void" or _widens(query, table)


def _widens(narrow: Document, wide: Document) -> bool:
    narrow_text, wide_text = type_text(narrow), type_text(wide)
    digits = [_DECIMAL.fullmatch(text) for text in (narrow_text, wide_text)]
    if digits[0] is not None and digits[1] is not None:
        return digits[0][2] == digits[1][2] and int(digits[0][1]) < int(digits[1][1])
    return _PROMOTIONS.get(narrow_text) == wide_text


def type_text(type_: Document) -> str:
    if isinstance(type_, str):
        return _OF_SQL.get(type_, type_)
    match type_["type"]:
        case "struct":
            fields = (f"{field['name']}:{type_text(field['type'])}" for field in type_["fields"])
            return f"struct<{','.join(fields)}>"
        case "array":
            return f"array<{type_text(type_['elementType'])}>"
    return f"map<{type_text(type_['keyType'])},{type_text(type_['valueType'])}>"


def shown_path(path: Path) -> str:
    """Return a path as SQL has it: `data.id`, and names that are not plain in backquotes."""
    return ".".join(name if _IDENTIFIER.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in path)


def duplicate_names(columns: Iterable[str]) -> tuple[str, ...]:
    names = list(columns)
    counts = Counter(name.lower() for name in names)
    return tuple(name for name in names if counts[name.lower()] > 1)
