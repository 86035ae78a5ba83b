"""The machine code of RocksDB, which keeps the state of streams."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.compile import Model, StateProvider
from engine.runtime.context.run_context import Run
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.spark_master import runs_locally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def begin_loading(run: Run, nodes: Iterable[object]) -> None:
    """Have the library unpacked and loaded while queries are prepared: Spark would in the first micro-batch, 0.1 s."""
    if runs_locally(run.target.master) and any(isinstance(node, Model) and _keeps_state(run, node) for node in nodes):
        threading.Thread(target=_load, args=(run.spark,), daemon=True, name="state library").start()


def _keeps_state(run: Run, model: Model) -> bool:
    hdfs = model.operation.state_provider is StateProvider.HDFS
    return model.streaming and model.stateful and not hdfs and not run.plan.actions[model.id].unchanged


def _load(spark: SparkSession) -> None:
    """Load it by Spark's own lock; why it cannot be loaded is said by the query that needs it."""
    jvm: Any = spark._jvm  # noqa: SLF001
    with suppress(*spark_exceptions()):
        jvm.org.apache.spark.sql.execution.streaming.state.RocksDBLoader.loadLibrary()
