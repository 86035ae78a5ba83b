"""A model's query run once as a batch: streams are read as they are now, open windows included."""

from __future__ import annotations

from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.errors import RunError
from engine.lake.catalog import catalog_settings
from engine.lake.catalog.moved_lake import check as lake_check
from engine.runtime.build import spark_session
from engine.runtime.context.needed_jars import CORE, jar_sets
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support.shown_values import Shown, shown
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions


def preview(
    manifest: Manifest, target: Target, root: Path, model: Model, limit: int, target_dir: Path, *, stored: bool = False
) -> Shown:
    """The first rows of a model's query.

    Args:
        manifest: the project.
        target: where it is built.
        root: the project's folder.
        model: whose query.
        limit: of rows.
        target_dir: folder of logs.
        stored: read the model's table instead of running its query.

    Raises:
        RunError: Spark rejected or failed the query.
        SetupError: `lake-moved`.
    """
    catalog_settings.prepare(target.catalog)
    lake_check(target.catalog)
    with spark_session(target, target_dir, sets=CORE if stored else jar_sets(manifest, [model])) as spark:
        try:
            if stored:
                return shown(spark.table(model.relation.sql).limit(limit))
            register(spark, manifest, model, target.place(root), bounded=True)
            return shown(spark.sql(model.sql).limit(limit))
        except spark_exceptions() as error:
            raise RunError.of(diagnose(error, model)) from error
