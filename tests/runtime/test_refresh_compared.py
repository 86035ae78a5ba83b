"""What two snapshots of a table differ by, compared in this process, is what Spark finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from engine.lake.changes.arrow_changes import DifferingFiles, differing_files
from engine.lake.changes.file_replacement import FieldValues, listed_files, partition_condition
from engine.lake.changes.snapshot_changes import SIDE, changed_files, forget_files, net_changes
from engine.lake.table_writer import load
from engine.relations import Partition
from engine.runtime.batch.affected_partitions import _LISTED, partition_values
from engine.spark.internals.handles import each
from tests.lab import Lab

pytestmark = pytest.mark.spark

# Columns of each type that Arrow compares, and expressions for their values.
_TYPES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false", "null"),
    "int": ("0", "1", "null"),
    "bigint": ("1", "9223372036854775807", "null"),
    "float": ("0.0F", "float('-0.0')", "float('NaN')", "null"),
    "double": ("0.0D", "double('-0.0')", "double('NaN')", "null"),
    "decimal(20, 3)": ("1.5", "1.500", "null"),
    "string": ("'a'", "'A'", "''", "null"),
    "binary": ("X'00'", "X''", "null"),
    "date": ("date'0001-01-01'", "date'2024-02-29'", "null"),
    "timestamp": ("timestamp'1600-01-01 00:00:00.000001'", "timestamp'2024-10-27 01:30:00'", "null"),
    "timestamp_ntz": ("timestamp_ntz'2024-10-27 02:30:00'", "null"),
}
_COLUMNS = {f"c{number}": kind for number, kind in enumerate(_TYPES)}


def _row(chance: random.Random, number: int) -> str:
    return ", ".join([str(number), *(f"cast({chance.choice(_TYPES[kind])} as {kind})" for kind in _COLUMNS.values())])


def _rows(frame: Any) -> Counter[str]:
    return Counter(_text(row) for row in frame.collect())


def _text(row: Sequence[Any]) -> str:
    """A row; Spark's GROUP BY gives 0.0 for -0.0, which it counts apart all the same."""
    return str(tuple(row)).replace("-0.0", "0.0")


def _by_spark(lab: Lab, table: str, before: int, after: int, columns: Sequence[str]) -> tuple[Counter[str], ...]:
    spark = lab.session.spark  # type: ignore[union-attr]
    files = changed_files(spark, table, before, after)
    with ExitStack() as stack:
        stack.callback(forget_files, spark, files)
        rows = [] if files.none else net_changes(spark, files, columns).collect()
    sides = [[row for row in rows if (row[SIDE] > 0) == added] for added in (False, True)]
    return tuple(Counter(_text(row[:-1]) for row in side) for side in sides)


@pytest.mark.nightly_except("2-merge-on-read")
@pytest.mark.parametrize(("version", "mode"), [(2, "merge-on-read"), (2, "copy-on-write"), (3, "merge-on-read")])
def test_rows_of_every_plain_type_are_compared_as_spark_compares_them(lab: Lab, version: int, mode: str) -> None:
    lab.model("other", "select 1 as one\n")
    lab.build()
    spark, chance = lab.session.spark, random.Random(f"{version}{mode}")  # type: ignore[union-attr]
    name = f"lake.{lab.schema}.compared"
    declared = ", ".join(f"{column} {kind}" for column, kind in _COLUMNS.items())
    modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    spark.sql(
        f"create table {name} (id int, {declared}) using iceberg partitioned by (bucket(3, id)) "
        f"tblproperties ('format-version' = '{version}', {modes})"
    )
    for number in range(40):
        if number % 8 == 0:
            spark.sql(
                f"insert into {name} values " + ", ".join(f"({_row(chance, n)})" for n in range(number, number + 8))
            )
    for step in range(6):
        picked = ", ".join(map(str, chance.sample(range(40), 6)))
        changes = ", ".join(
            f"{column} = cast({chance.choice(_TYPES[kind])} as {kind})" for column, kind in _COLUMNS.items()
        )
        spark.sql(
            f"update {name} set {changes} where id in ({picked})"
            if step % 3
            else f"delete from {name} where id in ({picked})"
        )
    spark.sql(f"call lake.system.rewrite_data_files(table => '{name[5:]}', options => map('rewrite-all', 'true'))")
    snapshots = [
        row[0] for row in spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at").collect()
    ]
    found = 0
    for before, after in [(chance.choice(snapshots), chance.choice(snapshots)) for _ in range(5)]:
        columns = chance.sample(sorted(_COLUMNS), chance.randint(1, 4))
        files = differing_files(lab._lake(), lab.schema, "compared", before, after)
        assert isinstance(files, DifferingFiles)
        net = files.net_rows(columns)
        assert net is not None
        schema = spark.table(name).select(*columns).schema
        ours = tuple(_rows(spark.createDataFrame(side, schema)) for side in (net.removed, net.added))
        assert ours == _by_spark(lab, name, before, after, columns), (before, after, columns)
        found += sum(map(len, ours))
    assert found


@pytest.mark.nightly_cases("2")
@pytest.mark.parametrize("version", [2, 3])
def test_files_that_no_change_touched_are_not_read(lab: Lab, version: int) -> None:
    """Deletion vectors of one data file are not those of its neighbours."""
    lab.model("other", "select 1 as one\n")
    lab.build()
    spark, name = lab.session.spark, f"lake.{lab.schema}.files"  # type: ignore[union-attr]
    spark.sql(
        f"create table {name} (id int, v int) using iceberg tblproperties ('format-version' = '{version}', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    for file in range(4):
        spark.sql(f"insert into {name} select /*+ coalesce(1) */ id, 0 from range({file * 10}, {file * 10 + 10})")
    spark.sql(f"delete from {name} where id in (1, 11, 21)")
    before = lab.snapshot("files")
    assert before
    spark.sql(f"delete from {name} where id in (2, 12)")
    spark.sql(f"insert into {name} values (100, 0)")
    files = differing_files(lab._lake(), lab.schema, "files", before, lab.snapshot("files") or 0)
    assert files is not None
    assert (len(files.before), len(files.after), files.rows, files.total) == (2, 3, 41, 41)
    net = files.net_rows(["id"])
    assert net is not None
    assert sorted(net.removed["id"].to_pylist()) == [2, 12]
    assert net.added["id"].to_pylist() == [100]


def test_what_it_cannot_compare_is_left_to_spark(lab: Lab) -> None:
    lab.model("other", "select 1 as one\n")
    lab.build()
    spark, name = lab.session.spark, f"lake.{lab.schema}.nested"  # type: ignore[union-attr]
    spark.sql(f"create table {name} (id int, s struct<a int>) using iceberg")
    spark.sql(f"insert into {name} values (1, named_struct('a', 1))")
    before = lab.snapshot("nested") or 0
    spark.sql(f"insert into {name} values (2, named_struct('a', 1))")
    files = differing_files(lab._lake(), lab.schema, "nested", before, lab.snapshot("nested") or 0)
    assert files is not None
    assert files.net_rows(["id", "s"]) is None
    assert files.net_rows(["id"]) is not None
    # Rows of files from before a column stand for its default.
    spark.sql(f"alter table {name} set tblproperties ('format-version' = '3')")
    iceberg = spark._jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    late = "late", iceberg.types.Types.IntegerType.get(), iceberg.expressions.Expressions.lit(7)
    table.updateSchema().addColumn(*late).commit()
    files = differing_files(lab._lake(), lab.schema, "nested", before, lab.snapshot("nested") or 0)
    assert files is not None
    assert files.net_rows(["id", "late"]) is None
    assert differing_files(lab._lake(), lab.schema, "nested", before, 1) is None
    assert differing_files(lab._lake(), lab.schema, "missing", before, 1) is None


def test_partitions_of_files_are_the_values_that_spark_computes(lab: Lab) -> None:
    """Each kind of partition field: what is listed here decides which files are replaced."""
    lab.model("other", "select 1 as one\n")
    lab.build()
    spark, name = lab.session.spark, f"lake.{lab.schema}.parted"  # type: ignore[union-attr]
    parts = [
        Partition("year", "d"), Partition("month", "t"), Partition("day", "t"), Partition("hour", "t"),
        Partition("bucket", "s", 5), Partition("truncate", "s", 1), Partition("truncate", "n", 10),
        Partition("identity", "d"), Partition("identity", "t"), Partition("identity", "s"), Partition("identity", "b"),
    ]  # fmt: skip
    fields = ["years(d)", "bucket(5, s)", "truncate(1, s)", "truncate(10, n)", "d", "s", "b"]
    rows = (
        "(date'1969-12-31', timestamp'1969-12-31 23:59:59.999999', 'ä b/c=%', -1, true), (null, null, null, null, null)"
    )
    rows += ", (date'2024-02-29', timestamp'2024-02-29 12:00:00', '', 25, false)"
    for number, field in enumerate([*fields, "months(t)", "days(t)", "hours(t)", "t"]):
        table = f"{name}{number}"
        spark.sql(
            f"create table {table} (d date, t timestamp, s string, n bigint, b boolean) using iceberg partitioned by ({field})"
        )
        spark.sql(f"insert into {table} values {rows}")
        part = next(p for p in parts if _written(p) == field)
        values = partition_values(spark.table(table), [part], "lake", 100)
        assert values is not None
        assert _LISTED.issuperset(values.types)
        listed = listed_files(lab._lake(), lab.schema, f"parted{number}", lab.snapshot(f"parted{number}"))
        assert listed is not None
        assert sorted({one.partition for one in listed}, key=str) == sorted(values.values, key=str), field
        # Of the files of a partition, the same are found in Java.
        java = load(spark, table)
        for each_value in values.values:
            condition = partition_condition(spark, java, FieldValues(part, values.types[0], each_value))
            if each_value[0] is None or values.types[0] in {"boolean", "timestamp"}:
                assert condition is None
                continue
            found = [str(task.file().location()) for task in each(java.newScan().filter(condition).planFiles())]
            assert found == [one.path for one in listed if one.partition == each_value], (field, each_value)


def _written(part: Partition) -> str:
    names = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
    if part.transform == "identity":
        return part.column
    number = f"{part.number}, " if part.number else ""
    return f"{names.get(part.transform, part.transform)}({number}{part.column})"
