"""A model's query run once as a batch: streams are read as they are now, open windows included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, Target
from engine.errors import RunError, UsageError, near
from engine.lake.catalog import catalog_settings
from engine.lake.catalog.moved_lake import check as lake_check
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import CORE, jar_sets
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support.shown_values import CollectedRows, collect_rows
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
