"""`publish: on_tests_pass` of batch tables: the new content is made beside the table and shown when the tests have passed."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lake.commits import STAGED, STAGED_LAYOUT
from tests.fault_injection.points import killing
from tests.lab import Lab, event, killed_alone
from tests.runtime.test_publish import staged

pytestmark = pytest.mark.spark

PAID = """/*---
publish: on_tests_pass
{more}columns:
  {tested}: {{tests: [not_null]}}
---*/
select {select} from {{{{ source('shop', 'events') }}}}
"""
BELOW = "/*---\ncolumns: {n: {tests: [not_null]}}\n---*/\nselect count(*) as n from {{ ref('paid') }}\n"
NAMED = "select * from {{ ref('paid') }}"


def paid(select: str = "id, at, amount", tested: str = "amount", more: str = "") -> str:
    return PAID.format(select=select, tested=tested, more=more)


def prepare(lab: Lab, text: str = "") -> Lab:
    lab.model("paid", text or paid())
    lab.land("a", [event(1, 1), event(2, 1)])
    return lab


def layout(lab: Lab, name: str = "paid") -> dict[str, Any]:
    table = lab.table(name)
    assert table is not None
    return {"columns": table.columns, "main": table.main, "uuid": table.uuid, "properties": table.properties}


def test_the_table_is_replaced_when_the_tests_have_passed_and_left_as_it_was_until_then(lab: Lab) -> None:
    prepare(lab)
    lab.model("below", BELOW)
    # A first build whose tests fail: there is a table, and nothing in it.
    bad = lab.land("bad", [event(9, 1, amount=None)])
    failed = lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["not-published"]), failed.text
    assert (lab.ids("paid"), staged(lab, "paid"), lab.table("below")) == ([], [1, 2, 9], None)
    bad.unlink()
    lab.build()
    assert (lab.ids("paid"), staged(lab, "paid"), lab.rows("below")) == ([1, 2], None, [{"n": 2}])
    first, before = layout(lab), lab.snapshots()
    assert STAGED_LAYOUT not in first["properties"]
    again = lab.build()
    assert {again.model(name)["status"] for name in ("paid", "below")} == {"unchanged"}
    assert lab.snapshots() == before

    # A row that fails: the table, and what is built from it, stay as they were; the rows can be looked at.
    lab.land("b", [event(3, 2), event(4, 2, amount=None)])
    failed = lab.run("build")
    assert (failed.code, failed.codes(), failed.model("below")["status"]) == (1, ["not-published"], "skipped"), (
        failed.text
    )
    (hint,) = [e["hint"] for e in failed.events if e["event"] == "Diagnosed"]
    query = f"select id from {hint.rpartition('To query the staged rows: ')[2]} where amount is null"
    assert lab.session is not None
    assert [row["id"] for row in lab.session.spark.sql(query).collect()] == [4]
    assert (lab.snapshots(), lab.ids("paid")) == (before, [1, 2])
    # The next build has nothing to make: the tests decide again about what waits. Maintenance leaves it alone.
    again = lab.run("build")
    assert (again.model("paid")["status"], again.codes()) == ("unchanged", ["not-published"]), again.text
    assert '"waits": true' in lab.run("maintain", "-s", "paid").text
    assert lab.snapshots() == before

    # Columns, types, partitioning and order change with the rows, or not at all.
    lab.model(
        "paid", paid("cast(id as string) as id, at, amount, kind", more="partition_by: [day(at), kind]\nsort_by: id\n")
    )
    assert lab.run("build").codes() == ["not-published"]
    assert {key: layout(lab)[key] for key in ("columns", "main", "uuid")} == {
        key: first[key] for key in ("columns", "main", "uuid")
    }
    assert lab.ids("paid") == [1, 2]
    lab.land("b", [event(3, 2), event(4, 2)])
    lab.build()
    made = layout(lab)
    assert [name for name, _ in made["columns"]] == ["id", "at", "amount", "kind"]
    assert dict(made["columns"])["id"] == "string"
    assert (made["uuid"], lab.ids("paid"), staged(lab, "paid")) == (first["uuid"], ["1", "2", "3", "4"], None)
    assert STAGED_LAYOUT not in made["properties"]
    assert lab.rows("below") == [{"n": 4}]
    parts = lab.session.spark.sql(f"select partition.* from lake.{lab.schema}.paid.files limit 1").columns
    assert parts == ["at_day", "kind"]


@pytest.mark.nightly
def test_ways_on_after_a_failure(lab: Lab) -> None:
    prepare(lab, paid(more="description: All that was paid.\npersist_docs: true\n"))
    lab.build()
    first = lab.snapshot("paid")
    # A column that is not there yet is tested; it is seen when a test passes, with its description.
    lab.model("paid", paid("id, at, amount, nullif(kind, 'paid') as kind", "kind", "persist_docs: true\n"))
    assert lab.run("build").codes() == ["not-published"]
    assert [name for name, _ in layout(lab)["columns"]] == ["id", "at", "amount"]
    # A test that was too strict, corrected; `run` shows nothing.
    text = paid("id, at, amount, nullif(kind, 'paid') as kind", "id", "persist_docs: true\n")
    lab.model("paid", text.replace("tests: [not_null]", "description: The key., tests: [not_null]"))
    assert lab.run("run").codes() == ["not-published"]
    tested = lab.run("test")
    assert (tested.code, tested.codes()) == (0, []), tested.out
    assert [name for name, _ in layout(lab)["columns"]] == ["id", "at", "amount", "kind"]
    assert lab.session is not None
    assert "The key." in str(lab.session.spark.sql(f"describe lake.{lab.schema}.paid").collect())
    assert lab.snapshot("paid") != first

    # Accepted as it is.
    lab.land("b", [event(3, 1, amount=None)])
    lab.model("paid", paid())
    assert lab.run("build").codes() == ["not-published"]
    accepted = lab.run("publish", "paid", "--accept")
    assert (accepted.code, lab.ids("paid")) == (0, [1, 2, 3]), accepted.text
    assert lab.run("build").codes() == []

    # Left out again: the new content is made at once, whatever waited.
    lab.land("c", [event(4, 1, amount=None)])
    assert lab.run("build").codes() == ["not-published"]
    lab.model("paid", paid().replace("publish: on_tests_pass\n", ""))
    lab.run("build")
    assert (lab.ids("paid"), staged(lab, "paid")) == ([1, 2, 3, 4], None)
    assert STAGED_LAYOUT not in layout(lab)["properties"]


@pytest.mark.nightly
def test_partitions_wait_as_well(lab: Lab) -> None:
    text = paid("id, at, amount", more="overwrite: partitions\npartition_by: [id]\n")
    prepare(lab, text)
    lab.land("a", [event(1, 1, amount=None)])
    assert lab.run("build").codes() == ["not-published"]
    # What waits is kept: other partitions come beside it, the same ones take its place.
    lab.land("a", [event(2, 1)])
    assert (lab.run("build").codes(), lab.ids("paid"), staged(lab, "paid")) == (["not-published"], [], [1, 2])
    lab.land("a", [event(1, 2)])
    lab.build()
    assert (lab.ids("paid"), staged(lab, "paid")) == ([1, 2], None)
    assert lab.build().model("paid")["status"] == "unchanged"
    # A full refresh that fails goes with the next build, which goes on from what readers see.
    lab.land("a", [event(3, 1, amount=None)])
    assert (lab.run("build", "-f").codes(), staged(lab, "paid")) == (["not-published"], [3])
    lab.land("a", [event(4, 1)])
    lab.build()
    assert (lab.ids("paid"), staged(lab, "paid")) == ([1, 2, 4], None)
    # Rows that wait would be lost if readers were shown others.
    lab.land("a", [event(5, 1, amount=None)])
    assert lab.run("build").codes() == ["not-published"]
    lab.model("paid", text.replace("publish: on_tests_pass\n", ""))
    assert lab.run("build").codes() == ["staged-rows"]


# Before the commit to the branch, with files that nobody names, and behind it; the tests have passed, and the table is not
# shown, or it is.
POINTS = {"before": "staging", "written": "written", "behind": "staged", "held": "publishing", "shown": "published"}


@pytest.mark.gate
def test_kills_on_each_side_of_both_commits(lab: Lab) -> None:
    prepare(lab)
    (lab.root / "models" / "paid.sql").unlink()
    for name in POINTS:
        lab.model(name, paid())
    lab.build()
    first = lab.snapshots()
    lab.land("b", [event(3, 2)])
    # Another type and other columns: half of it would be the rows of one with the columns of the other.
    changed = paid("cast(id as string) as id, amount, kind", more="partition_by: [kind]\n")
    for name in POINTS:
        lab.model(name, changed)
    killed_alone(lab.root, "build", "--threads", "5", script=killing(POINTS))
    seen = {name: lab.ids(name) for name in POINTS}
    assert seen == {"before": [1, 2], "written": [1, 2], "behind": [1, 2], "held": [1, 2], "shown": ["1", "2", "3"]}
    tables = {name: lab.table(name) for name in POINTS}
    assert {name: STAGED in table.branches for name, table in tables.items() if table is not None} == {
        "before": False,
        "written": False,
        "behind": True,
        "held": True,
        "shown": False,
    }
    assert {name for name in POINTS if lab.snapshot(name) != first[name]} == {"shown"}

    done = lab.build()
    status = {name: done.model(name)["status"] for name in POINTS}
    # What was noted is not made again: the tests decide about it. Of `behind` only the branch knew.
    assert status == dict.fromkeys(("before", "written", "behind"), "success") | dict.fromkeys(
        ("held", "shown"), "unchanged"
    )
    for name in POINTS:
        assert (lab.ids(name), staged(lab, name)) == (["1", "2", "3"], None), name
        assert STAGED_LAYOUT not in layout(lab, name)["properties"]
    before = lab.snapshots()
    assert {lab.build().model(name)["status"] for name in POINTS} == {"unchanged"}
    assert lab.snapshots() == before
