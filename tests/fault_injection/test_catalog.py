"""The catalog is held by another process; a MERGE meets a compaction between its read and its commit."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from typing import Any

import pytest

from engine.lake import merge_statement
from tests.fault_injection import shop
from tests.fault_injection.points import reached
from tests.lab import Lab, run_alone

pytestmark = pytest.mark.spark


BUSY = """
from engine.lake import commits
from engine.lake.catalog import catalog_settings
commits._PAUSES = (0.1, 0.2)
_conf = catalog_settings.spark_conf
catalog_settings.spark_conf = lambda c: {k: v.replace("busy_timeout=30000", "busy_timeout=300") for k, v in _conf(c).items()}
"""


@pytest.mark.gate
def test_a_commit_is_on_disk_before_the_state_notes_it(lab: Lab) -> None:
    # Else a power loss takes back commits that model.json, which is synced, holds for done: quarantined rows were lost.
    spark: Any = lab.session.spark  # type: ignore[union-attr]
    connection = spark._jvm.java.sql.DriverManager.getConnection(spark.conf.get("spark.sql.catalog.lake.uri"))
    found = connection.createStatement().executeQuery("pragma synchronous")
    assert found.getInt(1) == 2, "not FULL"
    connection.close()


@pytest.mark.gate
def test_a_catalog_that_another_process_holds(lab: Lab) -> None:
    shop.prepare(lab)
    lab.build()
    before = lab.snapshots()
    shop.land_later(lab)
    holder = sqlite3.connect(lab.lake_path / "catalog.db", isolation_level=None, check_same_thread=False)
    holder.execute("begin immediate")
    # It stays held; a process of its own has less patience.
    ended = run_alone(lab.root, "build", script=BUSY)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert '"catalog-busy"' in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert lab.snapshots() == before

    # It is let go while the build waits.
    asked, released = threading.Event(), threading.Event()
    waited: list[bool] = []

    def release() -> None:
        asked.wait(120)
        time.sleep(3)
        released.set()
        holder.execute("rollback")

    releasing = threading.Thread(target=release, daemon=True)
    releasing.start()
    with (
        reached("committing", lambda *_: asked.set()),
        reached("appended", lambda *_: waited.append(released.is_set())),
    ):
        lab.build()
    releasing.join()
    assert waited
    assert all(waited)
    holder.close()
    shop.check(lab)


LATEST = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
---*/
select id, at, amount from {{ source('shop', 'events') }}
"""


def test_a_merge_that_meets_a_compaction_is_made_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lab.model("latest", LATEST)
    lab.land("a", [shop.paid(1, "10:00"), shop.paid(2, "10:00")])
    lab.build()
    lab.land("b", [shop.paid(2, "10:01"), shop.paid(3, "10:00")])
    lab.build()
    lab.land("c", [shop.paid(1, "10:02") | {"amount": 7.0}])
    reading, compacted = lab.root / "reading", lab.root / "compacted"

    def slow(number: int) -> int:
        # In a worker of Spark: the table's files are chosen by now, and its commit comes after this.
        reading.touch()
        end = time.monotonic() + 60
        while not compacted.exists() and time.monotonic() < end:
            time.sleep(0.05)
        return number

    def slowly(rows: Any, *arguments: Any) -> Any:
        from pyspark.sql import functions as f

        return merged(rows.withColumn("id", f.udf(slow, "int", useArrow=False)("id")), *arguments)

    merged = merge_statement.merge
    monkeypatch.setattr("engine.runtime.sinks.merge_output.merge", slowly)
    spark = lab.session.spark  # type: ignore[union-attr]

    def compact() -> None:
        while not reading.exists():
            time.sleep(0.05)
        table = f"{lab.schema}.latest"
        spark.newSession().sql(
            f"call lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        )
        compacted.touch()

    compacting = threading.Thread(target=compact, daemon=True)
    compacting.start()
    with caplog.at_level(logging.WARNING, "engine.lake"):
        lab.build()
    compacting.join()
    table = lab.table("latest")
    assert table is not None
    assert [s.operation for s in table.history[:2]] == ["overwrite", "replace"]
    assert sorted((r["id"], r["amount"]) for r in lab.rows("latest")) == [(1, 7.0), (2, 2.0), (3, 3.0)]
    assert "is retried" in (lab.root / "target" / "logs" / "engine.log").read_text()


HELD = (
    BUSY.replace("(0.1, 0.2)", "(0.5, 1.0, 2.0, 4.0)")
    + """
import sqlite3, threading
from engine import kill_points

def hold(point, *_):
    if point == "replacing":
        holder = sqlite3.connect(PATH, isolation_level=None, check_same_thread=False)
        holder.execute("begin immediate")
        threading.Timer(4, lambda: holder.execute("rollback")).start()

kill_points.listen(hold)
"""
)


@pytest.mark.nightly
def test_a_rebuild_is_not_lost_where_the_catalog_is_held_as_it_is_published(lab: Lab) -> None:
    lab.model("paid", "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n")
    lab.land("a", [{"id": 1}])
    lab.build()
    lab.land("b", [{"id": 2}])
    ended = run_alone(lab.root, "build", "-f", script=HELD.replace("PATH", repr(str(lab.lake_path / "catalog.db"))))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert lab.ids("paid") == [1, 2]
    table = lab.table("paid")
    assert table is not None
    assert len(table.history) == 1
