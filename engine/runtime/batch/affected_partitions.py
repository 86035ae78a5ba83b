"""The partitions of a table that hold rows that may have changed, and their values as Iceberg computes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.lake import table_writer as lake
from engine.lake.changes.file_replacement import FieldValues, listed_files, replace_files
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.table_layout import same_partitions
from engine.lake.table_writer import literal
from engine.relations import Partition, quoted
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, commit_nothing
from engine.runtime.sinks import table_setup
from engine.times import CYCLE_DAYS, CYCLE_YEARS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Values = tuple[str | None, ...]
_FUNCTIONS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_CAST_TYPES = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double"}
_DAY = 86_400_000_000
_MICROSECONDS = {"day": _DAY, "hour": 3_600_000_000}
# Of a time that Spark has, in microseconds.
_MAX_MICROSECONDS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Partitions of a table, by the values of their fields, as text (see `as_text`); None: NULL."""

    parts: tuple[Partition, ...]
    types: tuple[str, ...]
    values: tuple[Values, ...]

    def condition(self, expressions: Sequence[str]) -> str:
        if len(self.parts) == 1:
            return self._field_condition(expressions[0], [values[0] for values in self.values], 0)
        each = (
            " AND ".join(self._field_condition(text, [values[i]], i) for i, text in enumerate(expressions))
            for values in self.values
        )
        return " OR ".join(f"({each_condition})" for each_condition in each)

    def _field_condition(self, expression: str, texts: Sequence[str | None], index: int) -> str:
        literals = ", ".join(as_literal(text, self.types[index]) for text in texts if text is not None)
        conditions = [f"{expression} IN ({literals})"] if literals else []
        conditions += [f"{expression} IS NULL"] if None in texts else []
        return f"({' OR '.join(conditions)})"

    def ranges(self, column_types: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Return by column in which ranges its times are, from and to as SQL, where that follows from `where`."""
        by_column: dict[str, list[tuple[str, str]]] = {}
        for index, (part, kind) in enumerate(zip(self.parts, column_types, strict=True)):
            texts = {values[index] for values in self.values}
            if part.transform not in _FUNCTIONS or None in texts or kind not in {"timestamp", "date"}:
                continue
            spans = _merge_spans(_span(part.transform, int(text)) for text in texts if text is not None)
            if any(abs(end) > _MAX_MICROSECONDS for span in spans for end in span):
                continue
            make = _timestamp if kind == "timestamp" else _date
            by_column[part.column.lower()] = [(make(begin), make(end)) for begin, end in spans]
        return by_column


def field_sql(part: Partition, catalog: str) -> str:
    column = quoted(part.column)
    if part.transform == "identity":
        return column
    name = _FUNCTIONS.get(part.transform, part.transform)
    number = f"{part.number}, " if part.number is not None else ""
    return f"{quoted(catalog)}.system.{name}({number}{column})"


def partition_values(
    rows: DataFrame, parts: Sequence[Partition], catalog: str, max_partitions: int
) -> PartitionValues | None:
    """Return the partitions of some rows; None: more than `max_partitions`, or of values that have no literal."""
    fields = rows.selectExpr(*(f"{field_sql(part, catalog)} AS p{i}" for i, part in enumerate(parts)))
    types = tuple(field.dataType.simpleString() for field in fields.schema.fields)
    if any(as_text("x", kind) is None for kind in types):
        return None
    texts = fields.selectExpr(*(f"{as_text(f'p{i}', kind)} AS p{i}" for i, kind in enumerate(types)))
    rows_found = texts.distinct().limit(max_partitions + 1).collect()
    if len(rows_found) > max_partitions:
        return None
    return PartitionValues(tuple(parts), types, tuple(tuple(row) for row in rows_found))


def as_text(column: str, kind: str) -> str | None:
    """Return SQL for a value as text that can be read back as the same value; None: there is none for its type."""
    if kind in _CAST_TYPES or kind == "string" or kind.startswith("decimal"):
        return f"CAST({column} AS string)"
    return {"date": f"CAST(unix_date({column}) AS string)", "timestamp": f"CAST(unix_micros({column}) AS string)",
            "binary": f"hex({column})"}.get(kind)  # fmt: skip


def as_literal(text: str, kind: str) -> str:
    if kind == "string":
        return literal(text)
    if kind == "binary":
        return f"X'{text}'"
    return {"date": f"date_from_unix_date({text})", "timestamp": f"timestamp_micros({text})"}.get(
        kind, f"CAST('{text}' AS {kind})"
    )


def _span(transform: str, value: int) -> tuple[int, int]:
    """Begin and end (exclusive) of a partition by time, in microseconds; all count from 1970.

    Not by `datetime`, which ends with the year 9999: milliseconds that were read as seconds are in the year 50000.
    """
    if transform in _MICROSECONDS:
        return value * _MICROSECONDS[transform], (value + 1) * _MICROSECONDS[transform]
    months, length = (value * 12, 12) if transform == "year" else (value, 1)
    return _month(months) * _DAY, _month(months + length) * _DAY


def _month(number: int) -> int:
    years, month = divmod(number, 12)
    cycles, year = divmod(1970 + years - 2000, CYCLE_YEARS)
    return (date(2000 + year, month + 1, 1) - date(1970, 1, 1)).days + cycles * CYCLE_DAYS


def _merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and merged[-1][1] == begin:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def _timestamp(at: int) -> str:
    return f"timestamp_micros({at})"


def _date(at: int) -> str:
    return f"date_from_unix_date({at // _DAY})"


# Partitions that are named in conditions; more are not a small part of a table.
_MAX_PARTITIONS = 1_000
_MAX_REPLACED_SHARE, _FEW_PARTITIONS = 0.5, 4
# Types of partition fields, as Spark prints them, whose values have one text here and in `listed_files`.
_LISTED = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "string", "date", "timestamp"})


def affected_partitions(changes: FollowedChanges) -> Affected:
    """Find the partitions that may have changed, and compute them with literal conditions.

    Raises:
        FullRefreshError: all of the table has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    session, model, table = changes.session, changes.model, changes.table
    relation, parts, catalog = model.relation.sql, model.write.partition_by, model.relation.catalog
    current = lake.load(session, relation)
    if not same_partitions(current, table_setup.layout(model, 1)):
        raise FullRefreshError("the table is not partitioned as 'partition_by' declares")
    keys = list(dict.fromkeys(part.column.lower() for part in parts))
    affected_rows = changes.affected_values(keys)
    values = partition_values(affected_rows, parts, catalog, _MAX_PARTITIONS)
    if values is None:
        raise FullRefreshError(f"more than {_MAX_PARTITIONS:,} partitions are affected")
    files = _files(changes, values)
    spec = int(current.spec().specId())
    if any(file.spec != spec for file in files):
        raise FullRefreshError("the table has files of an earlier partitioning")
    total = len({file.partition for file in files})
    if not values.values:
        return Affected(None, commit_nothing, f"no row of it is affected, 0 of {total:,} partitions")
    replaced_files = frozenset(file.path for file in files if file.affected)
    replaced_count = len({file.partition for file in files if file.affected})
    if changes.auto and total > _FEW_PARTITIONS and replaced_count > _MAX_REPLACED_SHARE * total:
        raise FullRefreshError(f"{replaced_count:,} of {total:,} partitions are affected")
    ranges = values.ranges([changes.types[part.column.lower()] for part in parts])
    frame = changes.current_rows(ranges, {part.column.lower(): part.transform for part in parts})
    for column, column_spans in ranges.items():
        spans = (f"({quoted(column)} >= {low} AND {quoted(column)} < {high})" for low, high in column_spans)
        frame = frame.where(" OR ".join(spans))
    # The ranges of one time say all; Iceberg's functions are computed row by row.
    if len(parts) > 1 or not ranges:
        frame = frame.where(f"({values.condition([field_sql(part, catalog) for part in parts])})")
    expected = ExpectedTable(model.name, table.uuid, table.snapshot)

    def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        staged = lake.stage(fitted, relation, model.write.write_options)
        if not staged.files and not replaced_files:
            return None
        first = FieldValues(parts[0], values.types[0], sorted({each[0] for each in values.values}, key=str))
        return replace_files(staged, replaced_files, markers, expected, first)

    number = len(values.values)
    return Affected(frame, commit, f"refreshed {number:,} of {total + number - replaced_count:,} partitions")


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    spec: int
    partition: tuple[Any, ...]
    affected: bool


def _files(changes: FollowedChanges, values: PartitionValues) -> list[_File]:
    relation, affected = changes.model.relation, frozenset(values.values)
    if _LISTED.issuperset(values.types):
        listed = listed_files(changes.lake, relation.schema, relation.name, changes.table.snapshot)
        if listed is not None:
            return [_File(file.path, file.spec, file.partition, file.partition in affected) for file in listed]
    names = [f"partition.{quoted(part.field_name)}" for part in values.parts]
    among = values.condition(names) if values.values else "false"
    columns = f"file_path, spec_id, partition, coalesce({among}, false) AS affected"
    rows = changes.session.sql(f"SELECT {columns} FROM {relation.sql}.data_files").collect()  # noqa: S608 - quoted
    return [_File(*row) for row in rows]
