"""`renamed_from` of a column: the table's column gets its name, and each query goes on over what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.plan.compare_models import compare_model
from engine.plan.comparison import Change
from engine.plan.deployed.deployed_facts import LastWriter
from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab, event
from tests.project.small_projects import compiled, findings

PAID = "/*---\nstreams: [shop.events]\n{0}---*/\nselect id, at, kind as {1} from {{{{ source('shop', 'events') }}}}\n"
HOURLY = """/*---
streams: {{paid: {{watermark: at delay 10 minutes}}}}
{0}windows: {{hour: 'tumbling(at, 1 hour)'}}
---*/
select hour.start as hour, {1}, count(*) as n from {{{{ ref('paid') }}}} group by hour, {1}
"""
LATEST = """/*---
streams: [paid]
{0}unique_key: [{1}]
sequence_by: [at]
delete_when: {1} = 'gone' or id = 9
---*/
select {1}, id, at from {{{{ ref('paid') }}}}
"""
COUNTS = "/*---\nstreams: [paid]\n{0}output_mode: update\n---*/\nselect {1}, count(*) as n from {{{{ ref('paid') }}}} group by {1}\n"
TOTALS = "/*---\n{0}materialized: table\n---*/\nselect {1}, sum(n) as n from {{{{ ref('hourly') }}}} group by {1}\n"
MODELS = {"paid": PAID, "hourly": HOURLY, "latest": LATEST, "totals": TOTALS}
RENAMED = "columns: {customer: {renamed_from: client}}\n"


def write(lab: Lab, more: str, name: str) -> None:
    for model, text in MODELS.items():
        lab.model(model, text.format(more, name))


@pytest.fixture
def built(lab: Lab) -> Lab:
    write(lab, "", "client")
    lab.land("a", [event(1, "10:05", "a"), event(2, "10:20", "b"), event(9, "10:30", "b")])
    lab.build()
    write(lab, RENAMED, "customer")
    lab.land("b", [event(3, "10:40", "a"), event(4, "13:00", "c")])
    return lab


def ids(lab: Lab, name: str) -> dict[str, int]:
    table = lab.table(name)
    assert table is not None
    return {str(field["name"]): int(field["id"]) for field in table.fields}


def is_continued(lab: Lab, before: dict[str, dict[str, int]]) -> None:
    """All is as if the columns had always had their names."""
    assert {row["id"]: row["customer"] for row in lab.rows("paid")} == {1: "a", 2: "b", 9: "b", 3: "a", 4: "c"}
    assert {(row["hour"].hour, row["customer"]): row["n"] for row in lab.rows("hourly")} == {(10, "a"): 2, (10, "b"): 2}
    assert {row["customer"]: row["id"] for row in lab.rows("latest")} == {"a": 3, "c": 4}
    assert {row["customer"]: row["n"] for row in lab.rows("totals")} == {"a": 2, "b": 2}
    assert [row["key"]["customer"] for row in lab.rows("latest__deleted")] == ["b"]
    for name, columns in before.items():
        assert ids(lab, name) == {("customer" if column == "client" else column): n for column, n in columns.items()}
    again = lab.run("plan")
    assert (again.code, "4 unchanged" in again.text) == (0, True), again.text


@pytest.mark.spark
def test_a_chain_goes_on_over_its_tables_and_its_state(built: Lab) -> None:
    before = {name: ids(built, name) for name in ("paid", "hourly", "latest", "latest__deleted")}
    plan = built.run("plan")
    assert plan.code == 0
    assert plan.text.count("its column 'client' is renamed to 'customer'") == 4
    assert "the query changed" not in plan.text.partition("totals")[0]
    assert "written in another way" not in plan.text
    said = built.build()
    assert said.codes().count("table-renamed") == 4
    is_continued(built, before)
    # Once each is built, the key means nothing.
    write(built, "", "customer")
    assert built.run("plan").text.count("unchanged") == 5


@pytest.mark.gate
@pytest.mark.spark
@pytest.mark.parametrize("table", ["paid", "latest__deleted", "latest", "totals"])
def test_a_build_that_is_killed_is_finished(built: Lab, table: str) -> None:
    before = {name: ids(built, name) for name in ("paid", "hourly", "latest", "latest__deleted")}

    def at(_: str, __: Any, where: str) -> None:
        if where == table:
            kill()

    with reached("columns renamed", at):
        assert built.run("build").code != 0
    built.build()
    is_continued(built, before)


@pytest.mark.nightly
@pytest.mark.spark
def test_a_reader_that_began_with_an_initial_snapshot_continues(lab: Lab) -> None:
    lab.model("paid", PAID.format("", "client"))
    for name in ("a", "b"):
        lab.land(name, [event(len(name), kind=name)])
        lab.build()
        lab.run("maintain", "--older-than", "0 seconds")
        spark = lab.session.spark  # type: ignore[union-attr]
        spark.sql(
            f"alter table lake.{lab.schema}.paid set tblproperties ('history.expire.min-snapshots-to-keep' = '1')"
        )
    lab.model("counts", COUNTS.format("", "client"))

    def at(name: str, *_: Any) -> None:
        if name == "counts":
            kill()

    # The first rows are in a table of their own; their micro-batch is in the table, and comes again for the state.
    with reached("committed", at):
        assert lab.run("build").code != 0
    assert any("__seed" in path.name for path in (lab.lake_path / "warehouse" / lab.schema).iterdir())
    lab.model("paid", PAID.format(RENAMED, "customer"))
    lab.model("counts", COUNTS.format(RENAMED, "customer"))
    lab.land("c", [event(7, "12:00", kind="a")])
    lab.build()
    assert {row["customer"]: row["n"] for row in lab.rows("counts")} == {"a": 2, "b": 1}


def compare(root: Path, name: str, old: str, new: str) -> tuple[Change, tuple[str, ...]]:
    """What becomes of a model when it is another text, beside the others as they are with their new names."""
    files = {"sources/shop.yml": EVENTS, "models/paid.sql": PAID.format(RENAMED, "customer")}
    before = compiled(root / "old", {**files, "models/paid.sql": PAID.format("", "client"), f"models/{name}.sql": old})
    now = compiled(root / "new", {**files, f"models/{name}.sql": new}).manifest
    model = before.manifest.model(name)
    found = compare_model(now, now.model(name), LastWriter(model.fingerprint, model.facts))
    return found.change, found.reasons


@pytest.mark.slow
@pytest.mark.parametrize("text", [HOURLY, LATEST])
def test_what_only_has_another_name_is_the_same(tmp_path: Path, text: str) -> None:
    found = compare(tmp_path, "m", text.format("", "client"), text.format(RENAMED, "customer"))
    assert found == (Change.UNCHANGED, ())
    # Its own column keeps its name.
    kept = text.replace("select {1}", "select {1} as client").replace("hour, {1}, ", "hour, {1} as client, ")
    kept = kept.replace("[{1}]", "[client]").replace("delete_when: {1}", "delete_when: client")
    found = compare(tmp_path / "kept", "m", text.format("", "client"), kept.format("", "customer"))
    assert found == (Change.UNCHANGED, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        # The upstream column is read under its new name, and another one is grouped by.
        (HOURLY.format("", "client"), HOURLY.format(RENAMED, "id").replace("id, c", "id as customer, c"), "state-breaking"),
        (LATEST.format("", "client"), LATEST.format(RENAMED, "customer").replace("select customer", "select upper(customer) as customer"), "key-changed"),
        (LATEST.format("", "client"), LATEST.format(RENAMED, "customer").replace("[customer]", "[id]"), "identity-changed"),
        (LATEST.format("", "client"), LATEST.format("", "customer"), "identity-changed"),
    ],
)  # fmt: skip
def test_what_changed_beside_is_seen(tmp_path: Path, old: str, new: str, change: str) -> None:
    assert compare(tmp_path, "m", old, new)[0].value == change


WRONG = {
    "columns: {kind: {renamed_from: kind}}": "'kind' is renamed from 'kind', which the query returns",
    "columns: {kind: {renamed_from: id}}": "'kind' is renamed from 'id', which the query returns",
    "columns: {kind: {renamed_from: k}, id: {renamed_from: K}}": "'kind' and 'id' are both renamed from 'K'",
    "columns: {kind: {renamed_from: a.k}}": "'renamed_from' renames a column, and no field of one",
}


@pytest.mark.parametrize("header", WRONG)
def test_an_earlier_name_that_can_be_none(tmp_path: Path, header: str) -> None:
    text = f"/*---\nstreams: [shop.events]\n{header}\n---*/\nselect id, kind from {{{{ source('shop', 'events') }}}}"
    (found,) = findings(tmp_path, {"sources/shop.yml": EVENTS, "models/m.sql": text})
    assert (found.code, found.message) == ("renamed-from", WRONG[header])
    assert str(found.location).startswith("models/m.sql:3:")


def test_views_and_sources_have_no_column_to_rename(tmp_path: Path) -> None:
    view = "/*---\nmaterialized: view\ncolumns: {b: {renamed_from: a}}\n---*/\nselect 1 as b"
    source = "sources: [{name: s, tables: [{name: t, format: json, path: x, schema: 'id int', columns: {id: {renamed_from: a}}}]}]"
    found = findings(tmp_path, {"sources/s.yml": source, "models/v.sql": view})
    assert sorted((d.code, str(d.location)) for d in found) == [
        ("renamed-from", "models/v.sql:3:29"), ("renamed-from", "sources/s.yml:1:91")
    ]  # fmt: skip
