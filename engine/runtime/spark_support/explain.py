"""`explain: true`: Spark's plan of a model's query, for people and the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.lake.table_writer import plain_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger("engine.runtime")


def tell(model: Model, frame: DataFrame) -> None:
    """Say the plan of a batch query, where the model asks for it."""
    if model.operation.explain:
        jvm = frame.sparkSession._jvm  # noqa: SLF001 - PySpark's explain() prints it
        execution = frame._jdf.queryExecution()  # noqa: SLF001
        _say(model, jvm.PythonSQLUtils.explainString(execution, "simple"))  # type: ignore[union-attr]


def tell_stream(model: Model, query: StreamingQuery) -> None:
    """Say the plan of a stream's last micro-batch, where the model asks for it; before one is run there is none."""
    if model.operation.explain:
        _say(model, query._jsq.explainInternal(False))  # noqa: SLF001 - PySpark's explain() prints it


def _say(model: Model, text: object) -> None:
    _log.info("Spark's plan of %s:\n%s", model.name, plain_name(str(text)).rstrip())
