"""The temporary lake of unit tests: one catalog in a temporary folder, and a session for each test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.compile import Catalog, Model, Relation
from engine.lake.catalog import catalog_settings
from engine.lake.table_writer import create_namespace
from engine.state import TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "headrace_unit_tests"
SCHEMA = "tests"
# For a few rows: one partition, one plan, no waiting; compiling code for them costs more than it gives (a fifth of the
# processor's time, measured).
_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}  # fmt: skip


@dataclass(slots=True)
class TemporaryLake:
    """A lake that is removed after the tests; the project's own is never touched."""

    folder: Path
    _numbers: count[int] = field(default_factory=count)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _is_prepared: bool = False

    def session(self, spark: SparkSession) -> SparkSession:
        catalog = Catalog("sqlite", NAME, self.folder / "lake")
        session = spark.newSession()
        for key, value in {**catalog_settings.spark_conf(catalog), **_CONF}.items():
            session.conf.set(key, value)
        # Two sessions that set up one catalog at a time collide.
        with self._guard:
            if not self._is_prepared:
                catalog_settings.prepare(catalog)
                create_namespace(session, NAME, SCHEMA)
                self._is_prepared = True
        return session

    def place(self, model: Model) -> tuple[Model, TableState]:
        name = f"{model.relation.name[:80]}_{next(self._numbers)}"
        relation = Relation(NAME, SCHEMA, name)
        sql = model.sql.replace(model.relation.sql, relation.sql)
        return replace(model, relation=relation, sql=sql), TableState(self.folder / "state", NAME, SCHEMA, name)


@contextmanager
def temporary_lake() -> Iterator[TemporaryLake]:
    with TemporaryDirectory(prefix="headrace-unit-", ignore_cleanup_errors=True) as folder:
        yield TemporaryLake(Path(folder))
