"""Types of conditions, asked of Spark: compile does not know those of every function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import Model
from engine.compile.output.condition_types import DELETES, HINT, conditions, not_boolean
from engine.errors import Location, RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_conditions(model: Model, frame: DataFrame) -> None:
    """Check that the conditions of a model are boolean over the rows of its query.

    Raises:
        RunError: `condition-syntax`.
        pyspark.errors.AnalysisException: Spark rejects one of them.
    """
    from pyspark.sql import functions as f

    model_conditions = list(conditions(model))
    if not model_conditions:
        return
    types = frame.select(
        *(f.expr(f"({sql})").alias(f"c{index}") for index, (_, sql, _) in enumerate(model_conditions))
    ).dtypes
    for (name, sql, key), (_, type_) in zip(model_conditions, types, strict=True):
        if type_ not in {"boolean", "void"}:
            hint = DELETES if key == "delete_when" else HINT
            place = model.positions.settings.get(key) or Location(model.file)
            raise RunError("condition-syntax", not_boolean(name, sql, type_), hint, node=model.name, location=place)
