"""`explain: true`: Spark's plan of a model's query, said before it runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.lake.write import plain_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger("engine.runtime")


def tell(model: Model, frame: DataFrame) -> None:
    """Show the plan to people, and put it into the log, where the model asks for it."""
    if not model.operation.explain:
        return
    java, jvm = frame._jdf, frame.sparkSession._jvm  # noqa: SLF001 - PySpark's explain() prints it
    text = jvm.PythonSQLUtils.explainString(java.queryExecution(), "simple")  # type: ignore[union-attr]
    _log.info("Spark's plan of %s:\n%s", model.name, plain_name(str(text)).rstrip())
