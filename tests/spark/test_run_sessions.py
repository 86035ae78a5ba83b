"""What is let go between the runs of one JVM, and what goes on."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from engine.lake import commit_guard, table_writer
from engine.spark.internals.run_sessions import release, run_session
from tests.lab import Lab, wait_until

pytestmark = pytest.mark.spark


def test_a_thread_that_java_called_back_is_called_back_after_a_release(lab: Lab) -> None:
    assert lab.session is not None
    spark, table = lab.session.spark, f"lake.{lab.schema}.t"
    spark.sql(f"create namespace lake.{lab.schema}")
    spark.sql(f"create table {table} (id int) using iceberg")
    server = spark.sparkContext._gateway._callback_server  # type: ignore[union-attr]
    commit = partial(_commit, lab, spark)
    commit(0)
    for number in (1, 2):
        others = threading.Thread(target=commit, args=(10 * number,))
        others.start()
        others.join()
        session, family = run_session(spark)
        session.sql("select 1").collect()
        release(family)
        assert wait_until(lambda: not _open(server)), "connections of threads that are gone"
        commit(number)
    assert lab.ids("t") == [0, 1, 2, 10, 20]


@pytest.mark.nightly
def test_a_micro_batch_is_written_while_other_runs_end(lab: Lab) -> None:
    assert lab.session is not None
    spark, begun = lab.session.spark, threading.Event()
    spark.sql(f"create namespace lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.t (id int) using iceberg")

    _commit(lab, spark, 0)

    def write(frame: Any, _: int) -> None:
        # Java calls Python in the commit, and Python waits for Java afterwards.
        _commit(lab, spark, 1)
        begun.set()
        frame.sparkSession.sql("select reflect('java.lang.Thread', 'sleep', 5000L)").collect()

    lab.write("landing/a.json", '{"id": 1}\n')
    rows = spark.readStream.schema("id int").json(str(lab.root / "landing"))
    place = str(lab.root / "checkpoint")
    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", place).trigger(availableNow=True).start()
    assert begun.wait(60)
    for _ in range(3):
        session, family = run_session(spark)
        session.sql("select 1").collect()
        release(family, connections=False)
    assert query.awaitTermination(60)
    assert lab.ids("t") == [0, 1]


def _commit(lab: Lab, spark: Any, number: int) -> None:
    """A commit in which Java asks Python whether the table is still the one that was looked at."""
    known = lab.table("t")
    assert known is not None
    expected = commit_guard.ExpectedTable("t", known.uuid, known.snapshot)
    rows = table_writer.stage(spark.createDataFrame([(number,)], "id int"), f"lake.{lab.schema}.t")
    table_writer.append(rows, {"batch-id": str(number)}, expected=expected)


@pytest.mark.nightly
def test_the_connection_of_a_micro_batch_is_known_once(lab: Lab) -> None:
    lab.write(
        "sources/shop.yml",
        "sources:\n- {name: shop, tables: [{name: events, format: json, path: landing, schema: id int}]}\n",
    )
    lab.model("t", "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n")
    client = lab.session.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    for number in range(3):
        lab.land(f"a{number}", [{"id": number}], folder="landing")
        lab.build()
    assert lab.ids("t") == [0, 1, 2]
    kept = list(client.deque)
    assert len(kept) == len(set(map(id, kept))), "one of two entries is removed when the thread of a connection ends"


def _open(server: Any) -> list[Any]:
    with server.lock:
        return [connection for connection in server.connections if connection.socket is not None]
