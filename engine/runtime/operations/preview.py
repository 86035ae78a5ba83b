"""A model's query run once as a batch: streams are read as they are now, open windows included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.compile import Manifest, Model, Target, compile_project
from engine.errors import RunError
from engine.lake.catalog import catalog_settings
from engine.lake.catalog.moved_lake import check as lake_check
from engine.project import ModelText, load_project
from engine.runtime.build import spark_session
from engine.runtime.context.needed_jars import CORE, jar_sets
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support.shown_values import Shown, shown
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions

INLINE = "inline_query"
_STORAGE = "column-storage"


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


def inline_model(
    root: Path, target: str | None, variables: Mapping[str, Any], sql: str
) -> tuple[Manifest, Target, Model]:
    """Compile a query from the command line as if it were a model of the project.

    Raises:
        RunError: the query or the project has errors.
    """
    project = load_project(root)
    file = ModelText(INLINE, "--inline", (), sql)
    result = compile_project(replace(project, models=(*project.models, file)), target=target, variables=variables)
    # Its rows are shown: no table has to hold them.
    errors = tuple(e for e in result.manifest.errors if (e.node, e.code) != (INLINE, _STORAGE))
    if errors:
        raise RunError.of(errors)
    return result.manifest, result.target, result.manifest.model(INLINE)
