"""How the columns of a query fit those of an existing table.

Columns are matched by name in any letter case, as Spark resolves them; the table's spelling stays. Types are compared
through all levels of structs, arrays and maps. Spark would cast on write (ANSI store assignment: 1.25 becomes 1, a
timestamp a date, a number a string), silently; so a type that differs is one of three:

* the query's is narrower and each of its values is one of the table's type as well: written as it is;
* the query's is wider by a promotion that Iceberg knows: the table is altered first;
* anything else: incompatible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.lake.table_layout import iceberg_schema
from engine.lake.table_writer import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, DecimalType, StructType

# By the narrower type: the wider one to which Iceberg promotes it.
_PROMOTIONS = {"int": "bigint", "float": "double"}


@dataclass(frozen=True, slots=True)
class TypeDifference:
    """A column whose type is not the table's.

    Attributes:
        path: its name in the table; nested ones as `data.id`, `ids.element`, `totals.key`, `totals.value`.
        table: the type in the table, as Spark prints it.
        query: the type in the query.
    """

    path: str
    table: str
    query: str


@dataclass(frozen=True, slots=True)
class SchemaMatch:
    """The columns of a query beside those of a table.

    Attributes:
        names: the query's columns in their order, as the table spells them.
        added: columns and nested fields that the table lacks, by path.
        missing: nested fields of the table that the query lacks, by path.
        gone: columns of the table that the query lacks: they are NULL in its rows.
        promoted: columns that the table must widen first.
        incompatible: columns whose values the table cannot hold as they are.
    """

    names: tuple[str, ...]
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    promoted: tuple[TypeDifference, ...] = ()
    incompatible: tuple[TypeDifference, ...] = ()

    @property
    def added_fields(self) -> tuple[str, ...]:
        """The nested fields among those that the table lacks."""
        return tuple(path for path in self.added if path not in self.names)

    @property
    def alters(self) -> bool:
        """Whether the table must change for all columns of the query to be written."""
        return bool(self.added or self.promoted)


def match_table(frame: DataFrame, relation: str) -> SchemaMatch:
    """Compare the columns of a frame with those of an existing table, both as Iceberg stores them.

    Args:
        frame: streaming or not.
        relation: the table, quoted.
    """
    session = frame.sparkSession
    table = load(session, relation).schema()
    return match(_stored(session, iceberg_schema(session, frame)), _stored(session, table))


def _stored(session: SparkSession, schema: Any) -> StructType:
    """An Iceberg schema as Spark reads it: tinyint is int there, varchar is string."""
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    convert = session._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert  # type: ignore[union-attr] # noqa: SLF001
    read = _parse_datatype_json_string(convert(schema).json())
    if not isinstance(read, StructType):
        raise TypeError(schema)
    return read


def match(query: StructType, table: StructType) -> SchemaMatch:
    """Compare the columns of a query with those of a table."""
    found = _Findings()
    known = {column.name.lower(): column for column in table.fields}
    names = []
    for column in query.fields:
        own = known.get(column.name.lower())
        names.append(own.name if own else column.name)
        if own is None:
            found.added.append(column.name)
        else:
            _compare(own.name, own.dataType, column.dataType, found)
    given = {column.name.lower() for column in query.fields}
    return SchemaMatch(
        tuple(names),
        tuple(found.added),
        tuple(found.missing),
        tuple(column.name for name, column in known.items() if name not in given),
        tuple(found.promoted),
        tuple(found.incompatible),
    )


@dataclass(slots=True)
class _Findings:
    added: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    promoted: list[TypeDifference] = field(default_factory=list)
    incompatible: list[TypeDifference] = field(default_factory=list)


def _compare(path: str, table: DataType, query: DataType, found: _Findings) -> None:
    from pyspark.sql import types as t

    if isinstance(table, t.StructType) and isinstance(query, t.StructType):
        _compare_fields(path, table, query, found)
    elif isinstance(table, t.ArrayType) and isinstance(query, t.ArrayType):
        _compare(f"{path}.element", table.elementType, query.elementType, found)
    elif isinstance(table, t.MapType) and isinstance(query, t.MapType):
        _compare_keys(f"{path}.key", table.keyType, query.keyType, found)
        _compare(f"{path}.value", table.valueType, query.valueType, found)
    elif not _fits(query, table):
        difference = TypeDifference(path, table.simpleString(), query.simpleString())
        (found.promoted if _widens(table, query) else found.incompatible).append(difference)


def _compare_fields(path: str, table: StructType, query: StructType, found: _Findings) -> None:
    known = {part.name.lower(): part for part in table.fields}
    given = {part.name.lower(): part for part in query.fields}
    for name, part in given.items():
        own = known.get(name)
        if own is None:
            found.added.append(f"{path}.{part.name}")
        else:
            _compare(f"{path}.{own.name}", own.dataType, part.dataType, found)
    found.missing += [f"{path}.{part.name}" for name, part in known.items() if name not in given]


def _compare_keys(path: str, table: DataType, query: DataType, found: _Findings) -> None:
    """Compare the keys of a map, which Iceberg neither promotes nor extends."""
    inside = _Findings()
    _compare(path, table, query, inside)
    if inside.added or inside.missing or inside.promoted or inside.incompatible:
        found.incompatible.append(TypeDifference(path, table.simpleString(), query.simpleString()))


def _fits(query: DataType, table: DataType) -> bool:
    """Whether each value of the query's type is a value of the table's: the same, narrower, or always NULL."""
    from pyspark.sql import types as t

    same = query.simpleString() == table.simpleString()
    return same or isinstance(query, t.NullType) or _widens(query, table)


def _widens(narrow: DataType, wide: DataType) -> bool:
    """Whether Iceberg promotes one type to the other."""
    from pyspark.sql import types as t

    if isinstance(narrow, t.DecimalType) and isinstance(wide, t.DecimalType):
        return _digits(narrow)[1] == _digits(wide)[1] and _digits(narrow)[0] < _digits(wide)[0]
    return _PROMOTIONS.get(narrow.simpleString()) == wide.simpleString()


def _digits(kind: DecimalType) -> tuple[int, int]:
    return kind.precision, kind.scale


def same_names(columns: Iterable[str]) -> tuple[str, ...]:
    """The names that several columns have, if letter case makes no difference."""
    names = list(columns)
    counts = Counter(name.lower() for name in names)
    return tuple(name for name in names if counts[name.lower()] > 1)


def spelled(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """The frame with its columns named as in `names`, which differ in letter case only."""
    wanted = list(names)
    return frame if frame.columns == wanted else frame.toDF(*wanted)
