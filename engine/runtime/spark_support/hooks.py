"""SQL of the user's, run in the model's own session before it is built and after that succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import Model
from engine.compile.config.session_settings import TIME_ZONE, WAP_HINT, WAP_MESSAGE, is_utc
from engine.errors import Location, RunError
from engine.runtime.spark_support.spark_errors import summary
from engine.spark.exceptions import spark_exceptions
from engine.spark_options import PINNED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_WAP = ("spark.wap.branch", "spark.wap.id")


def run_pre_hook(session: SparkSession, model: Model) -> None:
    """Run `pre_hook`; a temporary function that it makes is there for the query.

    Raises:
        RunError: `hook-failed`; `setting-pinned` or `setting-wap` for what it must not set. Nothing of the model was
            built.
    """
    if not model.operation.pre_hook:
        return
    _run(session, model, "pre_hook", model.operation.pre_hook)
    place = model.positions.settings.get("pre_hook", Location(model.file))
    zone = str(session.conf.get(TIME_ZONE))
    if not is_utc(zone):
        hint = f"Remove it; for local days and hours write from_utc_timestamp(ts, '{zone}')."
        message = f"'pre_hook' sets the session's time zone to {zone}, which must be UTC"
        raise RunError("setting-pinned", message, hint, node=model.name, location=place)
    for key, pinned_value in PINNED.items():
        value = str(session.conf.get(key, pinned_value))
        if value.lower() != pinned_value:
            message = f"'pre_hook' sets '{key}' to {value}, which must be {pinned_value}"
            hint = "Remove it; the SQL of a project is checked for this value."
            raise RunError("setting-pinned", message, hint, node=model.name, location=place)
    for key in _WAP:
        if session.conf.get(key, ""):
            message = WAP_MESSAGE.format(f"'pre_hook' sets '{key}', which")
            raise RunError("setting-wap", message, WAP_HINT, node=model.name, location=place)


def run_post_hook(session: SparkSession, model: Model) -> None:
    """Run `post_hook`. Raises RunError: `hook-failed`; the model is built."""
    _run(session, model, "post_hook", model.operation.post_hook)


def _run(session: SparkSession, model: Model, key: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        try:
            session.sql(text).collect()
        except spark_exceptions() as error:
            place = model.positions.settings.get(key, Location(model.file))
            hint = (
                "Correct its SQL. It runs before the model; no rows were written."
                if key == "pre_hook"
                else ("Correct its SQL. It runs after the model; the rows were written.")
            )
            message = f"'{key}' failed: {summary(str(error))}"
            raise RunError("hook-failed", message, hint, node=model.name, location=place) from error
