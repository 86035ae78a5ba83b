"""`engine erase`: rows leave the table, what is beside it and the disk; streams of it continue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow.parquet
import pytest

from engine.cli.main import invoke
from engine.lake.table_facts import TableFacts
from engine.state import TableState, locked
from tests.fault_injection.points import kill, killing, reached
from tests.lab import EVENTS, Lab, Result, event, killed_alone

pytestmark = pytest.mark.spark

STREAM = """/*---
streams: [shop.events]
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
READER = "/*---\nstreams: [paid]\n---*/\nselect id as number, kind from {{ ref('paid') }}\n"
JANE = "kind = 'jane'"


def shop(lab: Lab, text: str = STREAM) -> None:
    lab.model("paid", text)


def erase(lab: Lab, where: str = JANE, *more: str, model: str = "paid", code: int = 0) -> Result:
    result = lab.run("erase", model, "--where", where, *(more or ("--yes",)))
    assert result.code == code, result.text
    return result


def erased(result: Result) -> dict[str, dict[str, Any]]:
    return {e["relation"].rpartition(".")[2]: e for e in result.events if e["event"] == "RowsErased"}


def on_disk(lab: Lab, *tables: str, value: str = "jane") -> list[str]:
    """The Parquet files of tables and of state that hold a value in any column, as a string or inside one."""
    folders = [lab.lake_path / "warehouse" / lab.schema / table for table in tables]
    found = []
    for folder in [*folders, lab.state]:
        files = [path for path in sorted(folder.rglob("*.parquet")) if path.is_file()]
        found += [path.name for path in files if value in str(pyarrow.parquet.ParquetFile(path).read().to_pylist())]
    return found


def facts(lab: Lab, name: str) -> TableFacts:
    table = lab.table(name)
    assert table is not None
    return table


def test_rows_leave_the_table_and_the_disk_and_a_stream_of_it_continues(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", [event(1, kind="jane"), event(2, kind="joe")])
    lab.build()
    lab.land("b", [event(3, kind="jane"), event(4, kind="ann")])
    lab.build()
    assert on_disk(lab, "paid")
    result = erase(lab)
    assert erased(result)["paid"]["rows"] == 2
    assert lab.ids("paid") == [2, 4]
    assert on_disk(lab, "paid") == []
    assert len(facts(lab, "paid").history) == 1
    # Bounds of the files that went are in no list either.
    entries = lab.session.spark.table(f"lake.{lab.schema}.paid.entries")  # type: ignore[union-attr]
    assert [row["status"] for row in entries.select("status").collect()] == [0] * entries.count()
    lab.land("c", [event(5, kind="joe")])
    lab.build()
    assert lab.ids("paid") == [2, 4, 5]
    assert sorted(row["number"] for row in lab.rows("copy")) == [1, 2, 3, 4, 5]
    assert lab.build().model("copy")["status"] == "unchanged"


KEYED = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'void'
expectations: [{name: paid, check: amount > 0, on_fail: quarantine}]
HISTORY---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""


@pytest.mark.nightly_cases("3")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_leave_quarantine_deleted_keys_kept_batches_and_earlier_versions(lab: Lab, version: int) -> None:
    """The row of id 1 was updated and then deleted: it is in no version that can be read now, and in files."""
    properties = "table_properties: {write.merge.mode: merge-on-read}\n"
    shop(lab, KEYED.replace("HISTORY", f"format_version: {version}\n{properties}"))
    lab.land("a", [event(1, 1, "jane"), event(2, 2), event(3, 3, "jane", amount=-1.0), event(4, 4, amount=-1.0)])
    lab.build()
    lab.land("b", [event(1, 2, "moved"), event(5, 3, "jane")])
    lab.land("c", [event(1, 5, "void"), event(6, 5)])
    lab.build()
    kept = lab.state / "paid" / "1" / "batches" / "9-old"
    kept.mkdir(parents=True)
    (kept / "part-0.parquet").write_bytes(b"jane")
    result = erase(lab, "id in (1, 3)")
    done = erased(result)
    assert {name: one["rows"] for name, one in done.items()} == {"paid": 0, "paid__deleted": 1, "paid__quarantine": 1}
    assert done["paid"]["files"] == 1
    assert lab.ids("paid") == [2, 5, 6]
    assert lab.rows("paid__deleted") == []
    assert [row["row"] for row in lab.rows("paid__quarantine")] == [
        '{"id":4,"at":"2024-05-01T10:04:00.000000Z","kind":"paid","amount":-1.0}'
    ]
    assert not kept.parent.exists()
    assert on_disk(lab, "paid", "paid__deleted", "paid__quarantine", value="'id': 1,") == []
    assert on_disk(lab, "paid", "paid__deleted", "paid__quarantine", value='"id":3,') == []
    assert len(on_disk(lab, "paid")) == 1
    lab.land("d", [event(2, 9, "paid", 7.0), event(9, 9)])
    lab.build()
    assert lab.ids("paid") == [2, 5, 6, 9]
    assert {row["id"]: row["amount"] for row in lab.rows("paid")}[2] == 7.0


@pytest.mark.nightly
def test_all_versions_of_a_history_go(lab: Lab) -> None:
    shop(lab, KEYED.replace("HISTORY", "history: true\n"))
    lab.land("a", [event(1, 1, "jane"), event(2, 1)])
    lab.build()
    lab.land("b", [event(1, 2, "jane"), event(2, 2)])
    lab.build()
    assert len(lab.rows("paid")) == 4
    assert erased(erase(lab, "id = 1"))["paid"]["rows"] == 2
    assert [row["id"] for row in lab.rows("paid")] == [2, 2]
    assert on_disk(lab, "paid") == []
    lab.land("c", [event(2, 3)])
    lab.build()
    assert sorted(row["is_current"] for row in lab.rows("paid")) == [False, False, True]


def test_what_the_condition_cannot_be_asked_of_is_said_and_has_a_condition_of_its_own(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS.replace("path: landing", "on_bad_record: quarantine\n        path: landing"))
    lab.model("paid", STREAM)
    lab.land("a", [event(1, kind="jane")])
    (lab.root / "landing/events/b.json").write_text('{"id": 2, "kind": "jane\n')
    lab.build()
    assert lab.ids("paid") == [1]
    found = erase(lab, JANE, "--dry-run").events
    (quarantine,) = [e for e in found if e.get("role") == "quarantine"]
    assert (quarantine["rows"], quarantine["not_searched"]) == (0, 1)
    erase(lab, JANE, "--quarantine", "cast(raw as string) like '%jane%'", "--yes")
    assert lab.rows("paid__quarantine") == []
    assert on_disk(lab, "paid", "paid__quarantine") == []


@pytest.mark.nightly
def test_a_reader_that_began_with_an_initial_snapshot_continues(lab: Lab) -> None:
    """Once before anything was committed after it, and once behind later commits."""
    shop(lab)
    lab.land("a", [event(1, kind="jane"), event(2)])
    lab.build()
    lab.run("maintain", "--older-than", "0 seconds")
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"alter table lake.{lab.schema}.paid set tblproperties ('history.expire.min-snapshots-to-keep' = '1')")
    lab.land("b", [event(3, kind="jane")])
    lab.build()
    lab.run("maintain", "--older-than", "0 seconds")
    lab.model("copy", READER)
    lab.build()
    (seed,) = [path.name for path in (lab.lake_path / "warehouse" / lab.schema).iterdir() if "__seed" in path.name]
    assert on_disk(lab, seed)
    for number in (4, 5):
        result = erase(lab, "kind = 'jane'")
        assert erased(result)["paid"]["role"] == "table"
        assert on_disk(lab, "paid", seed) == []
        lab.land(f"c{number}", [event(number, kind="jane")])
        lab.build()
        assert sorted(row["number"] for row in lab.rows("copy")) == list(range(1, number + 1))
    assert lab.ids("paid") == [2, 5]


WRONG = {
    "kind = 'jane'; drop table x": "condition-syntax",
    "kind in (select kind from x)": "condition-syntax",
    "exists (select 1)": "condition-syntax",
    "count(*) > 1": "condition-syntax",
    "row_number() over (order by id) = 1": "condition-syntax",
    "kind = 'jane' -- or so": "condition-syntax",
    "rand() < 0.5 or id = 1": "condition-syntax",
    "at < now()": "condition-syntax",
    "mine(kind)": "condition-syntax",
    "true": "condition-syntax",
    "id": "condition-syntax",
    "id + 1": "condition-syntax",
    "": "condition-syntax",
    "kind = ": "condition-syntax",
    "kind = 'jane') or (1 = 1": "condition-syntax",
    "mail = 'jane'": "unknown-column",
}


def test_what_is_wrong_is_refused_and_a_dry_run_changes_nothing(lab: Lab) -> None:
    shop(lab)
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('paid') }}\n")
    assert erase(lab).events == []
    lab.land("a", [event(1, kind="jane"), event(2)])
    lab.build()
    before = facts(lab, "paid")
    for where, code in WRONG.items():
        result = lab.run("erase", "paid", "--where", where, "--yes")
        assert (where, result.code, result.codes()) == (where, 2, [code])
    for arguments in (("gone", "--where", JANE), ("seen", "--where", "id = 1"), ("paid", "--where", JANE)):
        result = lab.run("erase", *arguments)
        assert (result.code, result.codes()) == (2, ["usage"])
    assert lab.run("erase", "paid", "--where", JANE, "--quarantine", "raw is null", "--yes").codes() == ["usage"]
    assert lab.run("erase", "paid", "--where", "cast(kind as int) = 1", "--yes").codes() == ["query-failed"]
    (found,) = [e for e in erase(lab, JANE, "--dry-run").events if e["event"] == "RowsFound"]
    assert (found["rows"], found["files"], found["older_files"]) == (1, 1, 0)
    assert facts(lab, "paid") == before
    assert erased(erase(lab, "kind = 'nobody'")) == {}
    assert facts(lab, "paid") == before


def test_unread_rows_tags_and_running_builds_keep_rows_from_being_erased(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", [event(1, kind="jane"), event(2)])
    lab.build()
    lab.land("b", [event(3)])
    lab.build("-s", "paid")
    before = facts(lab, "paid")
    result = erase(lab, code=1)
    assert result.codes() == ["erase-unread"]
    assert "'copy' has not read 1 snapshot of" in result.text
    assert facts(lab, "paid") == before
    lab.build()
    spark, table = lab.session.spark, f"lake.{lab.schema}.paid"  # type: ignore[union-attr]
    spark.sql(f"alter table {table} create tag audit")
    assert erase(lab, code=1).codes() == ["erase-blocked"]
    spark.sql(f"alter table {table} drop tag audit")
    for name in ("paid", "copy"):
        folder = TableState(lab.root / ".engine" / "state", "lake", lab.schema, name)
        with locked([folder]):
            assert erase(lab, code=1).codes() == ["table-locked"]
            erase(lab, JANE, "--dry-run")
    assert facts(lab, "paid") == replace(before, refs={})
    erase(lab)
    assert lab.ids("paid") == [2, 3]


POINTS = ("committing", "written", "erased", "reader moved", "expired")


@pytest.mark.gate
@pytest.mark.parametrize("point", POINTS)
def test_a_failure_at_any_point_is_finished_by_the_same_command(lab: Lab, point: str) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.model("total", "select count(*) as n from {{ ref('paid') }}\n")
    lab.land("a", [event(1, kind="jane"), event(2)])
    lab.build()
    lab.land("b", [event(3, kind="jane")])
    lab.build()
    with reached(point, kill, 1) as seen:
        assert lab.run("erase", "paid", "--where", JANE, "--yes").code == 2
    assert seen == ["paid"]
    if point != "committing":
        # A build in between sees a table in order, whatever was done.
        lab.build("-s", "total")
        assert lab.rows("total") == [{"n": len(lab.ids("paid"))}]
        lab.land("c", [event(4)])
        lab.build()
        assert sorted(row["number"] for row in lab.rows("copy")) == [1, 2, 3, 4]
        assert lab.rows("total") == [{"n": len(lab.ids("paid"))}]
    erase(lab)
    assert on_disk(lab, "paid") == []
    lab.land("d", [event(5)])
    lab.build()
    later = [] if point == "committing" else [4]
    assert lab.ids("paid") == [2, *later, 5]
    assert sorted(row["number"] for row in lab.rows("copy")) == [1, 2, 3, *later, 5]
    assert lab.rows("total") == [{"n": len(lab.ids("paid"))}]


@pytest.mark.gate
def test_a_killed_command_is_finished_and_so_are_the_files_of_a_killed_build(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", [event(1, kind="jane"), event(2)])
    killed_alone(lab.root, "build", "-s", "paid", script=killing({"paid": ("written", 0)}))
    assert len(on_disk(lab, "paid")) == 1
    lab.build()
    assert len(on_disk(lab, "paid")) == 2
    killed_alone(lab.root, "erase", "paid", "--where", JANE, "--yes", script=killing({"paid": "erased"}))
    assert lab.ids("paid") == [2]
    assert len(on_disk(lab, "paid")) == 2
    done = erased(erase(lab))
    assert (done["paid"]["rows"], done["paid"]["older_files"], done["paid"]["other_files"]) == (0, 1, 1)
    assert on_disk(lab, "paid") == []
    lab.land("b", [event(3)])
    lab.build()
    assert lab.ids("paid") == [2, 3]
    assert sorted(row["number"] for row in lab.rows("copy")) == [1, 2, 3]


HOURLY = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
state_store: {partitions: 2}
---*/
select hour.start as hour, kind, count(*) as n from {{ source('shop', 'events') }} group by hour, kind
"""
STAGED = "/*---\nstreams: [shop.events]\npublish: on_tests_pass\n---*/\nselect id, kind from {{ source('shop', 'events') }}\n"


def copies(result: Result) -> dict[str, str]:
    return {e["node"]: e["command"] for e in result.events if e["event"] == "OtherCopy"}


def test_other_copies_are_listed_by_lineage_with_their_commands(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER.replace("kind from", "kind as who from"))
    lab.model("deep", "select number, who as `the kind` from {{ ref('copy') }}\n")
    lab.model("total", "select upper(kind) as kind, count(*) as n from {{ ref('paid') }} group by 1\n")
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('paid') }}\n")
    lab.model("hourly", HOURLY)
    lab.land("a", [event(1, kind="jane"), event(2)])
    lab.build()
    where = "kind = 'kind' and id = 1"
    assert copies(erase(lab, where, "--dry-run")) == {
        "copy": "engine erase copy --where \"who = 'kind' and number = 1\"",
        "deep": "engine build -s deep, then engine erase deep --where \"`the kind` = 'kind' and number = 1\"",
        "total": "engine build -f -s total",
        "shop.events": "",
    }
    upstream = copies(erase(lab, "`the kind` = 'jane'", "--dry-run", model="deep"))
    assert upstream["copy"] == "engine erase copy --where \"who = 'jane'\""
    assert upstream["paid"] == "engine erase paid --where \"kind = 'jane'\""
    assert copies(erase(lab, JANE, "--dry-run", model="hourly"))["hourly"] == "engine build -f -s hourly"
    assert lab.capsys is not None
    lab.capsys.readouterr()
    assert invoke(["erase", "paid", "--where", JANE, "--dry-run", "--project-dir", str(lab.root)]) == 0
    shown = lab.capsys.readouterr().out
    assert f"table            lake.{lab.schema}.paid  (1 row)" in shown
    assert "deep             rows that were read from it" in shown


@pytest.mark.nightly
def test_batch_tables_windows_and_staged_models_continue(lab: Lab) -> None:
    shop(lab)
    lab.model("hourly", HOURLY)
    lab.model("held", STAGED)
    lab.model("some", "/*---\npartition_by: [kind]\n---*/\nselect id, kind from {{ ref('paid') }}\n")
    lab.land("a", [event(1, "10:00", "jane"), event(2, "10:00"), event(3, "12:00")])
    lab.build()
    erase(lab, model="held")
    erase(lab, model="hourly")
    erase(lab, model="some")
    assert [lab.ids("held"), lab.ids("some"), len(lab.rows("hourly"))] == [[2, 3], [2, 3], 1]
    assert lab.build().model("some")["status"] == "unchanged"
    assert on_disk(lab, "held", "some", "hourly") == []
    lab.land("b", [event(4, "14:00")])
    lab.build()
    assert lab.ids("held") == [2, 3, 4]
    assert len(lab.rows("hourly")) == 2
    # Its input still has the row, which did not change since.
    assert lab.ids("some") == [2, 3, 4]
