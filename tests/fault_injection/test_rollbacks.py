"""Somebody rolls a table back, or drops a branch, while its stream runs; an answer of the catalog is lost."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StateError
from engine.lake import commit_guard, merge_statement, table_writer
from tests.fault_injection.points import reached
from tests.lab import Lab, event

pytestmark = pytest.mark.spark

PAID = (
    "/*---\nstreams: {shop.events: {max_files_per_trigger: 1}}\n---*/\nselect id from {{ source('shop', 'events') }}\n"
)
LATEST = PAID.replace("---*/", "unique_key: id\n---*/")
STAGED = PAID.replace("---*/", "publish: on_tests_pass\ncolumns: {id: {tests: [not_null]}}\n---*/")


def land(lab: Lab, *numbers: int) -> None:
    for number in numbers:
        lab.land(f"{number:03}", [event(number)])


@contextmanager
def before_commit(what: Callable[[str], object], batch: int) -> Iterator[None]:
    """Do something with a table once, right before a micro-batch is committed to it."""
    done: set[str] = set()

    def act(model: str, number: int | None, _: str) -> None:
        if number == batch and model not in done:
            done.add(model)
            what(model)

    with reached("committing", act):
        yield


def roll_back(lab: Lab, name: str) -> None:
    """To the first snapshot."""
    table = lab.table(name)
    assert table is not None
    lab.session.spark.newSession().sql(  # type: ignore[union-attr]
        f"call lake.system.rollback_to_snapshot('{lab.schema}.{name}', {table.history[-1].id})"
    )


def test_a_table_that_is_rolled_back_while_its_stream_runs_ends_the_model(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("latest", LATEST)
    lab.model("staged", STAGED)
    land(lab, 1, 2, 3, 4)

    def undo(name: str) -> None:
        if name == "staged":
            lab.session.spark.sql(f"alter table lake.{lab.schema}.staged drop branch engine_staged")  # type: ignore[union-attr]
        else:
            roll_back(lab, name)

    with before_commit(undo, batch=2):
        result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["table-rolled-back"] * 3), result.text
    # Nothing was committed behind the rows that are gone.
    assert (lab.ids("paid"), lab.ids("latest"), lab.ids("staged")) == ([1], [1], [])
    assert "Traceback" not in result.text
    assert set(lab.run("build").codes()) == {"table-rolled-back"}


# The catalog makes the next change of a table and says that it did not: what is left of an answer that was lost.
LOST = """
create table armed (name text);
create trigger lost before update on iceberg_tables when new.table_name in (select name from armed) begin
  delete from armed where name = new.table_name;
  update iceberg_tables set metadata_location = new.metadata_location,
    previous_metadata_location = new.previous_metadata_location
    where table_namespace = new.table_namespace and table_name = new.table_name;
  select raise(ignore);
end;
"""


@pytest.mark.gate
def test_a_commit_whose_answer_was_lost_is_made_once(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("latest", LATEST)
    land(lab, 1, 2)
    lab.build()
    lab.land("again", [{"id": number, "at": "2024-05-01T10:00:00Z"} for number in (2, 3)])
    catalog = sqlite3.connect(lab.lake_path / "catalog.db", isolation_level=None, check_same_thread=False)
    catalog.executescript(LOST)
    try:
        with before_commit(lambda name: catalog.execute("insert into armed values (?)", (name,)), batch=2):
            lab.build()
        assert catalog.execute("select * from armed").fetchall() == []
    finally:
        catalog.executescript("drop trigger lost; drop table armed")
        catalog.close()
    assert (lab.ids("paid"), lab.ids("latest")) == ([1, 2, 2, 3], [1, 2, 3])
    # What is left can be looked after, and goes on.
    assert lab.run("maintain", "--older-than", "0 seconds").code == 0
    land(lab, 5)
    lab.build()
    assert (lab.ids("paid"), lab.ids("latest")) == ([1, 2, 2, 3, 5], [1, 2, 3, 5])


@pytest.mark.nightly_except("merge")
@pytest.mark.parametrize("how", ["append", "overwrite", "merge"])
def test_a_rollback_between_the_check_and_the_commit_is_found(lab: Lab, how: str) -> None:
    spark, table = lab.session.spark, f"lake.{lab.schema}.paid"  # type: ignore[union-attr]
    spark.sql(f"create namespace lake.{lab.schema}")
    spark.sql(f"create table {table} (id int) using iceberg")

    def rows(number: int) -> Any:
        return spark.createDataFrame([(number,)], "id int")

    for number in (1, 2):
        table_writer.append(table_writer.stage(rows(number), table), {"batch-id": str(number)})
    known = lab.table("paid")
    assert known is not None

    def back(*_: object) -> None:
        if lab.snapshot("paid") == known.snapshot:
            roll_back(lab, "paid")

    expected, markers = commit_guard.ExpectedTable("paid", known.uuid, known.snapshot), {"batch-id": "3"}
    commit: Callable[[], object] = {
        "append": lambda: table_writer.append(table_writer.stage(rows(3), table), markers, expected=expected),
        "overwrite": lambda: table_writer.overwrite(table_writer.stage(rows(3), table), markers, expected=expected),
        "merge": lambda: merge_statement.merge(
            rows(3), table, merge_statement.Merge(("id",)), markers, expected=expected
        ),
    }[how]
    with reached("checked", back), pytest.raises(StateError) as failure:
        commit()
    assert failure.value.diagnostic.code == "table-rolled-back"
    assert lab.ids("paid") == [1]
    left = lab.table("paid")
    assert left is not None
    assert left.snapshots == known.snapshots
    # A table of the same name is another one.
    spark.sql(f"drop table {table} purge")
    spark.sql(f"create table {table} (id int) using iceberg")
    staged = table_writer.stage(rows(4), table)
    with pytest.raises(StateError) as failure:
        table_writer.append(staged, markers, expected=expected)
    assert failure.value.diagnostic.code == "table-replaced"
    assert lab.rows("paid") == []


FORGETFUL = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
deletes_remembered: 1 second
---*/
select id, at, kind from {{ source('shop', 'events') }}
"""
# The catalog refuses the next change of a table, as it does when another writer was first.
BUSY = """
create table armed (name text);
create trigger busy before update on iceberg_tables when new.table_name in (select name from armed) begin
  delete from armed where name = new.table_name;
  select raise(ignore);
end;
"""


@pytest.mark.nightly
def test_old_deletes_are_forgotten_beside_another_writer(lab: Lab) -> None:
    lab.model("latest", FORGETFUL)
    lab.land("a", [{"id": 1, "at": "2024-05-01T10:00:00Z", "kind": "deleted"}])
    lab.build()
    table = f"lake.{lab.schema}.latest__deleted"
    lab.session.spark.sql(f"alter table {table} set tblproperties ('commit.retry.num-retries' = '0')")  # type: ignore[union-attr]
    lab.land("b", [{"id": 2, "at": "2024-05-01T10:00:00Z", "kind": "deleted"}])
    time.sleep(1.1)  # the first delete is older than it is remembered
    catalog = sqlite3.connect(lab.lake_path / "catalog.db", isolation_level=None)
    catalog.executescript(BUSY)
    try:
        catalog.execute("insert into armed values ('latest__deleted')")
        lab.build()
        assert catalog.execute("select * from armed").fetchall() == []
    finally:
        catalog.executescript("drop trigger busy; drop table armed")
        catalog.close()
    assert [r["key"]["id"] for r in lab.rows("latest__deleted")] == [2]


def test_a_clock_that_was_set_back_is_named(lab: Lab) -> None:
    lab.model("paid", PAID)
    land(lab, 1)
    lab.build()
    # The commit so far was made by a machine whose clock is ahead.
    catalog = sqlite3.connect(lab.lake_path / "catalog.db", isolation_level=None)
    where = "where table_name = 'paid' and table_namespace = ?"
    (location,) = catalog.execute(f"select metadata_location from iceberg_tables {where}", (lab.schema,)).fetchone()
    metadata = json.loads(Path(location.removeprefix("file:")).read_text())
    for part in (metadata, *metadata["snapshots"], *metadata["snapshot-log"]):
        part["last-updated-ms" if part is metadata else "timestamp-ms"] += 600_000
    ahead = location.replace(".metadata.json", "-ahead.metadata.json")
    Path(ahead.removeprefix("file:")).write_text(json.dumps(metadata))
    catalog.execute(f"update iceberg_tables set metadata_location = ? {where}", (ahead, lab.schema))
    catalog.close()
    land(lab, 2)
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["clock-behind"]), result.text
    assert lab.ids("paid") == [1]
