"""SQL of the user's, run in the model's own session before it is built and after that succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import Model
from engine.errors import Location, RunError
from engine.runtime.spark_errors import summary
from engine.spark.executions import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def before(session: SparkSession, model: Model) -> None:
    """Run `pre_hook`; a temporary function that it makes is there for the query.

    Raises:
        RunError: `hook-failed`; nothing of the model was built.
    """
    _run(session, model, "pre_hook", model.operation.pre_hook)


def after(session: SparkSession, model: Model) -> None:
    """Run `post_hook`.

    Raises:
        RunError: `hook-failed`; the model is built.
    """
    _run(session, model, "post_hook", model.operation.post_hook)


def _run(session: SparkSession, model: Model, key: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        try:
            session.sql(text).collect()
        except spark_exceptions() as error:
            place = model.positions.settings.get(key, Location(model.file))
            hint = "It runs before the model." if key == "pre_hook" else "It runs after the model, whose rows stay."
            message = f"'{key}' failed: {summary(str(error))}"
            raise RunError("hook-failed", message, hint, node=model.name, location=place) from error
