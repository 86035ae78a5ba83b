"""`explain: true`: Spark's plan of a model's query, for people and the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.lake.table_writer import plain_name
from engine.spark.internals import plans, queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger("engine.runtime")


def log_plan(model: Model, frame: DataFrame) -> None:
    if model.operation.explain:
        _log_text(model, plans.explained(frame))


def log_stream_plan(model: Model, query: StreamingQuery) -> None:
    if model.operation.explain:
        _log_text(model, queries.explained(query))


def _log_text(model: Model, text: str) -> None:
    _log.info("Spark's plan of %s:\n%s", model.name, plain_name(text).rstrip())
