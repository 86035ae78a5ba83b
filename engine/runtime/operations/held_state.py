"""What a streaming table's query holds between micro-batches, by Spark's state data source.

The last committed micro-batch is read, beside a query that may be running (Spark classes StateDataSource and
StateMetadataSource).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import local_paths
from engine.compile import Model, Target
from engine.errors import RunError, UsageError
from engine.plan.deployed.state_folder import table_state
from engine.runtime.build import spark_session
from engine.runtime.operations.preview import CollectedRows, collect_rows
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.runtime.writer.query_progress import JOIN, meaning_of
from engine.state.checkpoint import last_committed, operators
from engine.state.state_path import StatePath, spark_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class HeldState:
    """What a step of a query holds; steps count from 0; `meaning` is in plain words, of a join with the side."""

    step: int
    operator: str
    meaning: str
    count: int
    sample: CollectedRows


def held_state(target: Target, model: Model, target_dir: Path, limit: int) -> Iterator[HeldState]:
    """Read what the query of a model holds, step by step.

    Raises:
        UsageError: it is not a streaming table, or keeps no state.
        RunError: `state-unreadable`; it has not been built yet (`table-missing`).
        SetupError: Spark cannot be had.
    """
    if not model.streaming:
        message = f"'{model.name}' is not a streaming table, so it holds nothing between builds"
        raise UsageError("usage", message, "Name a model with 'streams:' in its header.")
    state = table_state(target, model)
    model_state = state.load()
    checkpoint = state.checkpoint(model_state.generation) if model_state is not None else None
    if checkpoint is None or last_committed(checkpoint) is None:
        hint = f"Build it first: engine build -s +{model.name}"
        raise RunError("table-missing", f"'{model.name}' has not read anything yet", hint, node=model.name)
    if not operators(checkpoint):
        message = f"'{model.name}' keeps no state: each row is written as it comes"
        raise UsageError("usage", message, f"Its rows: engine show {model.name} --table")
    with spark_session(target, target_dir) as spark, _readable_location(checkpoint) as location:
        try:
            yield from _steps(spark, location, limit)
        except spark_exceptions() as error:
            message = f"the state of '{model.name}' cannot be read: {summary(str(error))}"
            raise RunError("state-unreadable", message, "Look into target/logs/engine.log.", node=model.name) from error


@contextmanager
def _readable_location(checkpoint: StatePath) -> Iterator[str]:
    """The location of a checkpoint for Spark's state source, which encodes a path and decodes it nowhere.

    A folder whose letters it encodes is read through a link (Spark class StateSourceOptions, `resolvedCpLocation`).
    """
    if not isinstance(checkpoint, Path) or local_paths.encoded(checkpoint) == local_paths.iceberg(checkpoint):
        yield spark_location(checkpoint)
        return
    with tempfile.TemporaryDirectory(prefix="headrace-state-") as folder:
        link = Path(folder) / "checkpoint"
        link.symlink_to(checkpoint)
        yield spark_location(link)


def _steps(spark: SparkSession, location: str, limit: int) -> Iterator[HeldState]:
    steps = spark.read.format("state-metadata").load(location).select("operatorId", "operatorName").distinct()
    for step, operator in sorted(tuple(row) for row in steps.collect()):
        for side in ("left", "right") if operator == JOIN else ("",):
            reader = spark.read.format("statestore").option("operatorId", step)
            if side:
                reader = reader.option("joinSide", side)
            frame = _readable(reader.load(location))
            meaning = meaning_of(operator) + (f", {side} side" if side else "")
            yield HeldState(step, operator, meaning, frame.count(), collect_rows(frame.limit(limit)))


def _readable(frame: DataFrame) -> DataFrame:
    names = [f"{part}.*" for part in ("key", "value") if frame.select(part).schema[0].dataType.simpleString() != "null"]
    return frame.select(*names)
