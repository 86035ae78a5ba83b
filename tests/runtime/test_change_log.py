"""`history: changes` of a batch table: the changes of a merged table, which streams read."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from engine import kill_points
from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCE = sources_yaml("crm", events="id int, name string, v double, seq int, op string")
CUSTOMERS = """/*---
streams: [crm.events]
unique_key: id
sequence_by: seq
delete_when: op = 'd'
exclude: [op]
---*/
select id, name, v, seq, op from {{ source('crm', 'events') }}
"""
CHANGES = """/*---
materialized: table
history: changes
unique_key: id
---*/
select {columns} from {{{{ ref('customers') }}}}{where}
"""
MIRROR = """/*---
streams: [customer_changes]
unique_key: id
sequence_by: changed_at
delete_when: change_type = 'delete'
exclude: [change_type]
---*/
select id, name, v, changed_at, change_type from {{ ref('customer_changes') }} where change_type <> 'update_before'
"""
Row = dict[str, Any]
State = dict[int | None, tuple[Any, ...]]


@pytest.fixture
def crm(lab: Lab) -> Lab:
    lab.write("sources/crm.yml", SOURCE)
    lab.model("customers", CUSTOMERS)
    keep(lab)
    return lab


def keep(lab: Lab, columns: str = "id, name, v", where: str = "") -> None:
    lab.model("customer_changes", CHANGES.format(columns=columns, where=where))


def land(lab: Lab, changes: Iterable[Row]) -> None:
    lab.land(f"{len(list(lab.root.glob('landing/events/*'))):03}", changes)


def put(key: int | None, name: str | None, v: float | None, seq: int) -> Row:
    return {"id": key, "name": name, "v": v, "seq": seq, "op": "u"}


def gone(key: int | None, seq: int) -> Row:
    return {"id": key, "seq": seq, "op": "d"}


def now(lab: Lab, name: str = "customers") -> State:
    return {row["id"]: (row["name"], row["v"]) for row in lab.rows(name)}


def after(lab: Lab) -> State:
    """The rows that the changes add up to; each change is checked against those before it."""
    found: State = {}
    rows = sorted(
        lab.rows("customer_changes"), key=lambda row: (row["changed_at"], row["change_type"] != "update_before")
    )
    for row in rows:
        key, values, kind = row["id"], (row["name"], row["v"]), row["change_type"]
        if kind == "insert":
            assert key not in found
        else:
            assert key in found
        if kind in {"update_before", "delete"}:
            assert found[key] == values
        if kind == "delete":
            del found[key]
        elif kind != "update_before":
            found[key] = values
    return found


def kinds(lab: Lab) -> list[tuple[Any, ...]]:
    rows = sorted(lab.rows("customer_changes"), key=lambda row: (row["changed_at"], row["id"], row["change_type"]))
    return [(row["change_type"], row["id"], row["v"]) for row in rows]


def note(lab: Lab, *arguments: str) -> str:
    return str(lab.build(*arguments).model("customer_changes").get("note", ""))


def test_a_merged_table_is_read_as_a_stream_of_its_changes(crm):
    crm.model("mirror", MIRROR)
    crm.model("audit", "/*---\nstreams: [customer_changes]\n---*/\nselect * from {{ ref('customer_changes') }}")
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    assert "compared" not in note(crm)
    land(crm, [put(1, "a", 9.0, 2), gone(2, 2), put(3, "c", 3.0, 1)])
    assert note(crm).startswith("compared ")
    assert kinds(crm) == [
        ("insert", 1, 1.0), ("insert", 2, 2.0),
        ("update_after", 1, 9.0), ("update_before", 1, 1.0), ("delete", 2, 2.0), ("insert", 3, 3.0),
    ]  # fmt: skip
    assert now(crm, "mirror") == now(crm) == {1: ("a", 9.0), 3: ("c", 3.0)}
    assert len(crm.rows("audit")) == 6
    snapshots = crm.snapshots()
    assert {one["status"] for one in crm.build().events if one["event"] == "ModelFinished"} == {"unchanged"}
    # A change that the query does not read.
    land(crm, [put(1, "a", 9.0, 3)])
    crm.build()
    assert crm.snapshot("customers") != snapshots["customers"]
    assert crm.snapshot("customer_changes") == snapshots["customer_changes"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_changes_add_up_to_the_table_after_each_build(crm, seed):
    chance = random.Random(seed)
    where = chance.choice(["", " where v > 2"])
    keep(crm, where=where)
    crm.model("mirror", MIRROR)
    for step in range(5):
        rows = {}
        for key in (None, *range(6)):
            if chance.random() < 0.5:
                change = (
                    gone(key, step) if chance.random() < 0.3 else put(key, "n", chance.choice([1.0, 3.0, None]), step)
                )
                rows[key] = change
        land(crm, [*rows.values(), put(99, "n", 5.0 + step, step)])
        if chance.random() < 0.3:
            crm.build("-s", "customers")
            continue
        crm.build()
        expected = {k: v for k, v in now(crm).items() if not where or (v[1] is not None and v[1] > 2)}
        assert after(crm) == expected == now(crm, "mirror"), step


POINTS = ("merging", "written", "committing", "committed")


@pytest.mark.gate
@pytest.mark.nightly_except("few")
@pytest.mark.parametrize(
    ("directly", "points"),
    [(True, POINTS[1::2]), (True, POINTS), (False, POINTS)],
    ids=["few", "all", "all, with groups"],
)
def test_a_build_that_ends_at_any_point_is_repeated_without_a_change_twice(crm, directly, points):
    keep(crm, where="" if directly else " group by all")
    land(crm, [put(key, "a", 1.0, 0) for key in range(3)])
    crm.build()
    for step, point in enumerate(points, 1):
        land(crm, [put(0, "a", 1.0 + step, step), gone(step, step), put(step + 2, "c", 1.0, step)])
        crm.build("-s", "customers")

        def end(reached: str, table: str, *_: object, point: str = point) -> None:
            if (reached, table) == (point, "customer_changes"):
                raise KeyboardInterrupt

        stop = kill_points.listen(end)
        try:
            assert crm.run("build").code != 0
        finally:
            stop()
        crm.build()
        assert after(crm) == now(crm)
        assert len(kinds(crm)) == 3 + 4 * step


def test_an_edit_of_the_query_is_a_change_of_its_rows(crm):
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    crm.build()
    keep(crm, columns="id, name, v * 2 as v")
    plan = crm.run("plan", "--output", "json")
    assert plan.code == 0
    assert "compared" not in note(crm)
    assert after(crm) == {1: ("a", 2.0), 2: ("b", 4.0)}
    assert len(kinds(crm)) == 6
    keep(crm, columns="id, name, v * 2 as v", where=" where v < 2")
    crm.build()
    assert after(crm) == {1: ("a", 2.0)}


def test_keys_that_are_there_twice_and_extracts_without_rows_are_errors_that_write_nothing(crm):
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    crm.model("names", "/*---\nmaterialized: table\n---*/\nselect name, v as id, v from {{ ref('customers') }}")
    crm.model("customer_changes", CHANGES.format(columns="*", where="").replace("customers", "names"))
    crm.build()
    before = crm.snapshot("customer_changes")
    land(crm, [put(3, "c", 2.0, 1)])
    failed = crm.run("build")
    assert failed.codes() == ["duplicate-key"]
    assert '{"id":2.0}' in failed.model("customer_changes")["message"]
    land(crm, [gone(1, 5), gone(2, 5), gone(3, 5)])
    assert crm.run("build").codes() == ["extract-empty"]
    assert crm.snapshot("customer_changes") == before
    land(crm, [put(4, "d", 4.0, 1)])
    crm.build()
    assert after(crm) == {4.0: ("d", 4.0)}


def test_a_full_refresh_of_the_input_is_a_change_of_what_differs(crm):
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    crm.build()
    crm.build("-f", "-s", "customers")
    crm.build()
    assert len(kinds(crm)) == 2
    assert crm.run("build", "-f", "-s", "customer_changes").codes() == ["full-refresh-protected"]


def test_days_of_changes_are_partitions_and_new_columns_are_changes(crm):
    more = "on_schema_change: append_columns\npartition_by: day(changed_at)\n"
    text = CHANGES.replace("unique_key: id\n", f"unique_key: id\n{more}")
    crm.model("customer_changes", text.format(columns="id, v", where=""))
    land(crm, [put(1, "a", 1.0, 1), put(2, None, 2.0, 1)])
    crm.build()
    crm.model("customer_changes", text.format(columns="id, v, name", where=""))
    crm.build()
    assert kinds(crm) == [
        ("insert", 1, 1.0), ("insert", 2, 2.0), ("update_after", 1, 1.0), ("update_before", 1, 1.0),
    ]  # fmt: skip
    land(crm, [put(2, "b", 2.0, 2)])
    # Its table was written by this query.
    assert note(crm).startswith("compared ")
    assert {row["name"] for row in crm.rows("customer_changes") if row["change_type"] == "update_after"} == {"a", "b"}


def test_an_earlier_snapshot_that_has_expired_is_not_needed(crm):
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    crm.build()
    land(crm, [put(1, "a", 3.0, 2)])
    crm.build("-s", "customers")
    late = "older_than => TIMESTAMP '2100-01-01', retain_last => 1"
    crm.session.spark.sql(f"CALL lake.system.expire_snapshots(table => '{crm.schema}.customers', {late})")
    assert "'customers' that it was computed from has expired" in crm.run("plan", "--output", "json").text
    assert "compared" not in note(crm)
    assert after(crm) == now(crm)


def test_changes_between_files_that_are_full_extracts(crm):
    crm.write(
        "sources/dumps.yml",
        sources_yaml("dumps", people={"full_extracts": "by_name", "schema": "id int, name string, v double"}),
    )
    crm.model(
        "customer_changes",
        CHANGES.format(columns="*", where="").replace("ref('customers')", "source('dumps', 'people')"),
    )
    (crm.root / "models/customers.sql").unlink()
    crm.land("people_2024-05-01", [{"id": 1, "name": "a", "v": 1}, {"id": 2, "name": "b", "v": 2}], "landing/people")
    crm.land("people_2024-05-02", [{"id": 1, "name": "a", "v": 5}], "landing/people")
    crm.build()
    found = sorted(crm.rows("customer_changes"), key=lambda row: (row["changed_at"], row["id"], row["v"]))
    assert [(row["change_type"], row["id"], row["changed_at"].day) for row in found] == [
        ("insert", 1, 1), ("insert", 2, 1), ("update_before", 1, 2), ("update_after", 1, 2), ("delete", 2, 2),
    ]  # fmt: skip
    crm.land("people_2024-04-01", [{"id": 9}], "landing/people")
    assert crm.run("build").codes() == ["extract-order"]


def test_a_unit_test_goes_through_extracts(crm):
    crm.write(
        "tests/crm.yml",
        """
unit_tests:
  - name: changes_of_a_customer
    model: customer_changes
    steps:
      - {given: {customers: [{id: 1, v: 1.0}, {id: 2, v: 2.0}]}, now: 2024-05-01 10:00:00}
      - {given: {customers: [{id: 1, v: 3.0}]}, now: 2024-05-02 10:00:00}
    expect:
      - {id: 1, v: 1.0, change_type: insert, changed_at: 2024-05-01 10:00:00}
      - {id: 2, v: 2.0, change_type: insert, changed_at: 2024-05-01 10:00:00}
      - {id: 1, v: 1.0, change_type: update_before, changed_at: 2024-05-02 10:00:00}
      - {id: 1, v: 3.0, change_type: update_after, changed_at: 2024-05-02 10:00:00}
      - {id: 2, v: 2.0, change_type: delete, changed_at: 2024-05-02 10:00:00}
""",
    )
    assert crm.run("test", "-s", "test_type:unit").code == 0
    wrong = (crm.root / "tests/crm.yml").read_text().replace("change_type: delete", "change_type: insert")
    crm.write("tests/crm.yml", wrong)
    assert crm.run("test", "-s", "test_type:unit").code == 1


def test_a_key_that_comes_back_has_not_changed_where_deletes_are_ignored(crm):
    crm.model(
        "customer_changes",
        CHANGES.replace("unique_key: id", "unique_key: id\ndeletes: ignore").format(columns="id, name, v", where=""),
    )
    land(crm, [put(1, "a", 1.0, 1), put(2, "b", 2.0, 1)])
    crm.build()
    land(crm, [gone(2, 2)])
    crm.build()
    land(crm, [put(2, "b", 2.0, 3)])
    assert "compared" not in note(crm)
    assert len(kinds(crm)) == 2
    land(crm, [put(2, "b", 5.0, 4)])
    crm.build()
    assert kinds(crm)[2:] == [("update_after", 2, 5.0), ("update_before", 2, 2.0)]


def test_only_changes_need_the_snapshot_that_they_were_computed_from(crm):
    versions = CHANGES.replace("history: changes", "history: true\ncheck: all").format(columns="id, name, v", where="")
    crm.model("customer_versions", versions)
    land(crm, [put(1, "a", 1.0, 1)])
    crm.build()
    assert [crm.model_json(name)["pinned"] for name in ("customer_changes", "customer_versions")] == [True, False]
