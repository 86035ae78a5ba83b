"""`engine compare`: how the rows of a table differ from those that it had before, or will have.

Two versions are compared: the staged rows of a model with the table, or the table with what the last
full refresh has replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.compile import Manifest, Model, Target
from engine.errors import RunError, UsageError
from engine.lake.commits import PREVIOUS, STAGED
from engine.lake.lake_reader import Lake
from engine.plan.deployed.generations import PreviousGeneration, previous_generation
from engine.plan.deployed.state_folder import table_state
from engine.relations import quoted
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import Run, command_run
from engine.runtime.lifecycle import publish
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.secrets.scrubber import scrub
from engine.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_HINT = (
    "A full refresh of a streaming table keeps the replaced version for the time of 'keep_previous'; with publish: "
    "on_tests_pass the rows of a build wait if a test fails."
)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of two versions of a table.

    A type (as Spark prints it) is None in the version that lacks the column. `differing`: keys in both with another
    value of it; None: it cannot be compared. `sums`: of a number, in both versions; None: no number, or no rows.
    """

    name: str
    earlier_type: str | None
    later_type: str | None
    differing: int | None = None
    sums: tuple[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """What differs between two versions of a table.

    `rows` counts the earlier and the later version. `key`: columns by which rows are compared; empty: whole rows are.
    `only`: keys, or rows, that one of them has alone, in the same order; None: nothing can be compared. `differing`:
    keys in both whose other columns differ; without a key 0.
    """

    description: str
    rows: tuple[int, int]
    key: tuple[str, ...]
    only: tuple[int, int] | None
    differing: int
    columns: tuple[ComparedColumn, ...]

    @property
    def is_empty(self) -> bool:
        same_types = all(column.earlier_type == column.later_type for column in self.columns)
        return self.rows[0] == self.rows[1] and self.only in {None, (0, 0)} and not self.differing and same_types


def compare(manifest: Manifest, target: Target, root: Path, model: Model, target_dir: Path) -> VersionDifference:
    """Compare two versions of a model's table.

    Raises:
        UsageError: there is nothing to compare it with.
        StateError: `state-unreadable`, `publish-diverged`.
        RunError: `query-failed`.
        SetupError: Spark or the catalog cannot be had.
    """
    folder, replaced_generation = table_state(target, model), _replaced_generation(target, model)
    table = Lake(target.catalog).table(model.relation.schema, model.relation.name)
    staged = table is not None and (STAGED in table.branches or folder.unpublished() is not None)
    if not model.in_catalog or (replaced_generation is None and not staged):
        raise UsageError("usage", f"there is nothing to compare '{model.name}' with", _HINT)
    with spark_session(target, target_dir) as spark:
        return _compared(command_run(manifest, target, root, spark), model)


def _compared(run: Run, model: Model) -> VersionDifference:
    return compare_relations(run.spark.newSession(), model, *_versions(run, model))


def compare_relations(
    session: SparkSession, model: Model, description: str, earlier_sql: str, later_sql: str
) -> VersionDifference:
    """Compare two versions of a model's table, each as SQL reads it; `description`: what they are, in words.

    Raises RunError: `query-failed`.
    """
    key = model.write.unique_key if not model.write.history else ()
    try:
        earlier_rows, later_rows = (session.sql(f"SELECT * FROM {sql}") for sql in (earlier_sql, later_sql))  # noqa: S608 - names of ours
        return _difference(description, earlier_rows, later_rows, key)
    except spark_exceptions() as error:
        message = f"the versions of {model.relation} could not be compared: {scrub(summary(str(error)))}"
        raise RunError("query-failed", message, "Look at target/logs/engine.log.", node=model.name) from error


def _versions(run: Run, model: Model) -> tuple[str, str, str]:
    relation = model.relation
    table = run.lake.table(relation.schema, relation.name)
    waiting = publish.staged_rows(run, model) if model.in_catalog and table is not None and table.history else None
    if waiting is not None:
        return "the rows that are staged, with those that readers see", relation.sql, waiting
    replaced_generation = _replaced_generation(run.target, model)
    if replaced_generation is None:
        raise UsageError("usage", f"there is nothing to compare '{model.name}' with", _HINT)
    at = time_text(replaced_generation.replaced_at // 1000 * 1000)
    description = f"the table, with the version that was replaced at {at} (UTC)"
    return description, f"{relation.sql} VERSION AS OF {replaced_generation.table.snapshot}", relation.sql


def _replaced_generation(target: Target, model: Model) -> PreviousGeneration | None:
    replaced_generation = previous_generation(table_state(target, model)) if model.streaming else None
    table = Lake(target.catalog).table(model.relation.schema, model.relation.name, PREVIOUS)
    is_tagged = (
        replaced_generation is not None and table is not None and table.snapshot == replaced_generation.table.snapshot
    )
    return replaced_generation if is_tagged else None


def _difference(
    description: str, earlier_rows: DataFrame, later_rows: DataFrame, key: Sequence[str]
) -> VersionDifference:
    types = [
        {field.name.lower(): field.dataType for field in frame.schema.fields} for frame in (earlier_rows, later_rows)
    ]
    shared = [n for n, kind in types[1].items() if types[0].get(n) == kind and _comparable(kind)]
    by = tuple(name for name in key if name.lower() in shared)
    if len(by) < len(key):
        by = ()
    counts = [_numbers(frame, shared) for frame in (earlier_rows, later_rows)]
    value_columns = [name for name in shared if name not in {part.lower() for part in by}]
    only, differing, by_column = (
        _compare_by_key(earlier_rows, later_rows, by, value_columns)
        if by
        else _compare_rows(earlier_rows, later_rows, shared)
    )
    columns = []
    for name in dict.fromkeys([*types[1], *types[0]]):
        of_both = name in counts[0] and name in counts[1]
        column_name = next(
            f.name for f in (*later_rows.schema.fields, *earlier_rows.schema.fields) if f.name.lower() == name
        )
        was, is_ = (kinds[name].simpleString() if name in kinds else None for kinds in types)
        sums = (counts[0][name], counts[1][name]) if of_both else None
        columns.append(ComparedColumn(column_name, was, is_, by_column.get(name), sums))
    return VersionDifference(description, (counts[0][""], counts[1][""]), by, only, differing, tuple(columns))


def _comparable(kind: DataType) -> bool:
    """Whether Spark groups by values of a type: maps and VARIANT have no order."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return all(_comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _comparable(kind.elementType)
    return not isinstance(kind, MapType | VariantType)


def _numbers(frame: DataFrame, names: Sequence[str]) -> dict[str, Any]:
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    kinds = {field.name.lower(): field.dataType for field in frame.schema.fields}
    summed = [name for name in names if isinstance(kinds[name], NumericType)]
    totals = frame.agg(f.count(f.lit(1)), *(f.try_sum(f.col(quoted(name))) for name in summed)).collect()[0]
    return dict(zip(["", *summed], totals, strict=True))


def _rows_of_both(earlier_rows: DataFrame, later_rows: DataFrame, names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f

    def side_of(frame: DataFrame, side: int) -> DataFrame:
        columns = [f.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(names)]
        return frame.select(*columns, f.lit(side).alias("side"))

    return side_of(later_rows, 1).union(side_of(earlier_rows, -1))


def _compare_by_key(
    earlier_rows: DataFrame, later_rows: DataFrame, key: Sequence[str], value_columns: Sequence[str]
) -> tuple[tuple[int, int], int, dict[str, int]]:
    from pyspark.sql import functions as f

    rows = _rows_of_both(earlier_rows, later_rows, [*key, *value_columns])
    begin = len(key)

    def value(number: int, side: int) -> Column:
        return f.max(f.when(f.col("side") == side, f.col(f"c{number}")))

    numbers = range(begin, begin + len(value_columns))
    side_counts = [f.count_if(f.col("side") == side).alias(name) for side, name in ((-1, "before"), (1, "now"))]
    differ = [(~value(n, 1).eqNullSafe(value(n, -1))).alias(f"d{n}") for n in numbers]
    keys = rows.groupBy(*(f"c{number}" for number in range(begin))).agg(*side_counts, *differ)
    in_both = (f.col("before") > 0) & (f.col("now") > 0)
    some = f.lit(False)
    for n in numbers:
        some = some | f.col(f"d{n}")
    conditions = [f.col("now") == 0, f.col("before") == 0, in_both & some, *(in_both & f.col(f"d{n}") for n in numbers)]
    counts = keys.agg(*(f.count_if(condition) for condition in conditions)).collect()[0]
    return (counts[0], counts[1]), counts[2], dict(zip(value_columns, counts[3:], strict=True))


def _compare_rows(
    earlier_rows: DataFrame, later_rows: DataFrame, names: Sequence[str]
) -> tuple[tuple[int, int] | None, int, dict[str, int]]:
    from pyspark.sql import functions as f

    if not names:
        return None, 0, {}
    rows = _rows_of_both(earlier_rows, later_rows, names)
    counted = rows.groupBy(*(f"c{number}" for number in range(len(names)))).agg(f.sum("side").alias("more"))
    only = [f.sum(f.when(sign * f.col("more") > 0, sign * f.col("more"))) for sign in (-1, 1)]
    counts = counted.agg(*only).collect()[0]
    return (counts[0] or 0, counts[1] or 0), 0, {}
