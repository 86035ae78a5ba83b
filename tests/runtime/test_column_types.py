"""Columns of an edited query beside those of its table: types are equal, widened or rejected; letter case is Spark's."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.compile import compile_project
from engine.lake.catalog.iceberg_types import spark_struct
from engine.lake.schema_match import type_text
from engine.plan.tables.column_checks import model_struct
from engine.project import load_project
from tests.column_edits import CHANGED
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

SOURCE = "{{ source('shop', 'events') }}"
BIG = 5_000_000_000


def stream(lab: Lab, name: str, columns: str, settings: str = "") -> None:
    lab.model(name, f"/*---\nstreams: [shop.events]\n{settings}\n---*/\nselect {columns} from {SOURCE}\n")


def messages(result: Result) -> dict[str, tuple[str, str]]:
    found = [e for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert {e["code"] for e in found} == {"table-schema"}, found
    return {e["node"]: (e["message"], e["hint"]) for e in found}


def test_a_type_that_the_table_cannot_hold_is_rejected_by_name(lab: Lab) -> None:
    partitions = (
        "/*---\nmaterialized: table\noverwrite: partitions\npartition_by: [day]\n---*/\nselect {} as day, id from "
    )
    for name, (settings, before, *_) in CHANGED.items():
        stream(lab, name, f"id, {before}", settings)
    lab.model("parts", partitions.format("to_date(at)") + SOURCE)
    lab.land("a", [event(1, amount=1.25)])
    lab.build()
    before = {name: (lab.snapshot(name), lab.table(name).columns) for name in [*CHANGED, "parts"]}  # type: ignore[union-attr]
    for name, (settings, _, after, *_) in CHANGED.items():
        stream(lab, name, f"id, {after}", settings)
    lab.model("parts", partitions.format("at") + SOURCE)
    lab.land("b", [event(2, amount=2.75)])
    result = lab.run("build")
    assert result.code == 1
    found = messages(result)
    for name, (*_, path, old, new) in CHANGED.items():
        message, hint = found[name]
        assert message == f"'{path}' is {old} in lake.{lab.schema}.{name} and {new} in the query"
        assert f"Or rebuild the table: engine build -f -s {name}" in hint
    assert "cast(v as int) as v" in found["rounded"][1]
    assert found["parts"][0] == f"'day' is date in lake.{lab.schema}.parts and timestamp in the query"
    after = {name: (lab.snapshot(name), lab.table(name).columns) for name in before}  # type: ignore[union-attr]
    assert after == before
    # Both ways on.
    stream(lab, "rounded", "id, cast(cast(amount as double) as int) as v")
    lab.build("-s", "rounded")
    lab.build("-f", "-s", "decimals")
    assert sorted(row["v"] for row in lab.rows("rounded")) == [1, 2]
    assert sorted(row["v"] for row in lab.rows("decimals")) == [Decimal("1.25"), Decimal("2.75")]


TYPES = """id, cast(id as tinyint) as t, cast(id as smallint) as sm, cast(id as bigint) as b, cast(id as float) as f, amount,
  cast(id as decimal(20,3)) as d, id > 1 as yes, kind, cast(kind as binary) as bin, to_date(at) as day, at,
  cast(at as timestamp_ntz) as local, array(struct(id as a, map(kind, array(at)) as m)) as l"""


def test_the_plan_knows_a_table_and_a_query_as_spark_does(lab: Lab) -> None:
    stream(lab, "types", TYPES)
    lab.land("a", [event(1)])
    lab.build()
    table = lab.table("types")
    assert table is not None
    there = spark_struct(table.fields)
    assert there is not None
    frame = lab.session.spark.table(f"lake.{lab.schema}.types")  # type: ignore[union-attr]
    assert type_text(there) == frame.schema.simpleString()
    known = model_struct(compile_project(load_project(lab.root)).manifest.model("types"))
    assert known is not None
    assert type_text(known) == frame.schema.simpleString()


MERGED = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'gone'
partition_by: ['bucket(4, id)']
---*/
select {} as id, at, kind, amount from {{{{ source('shop', 'events') }}}}
"""
APPENDED = """{id} as id, cast(amount as {real}) as f, cast(amount as {decimal}) as d,
  struct({id} as n) as s, array({id}) as l, map('k', {id}) as m"""
DOWN = """/*---
streams: [wide]
{}
---*/
select id, s.n as n from {{{{ ref('wide') }}}}
"""


def test_a_wider_type_alters_the_table_and_a_narrower_one_keeps_its_values(lab: Lab) -> None:
    stream(lab, "wide", APPENDED.format(id="id", real="float", decimal="decimal(5,2)"))
    stream(lab, "narrow", APPENDED.format(id="cast(id as bigint)", real="double", decimal="decimal(12,2)"))
    lab.model("merged", MERGED.format("id"))
    lab.model("down", DOWN.format(""))
    lab.land("a", [event(1, amount=1.25), event(2, amount=1.25), event(3, kind="gone")])
    lab.build()
    # The same columns as ever: nothing is altered, and nothing is said.
    assert lab.build().model("wide")["note"] == ""
    big = f"id + {BIG}L"
    stream(lab, "wide", APPENDED.format(id=big, real="double", decimal="decimal(12,2)"))
    stream(lab, "narrow", APPENDED.format(id="try_cast(id as int)", real="float", decimal="decimal(5,2)"))
    # The key that a MERGE finds rows by is computed as before, and its source holds greater numbers now.
    lab.write("sources/shop.yml", EVENTS.replace("id int", "id bigint"))
    new = event(BIG + 6, kind="new", amount=1.25)
    lab.land("b", [event(4, amount=0.1), event(2, "2024-05-02T10:05", amount=8.0), new])
    lab.land("c", [event(3, amount=9.0), event(1, "2024-05-03T10:05", "gone")])
    result = lab.build()
    assert "'id' widened from int to bigint, 'f' widened from float to double" in result.model("wide")["note"]
    types = dict(lab.table("wide").columns)  # type: ignore[union-attr]
    assert (types["id"], types["f"], types["d"], types["l"]) == ("long", "double", "decimal(12, 2)", "list<long>")
    rows = {row["id"]: row for row in lab.rows("wide")}
    assert rows[1] == {
        "id": 1, "f": 1.25, "d": Decimal("1.25"), "s": {"n": 1}, "l": [1], "m": [("k", 1)],
    }  # fmt: skip
    four = rows[BIG + 4]
    assert (four["f"], four["s"], four["l"], four["m"]) == (0.1, {"n": BIG + 4}, [BIG + 4], [("k", BIG + 4)])
    narrow = {row["id"]: row for row in lab.rows("narrow")}
    assert narrow[4]["f"] == pytest.approx(0.1, abs=1e-7)
    assert (narrow[4]["d"], narrow[4]["s"]) == (Decimal("0.10"), {"n": 4})
    # A MERGE finds the rows of before, and deletes that were remembered before count for the wider key.
    assert {row["id"]: row["amount"] for row in lab.rows("merged")} == {2: 8.0, 4: 0.1, BIG + 6: 1.25}
    # A stream of the altered table goes on, and widens its own.
    assert sorted(row["n"] for row in lab.rows("down")) == lab.ids("wide")
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


@pytest.mark.nightly
def test_a_full_refresh_takes_a_key_of_another_type(lab: Lab) -> None:
    lab.model("merged", MERGED.format("id"))
    lab.land("a", [event(1, amount=1.25), event(2, kind="gone", amount=1.25)])
    lab.build()
    lab.model("merged", MERGED.format("concat('n', id)"))
    lab.land("b", [event(3, amount=1.25), event(4, kind="gone", amount=1.25)])
    rejected = lab.run("build")
    assert rejected.codes() == ["model-changed"]
    assert "'id' changed from" in rejected.text
    lab.build("-f")
    lab.land("c", [event(4, amount=1.25), event(5, amount=1.25)])
    lab.build()
    assert lab.ids("merged") == ["n1", "n3", "n5"]


CASED = {
    "appended": ("on_schema_change: append_columns\npartition_by: [KIND]", "id, kind, amount as v, struct(id as n) as s"),
    "merged": (
        "unique_key: ID\nsequence_by: AT\npartition_by: ['bucket(4, Id)']\ndelete_when: KIND = 'gone'",
        "id, kind, amount as v, at",
    ),
    "versions": ("unique_key: Id\nsequence_by: aT\nhistory: true", "id, kind, amount as v, at"),
    "hourly": ("", "hour.start as started, count(*) as n"),
}  # fmt: skip


@pytest.mark.nightly
def test_letter_case_of_columns_makes_no_difference(lab: Lab) -> None:

    def write(change: Any) -> None:
        for name, (settings, columns) in CASED.items():
            stream(lab, name, change(columns), settings)
        window = "windows: {hour: 'tumbling(at, 1 hour)'}\nstreams: {shop.events: {watermark: at delay 1 minute}}"
        sql = f"select {change(CASED['hourly'][1])} from {SOURCE} group by hour"
        lab.model("hourly", f"/*---\n{window}\n---*/\n{sql}\n")

    write(str)
    lab.land("a", [event(1), event(2, amount=2.0), event(3, amount=3.0)])
    lab.build()
    before = {name: lab.table(name).columns for name in CASED}  # type: ignore[union-attr]
    write(str.upper)
    lab.land("b", [event(2, "12:05", amount=5.0), event(3, "12:05", "gone", 1.25), event(4, "12:05", amount=4.0)])
    lab.land("c", [event(9, "2024-05-02T12:05", amount=9.0)])
    lab.build()
    assert {name: lab.table(name).columns for name in CASED} == before  # type: ignore[union-attr]
    assert {(row["id"], row["v"], row["s"]["n"]) for row in lab.rows("appended")} >= {(1, 1.0, 1), (4, 4.0, 4)}
    assert {row["id"]: row["v"] for row in lab.rows("merged")} == {1: 1.0, 2: 5.0, 4: 4.0, 9: 9.0}
    current = {row["id"]: row["v"] for row in lab.rows("versions") if row["is_current"]}
    assert current == {1: 1.0, 2: 5.0, 3: 1.25, 4: 4.0, 9: 9.0}
    assert {row["started"]: row["n"] for row in lab.rows("hourly")} == {
        datetime(2024, 5, 1, 10, tzinfo=UTC): 3,
        datetime(2024, 5, 1, 12, tzinfo=UTC): 3,
    }
    # Two outputs that differ in letter case only are one name, and an error before Spark starts.
    stream(lab, "appended", "id, id as ID")
    result = lab.run("build", "-s", "appended")
    assert "duplicate-name" in result.codes()
    # Where the columns are not known to `compile`, the build finds it before it makes a table.
    lab.session.spark.sql(f"create table lake.{lab.schema}.elsewhere using iceberg as select 1 as id, 2 as v")  # type: ignore[union-attr]
    table = f"\n      - name: known\n        format: iceberg\n        table: {lab.schema}.elsewhere\n"
    lab.write("sources/shop.yml", EVENTS + table)
    stream(lab, "appended", "id")
    lab.model("twice", "/*---\nmaterialized: table\n---*/\nselect *, v as Id from {{ source('shop', 'known') }}\n")
    (found,) = [
        e for e in lab.run("build", "-s", "twice").events if e["event"] == "Diagnosed" and e["level"] == "error"
    ]
    assert (found["code"], found["message"][:20]) == ("duplicate-name", "the columns id, Id d")
    assert lab.table("twice") is None


PARTS = """/*---
materialized: table
overwrite: partitions
partition_by: [kind]
{}
---*/
select """


def test_a_column_that_the_query_no_longer_gives_is_rejected_unless_the_policy_allows_it(lab: Lab) -> None:
    kinds = {
        "plain": "",
        "keyed": "unique_key: id",
        "kept": "on_schema_change: ignore",
        "added": "on_schema_change: append_columns",
    }
    for name, settings in kinds.items():
        stream(lab, name, "id, amount, kind", settings)
    lab.model("parts", PARTS.format("") + f"id, amount, kind from {SOURCE}")
    lab.model("static", "select id, 7 as more from range(5)")
    lab.model(
        "beside",
        f"/*---\nstreams: [shop.events]\n---*/\nselect e.id, s.* except (id) from {SOURCE} e join {{{{ ref('static') }}}} s on s.id = e.id",
    )
    lab.land("a", [event(1, amount=1.25)])
    lab.build()
    before = lab.snapshots()

    # A column of somebody else's is no column that the query gave.
    lab.session.spark.sql(f"alter table lake.{lab.schema}.plain add column theirs string")  # type: ignore[union-attr]
    lab.land("b", [event(2, amount=1.25)])
    lab.build()
    for name, settings in kinds.items():
        stream(lab, name, "id, kind", settings)
    lab.model("parts", PARTS.format("") + f"id, kind from {SOURCE}")
    lab.model("static", "select id, 7 as other from range(5)")
    lab.land("c", [event(3, amount=1.25)])
    after = lab.snapshots()
    assert after != before
    found = messages(lab.run("build"))
    assert set(found) == {"plain", "keyed", "parts", "beside"}
    assert lab.snapshots() == after
    for name in ("plain", "keyed", "parts"):
        assert found[name][0] == f"lake.{lab.schema}.{name} has the column amount, which the query no longer returns"
        assert "cast(null as ..) as amount" in found[name][1]
    assert "has the column more, which the query no longer returns" in found["beside"][0]
    result = lab.build("--exclude", " ".join(found))
    for name in ("kept", "added"):
        note = result.model(name)["note"]
        assert note.count("the query no longer returns column 'amount'; the table keeps it, NULL in new rows") == 1, (
            note
        )
        assert [row["amount"] for row in sorted(lab.rows(name), key=lambda row: row["id"])] == [1.25, 1.25, None]
    assert {name: lab.snapshot(name) for name in found} == {name: after[name] for name in found}
    assert set(messages(lab.run("build"))) == set(found)

    for name in ("plain", "keyed"):
        stream(lab, name, "id, cast(null as double) as amount, kind", kinds[name])
    lab.model("parts", PARTS.format("on_schema_change: ignore") + f"id, kind from {SOURCE}")
    fixed = lab.build("--exclude", "beside")
    assert "no longer returns column 'amount'" in fixed.model("parts")["note"]
    assert {row["amount"] for row in lab.rows("plain") if row["id"] == 3} == {None}
    assert not lab.build("--exclude", "beside").model("kept")["note"]
