"""`engine maintain` on real tables: what goes, what stays for whom, and that nothing is lost or read twice."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine.compile import compile_project
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.project import load_project
from engine.runtime.lifecycle.expire_snapshots import not_after
from engine.runtime.operations.maintain import Care, maintain
from tests.fault_injection.points import reached
from tests.lab import Lab

pytestmark = pytest.mark.spark

# Files of one row, a commit each; one snapshot is kept, so that age and readers decide.
PAID = """/*---
streams:
  shop.events: {max_files_per_trigger: 1}
table_properties: {history.expire.min-snapshots-to-keep: "1"}
---*/
select id, amount from {{ source('shop', 'events') }}
"""
COPY = """/*---
streams: [paid]
---*/
select id from {{ ref('paid') }}
"""
TOTAL = "select count(*) as n from {{ ref('paid') }}\n"


@pytest.fixture
def shop(lab: Lab) -> Lab:
    lab.model("paid", PAID)
    lab.model("copy", COPY)
    return lab


def land(lab: Lab, first: int, count: int) -> None:
    for number in range(first, first + count):
        lab.land(f"{number:03}", [{"id": number, "at": "2024-05-01T10:00:00Z", "amount": 1.0}])


def cared(lab: Lab, *arguments: str) -> dict[str, dict[str, Any]]:
    result = lab.run("maintain", *arguments)
    assert result.code == 0, result.text
    found = [event for event in result.events if event["event"] == "TableMaintained"]
    return {event["table"].rpartition(".")[2]: event for event in found}


def test_files_are_joined_and_snapshots_go_and_streams_go_on(shop: Lab) -> None:
    land(shop, 1, 6)
    shop.build()
    before = shop.table("paid")
    assert before is not None
    assert len(before.history) == 6
    orphan = lost_file(shop, "paid", days=4)
    young = lost_file(shop, "paid", days=0)

    told = cared(shop, "--dry-run", "--older-than", "0 seconds")["paid"]
    assert (told["joined"], told["expired"], told["orphans"]) == (6, 5, 1)
    assert shop.table("paid") == before
    assert orphan.exists()

    done = cared(shop, "--older-than", "0 seconds")["paid"]
    assert (done["joined"], done["into"], done["expired"], done["orphans"]) == (6, 1, 5, 1)
    assert done["error"] == ""
    assert not orphan.exists()
    assert young.exists()
    after = shop.table("paid")
    assert after is not None
    # The last snapshot that the model wrote and its reader has read, and the two commits of the maintenance.
    assert [s.id for s in after.history if s.marker("batch-id")] == [before.snapshot]
    assert shop.ids("paid") == [1, 2, 3, 4, 5, 6]

    land(shop, 7, 1)
    results = shop.build()
    assert results.model("paid")["rows_in"] == 1
    assert results.model("copy")["rows_in"] == 1
    assert shop.ids("copy") == [1, 2, 3, 4, 5, 6, 7]
    again = cared(shop, "-s", "paid", "--older-than", "1 day")["paid"]
    assert (again["joined"], again["expired"], again["orphans"]) == (0, 0, 0)


@pytest.mark.nightly
def test_what_a_reader_has_not_read_stays(shop: Lab) -> None:
    land(shop, 1, 2)
    shop.build()
    land(shop, 3, 5)
    shop.build("-s", "paid")

    done = cared(shop, "--older-than", "0 seconds")["paid"]
    assert done["kept_for"] == ["copy"]
    assert (done["joined"], done["expired"]) == (7, 1)
    assert shop.build().model("copy")["rows_in"] == 5
    assert shop.ids("copy") == [1, 2, 3, 4, 5, 6, 7]
    assert cared(shop, "--older-than", "0 seconds")["paid"]["kept_for"] == []


@pytest.mark.nightly
def test_a_batch_that_comes_again_after_it_is_not_written_twice(shop: Lab) -> None:
    land(shop, 1, 6)
    shop.build()
    state = shop.model_json("paid")
    commit = shop.state / "paid" / "1" / "checkpoint" / "commits" / str(state["batch"])
    commit.unlink()
    (commit.parent / f".{commit.name}.crc").unlink(missing_ok=True)
    # As a kill behind the table's commit leaves it: model.json does not know of the last batch either.
    path = shop.state / "paid" / "1" / "model.json"
    path.write_text(json.dumps({**state, "batch": state["batch"] - 1}))

    assert cared(shop, "--older-than", "0 seconds")["paid"]["expired"] == 5
    shop.build()
    assert shop.ids("paid") == [1, 2, 3, 4, 5, 6]
    assert shop.ids("copy") == [1, 2, 3, 4, 5, 6]


@pytest.mark.nightly
def test_tables_are_looked_after_beside_running_streams(shop: Lab) -> None:
    shop.model("total", TOTAL)
    land(shop, 1, 8)
    shop.build()
    land(shop, 9, 12)
    compiled = compile_project(load_project(shop.root))
    done: list[Any] = []

    def look_after() -> None:
        for _ in range(3):
            models = compiled.manifest.models
            done.extend(maintain(compiled.manifest, compiled.target, models, shop.root / "target", Care(older_than=0)))

    beside = threading.Thread(target=look_after)
    beside.start()
    shop.build("-s", "paid")
    beside.join()
    paid = [one for one in done if one.model.name == "paid"]
    assert any(one.joined for one in paid), done
    shop.build()
    assert shop.ids("paid") == list(range(1, 21))
    assert shop.ids("copy") == list(range(1, 21))
    assert shop.rows("total") == [{"n": 20}]


def test_tables_of_others_are_left_alone_and_durations_are_read(shop: Lab) -> None:
    assert "nothing to maintain" in shop.run("maintain").text or not shop.run("maintain").events
    land(shop, 1, 6)
    shop.build("-s", "paid")
    assert shop.session is not None
    shop.session.spark.sql(f"ALTER TABLE lake.{shop.schema}.paid SET TBLPROPERTIES ('engine.model' = 'somebody')")
    before = shop.table("paid")
    assert cared(shop, "--older-than", "0 seconds") == {}
    assert shop.table("paid") == before
    for arguments in (("--older-than", "10"), ("--orphans-older-than", "2 hours")):
        assert shop.run("maintain", *arguments).code == 2


def lost_file(lab: Lab, name: str, days: int) -> Path:
    """A data file that a killed writer left behind."""
    folder = lab.lake_path / "warehouse" / lab.schema / name / "data"
    path = folder / f"lost-{days}.parquet"
    path.write_bytes(b"half a file")
    at = time.time() - days * 86400 - 60
    os.utime(path, (at, at))
    return path


def test_snapshots_that_expire_while_a_stream_starts_are_noticed(shop: Lab) -> None:
    land(shop, 1, 4)
    shop.build("-s", "paid")
    table = f"{shop.schema}.paid"

    def expired(*_: object) -> None:
        # Somebody compacts and expires between our look at the table and Spark's.
        spark = shop.session.spark  # type: ignore[union-attr]
        spark.sql(f"call lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
        spark.sql(f"call lake.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")

    with reached("resuming", expired):
        result = shop.run("build", "-s", "copy")
    assert (result.code, result.codes()) == (1, ["upstream-history"]), result.text
    assert shop.rows("copy") == []
    shop.build("-s", "copy")
    assert shop.ids("copy") == [1, 2, 3, 4]
    # The writer of the table goes on as well: who compacts and expires loses no rows.
    land(shop, 5, 1)
    shop.build()
    assert (shop.ids("paid"), shop.ids("copy")) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


def test_a_snapshot_behind_a_needed_one_stays_though_a_clock_was_set_back() -> None:
    times = {5: 5000, 4: 1000, 3: 3000, 2: 2000, 1: 900}
    history = tuple(SnapshotFacts(i, i - 1 or None, "append", {}, at) for i, at in times.items())
    table = TableFacts("a uuid", {}, history, ())
    assert not_after(table, [history[2]]) == 1000
    assert not_after(table, [history[0]]) == 5000
    assert not_after(table, []) == float("inf")
