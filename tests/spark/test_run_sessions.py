"""What is let go between the runs of one JVM, and what goes on."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from engine.lake import commit_guard, table_writer
from engine.spark.run_sessions import release, run_session
from tests.lab import Lab

pytestmark = pytest.mark.spark


def test_a_thread_that_java_called_back_is_called_back_after_a_release(lab: Lab) -> None:
    assert lab.session is not None
    spark, table = lab.session.spark, f"lake.{lab.schema}.t"
    spark.sql(f"create namespace lake.{lab.schema}")
    spark.sql(f"create table {table} (id int) using iceberg")
    server = spark.sparkContext._gateway._callback_server  # type: ignore[union-attr]

    def commit(number: int) -> None:
        """In which Java asks Python whether the table is still the one that was looked at."""
        known = lab.table("t")
        assert known is not None
        expected = commit_guard.ExpectedTable("t", known.uuid, known.snapshot)
        rows = table_writer.stage(spark.createDataFrame([(number,)], "id int"), table)
        table_writer.append(rows, {"batch-id": str(number)}, expected=expected)

    commit(0)
    for number in (1, 2):
        others = threading.Thread(target=commit, args=(10 * number,))
        others.start()
        others.join()
        session, family = run_session(spark)
        session.sql("select 1").collect()
        release(family)
        deadline = time.monotonic() + 30
        while (kept := _open(server)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not kept, "connections of threads that are gone"
        commit(number)
    assert lab.ids("t") == [0, 1, 2, 10, 20]


def _open(server: Any) -> list[Any]:
    with server.lock:
        return [connection for connection in server.connections if connection.socket is not None]
