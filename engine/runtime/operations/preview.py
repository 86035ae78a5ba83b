"""A model's query run once as a batch: streams are read as they are now, open windows included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.compile import Manifest, Model, Target
from engine.errors import RunError, UsageError, near
from engine.lake.catalog import catalog_settings
from engine.lake.catalog.moved_lake import check as lake_check
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import CORE, jar_sets
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class CollectedRows:
    names: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


def collect_rows(frame: DataFrame) -> CollectedRows:
    """The rows of a frame whose session is in UTC.

    Times and dates come as texts: Python has no year 0 and none after 9999, and PySpark gives a timestamp in the zone
    of the machine.
    """
    from pyspark.sql import functions as f

    fields = frame.schema.fields
    # By position: a query may give one name twice.
    numbered = frame.toDF(*(str(index) for index in range(len(fields))))
    texts = [
        column if (kind := _as_text(field.dataType)) == field.dataType else column.cast(kind)
        for column, field in zip((f.col(f"`{index}`") for index in range(len(fields))), fields, strict=True)
    ]
    rows = [tuple(row) for row in numbered.select(*texts).collect()]
    return CollectedRows([field.name for field in fields], [field.dataType.simpleString() for field in fields], rows)


def _as_text(kind: DataType) -> DataType:
    from pyspark.sql import types as t

    texts = (t.TimestampType, t.TimestampNTZType, t.DateType, t.DayTimeIntervalType, t.YearMonthIntervalType)
    if isinstance(kind, texts):
        return t.StringType()
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_as_text(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        return t.MapType(_as_text(kind.keyType), _as_text(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, t.StructType):
        return t.StructType([t.StructField(p.name, _as_text(p.dataType), p.nullable) for p in kind.fields])
    return kind


def preview(
    manifest: Manifest,
    target: Target,
    root: Path,
    model: Model,
    limit: int | None,
    target_dir: Path,
    *,
    of_table: bool = False,
    sort: Sequence[tuple[str, bool]] = (),
) -> CollectedRows:
    """The first rows of a model's query.

    `of_table`: read the model's table instead of running its query.
    `sort`: columns to sort by, each with True if descending.

    Raises:
        RunError: Spark rejected or failed the query.
        SetupError: `lake-moved`.
        UsageError: a column to sort by does not exist.
    """
    catalog_settings.prepare(target.catalog)
    lake_check(target.catalog)
    with spark_session(target, target_dir, sets=CORE if of_table else jar_sets(manifest, [model])) as spark:
        try:
            if of_table:
                return collect_rows(_first_rows(spark.table(model.relation.sql), limit, sort))
            register(spark, manifest, model, target.place(root), bounded=True)
            return collect_rows(_first_rows(spark.sql(model.sql), limit, sort))
        except spark_exceptions() as error:
            raise RunError.from_diagnostics(diagnose(error, model)) from error


def _first_rows(frame: DataFrame, limit: int | None, sort: Sequence[tuple[str, bool]]) -> DataFrame:
    from pyspark.sql import functions as f

    columns = []
    for name, down in sort:
        if name not in frame.columns:
            raise UsageError("usage", f"column '{name}' not found", near(name, frame.columns))
        column = f.col(f"`{name.replace('`', '``')}`")
        columns.append(column.desc_nulls_last() if down else column.asc_nulls_last())
    ordered = frame.orderBy(*columns) if columns else frame
    return ordered if limit is None else ordered.limit(limit)
