"""Full refresh: the table is built anew beside the old one and published by one commit."""

from __future__ import annotations

import shutil
from datetime import UTC

import pytest

from tests.fault_injection.points import killing
from tests.lab import Lab, event, killed_alone

pytestmark = pytest.mark.spark

HOURLY = """/*---
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, {size})'}}
---*/
select hour.start as hour, count(*) as n from {{{{ source('shop', 'events') }}}} group by hour
"""
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"


def prepare(lab: Lab, size: str = "1 hour") -> Lab:
    lab.model("hourly", HOURLY.format(size=size))
    lab.land("a", [event(1, "10:05"), event(2, "11:50")])
    lab.land("b", [event(3, "13:40")])
    lab.land("c", [event(4, "16:00")])
    return lab


def hours(lab: Lab) -> dict[int, int]:
    return {r["hour"].astimezone(UTC).hour: r["n"] for r in lab.rows("hourly")}


OLD = {10: 1, 11: 1, 13: 1}
NEW = {10: 2, 12: 1}


def test_a_changed_window_is_built_anew_and_goes_on_from_there(lab: Lab) -> None:
    prepare(lab).build()
    assert hours(lab) == OLD
    uuid = lab.table("hourly").uuid  # type: ignore[union-attr]
    lab.model("hourly", HOURLY.format(size="2 hours"))
    assert lab.run("build").codes() == ["model-changed"]
    result = lab.build("-f", "-s", "hourly").model("hourly")
    assert (result["status"], result["rows_in"]) == ("success", 4)
    assert hours(lab) == NEW
    table, state = lab.table("hourly"), lab.model_json("hourly", 2)
    assert table is not None
    assert (table.uuid, len(table.history)) == (uuid, 1)
    assert (state["phase"], state["uuid"], state["snapshot"]) == ("published", uuid, table.snapshot)
    assert (table.history[0].marker("generation"), table.properties["engine.generation"]) == ("2", "2")
    assert lab.table("hourly__g2") is None
    # It is kept for a rollback.
    names = {path.name for path in (lab.state / "hourly" / "1").iterdir()}
    assert ("previous.json" in names, "model.json" in names) == (True, False)

    assert lab.build().model("hourly")["status"] == "unchanged"
    lab.land("d", [event(5, "16:10"), event(6, "20:00")])
    lab.land("e", [event(7, "20:01")])
    assert lab.build().model("hourly")["rows_in"] == 3
    assert hours(lab) == {**NEW, 16: 2}


def test_a_lost_checkpoint_lost_state_and_a_lost_table_are_mended_by_a_full_refresh(lab: Lab) -> None:
    prepare(lab).build()
    shutil.rmtree(lab.state / "hourly" / "1" / "checkpoint")
    assert lab.run("build").codes() == ["checkpoint-lost"]
    lab.build("-f")
    assert hours(lab) == OLD
    assert lab.build().model("hourly")["status"] == "unchanged"
    shutil.rmtree(lab.state / "hourly")
    assert lab.run("build").codes() == ["state-missing"]
    lab.build("-f")
    assert hours(lab) == OLD
    lab.session.spark.sql(f"drop table lake.{lab.schema}.hourly purge")  # type: ignore[union-attr]
    assert lab.run("build").codes() == ["table-missing"]
    lab.build("-f")
    assert hours(lab) == OLD


def test_somebody_elses_table_is_not_replaced(lab: Lab) -> None:
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.hourly using iceberg as select 7 as id")
    result = prepare(lab).run("build", "-f")
    assert (result.code, result.codes()) == (1, ["name-taken"])
    assert lab.rows("hourly") == [{"id": 7}]


def test_what_streams_from_the_table_would_stop_so_that_must_be_accepted(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("copy", COPY)
    lab.model("again", COPY)
    lab.land("a", [event(1, "10:00"), event(2, "10:01")])
    lab.build()
    before = lab.snapshots()
    result = lab.run("build", "-f", "-s", "paid")
    assert (result.code, result.codes()) == (1, ["downstream-stops"])
    assert "'again', 'copy' stream from 'paid' and cannot resume once that is rebuilt" in result.text
    assert lab.snapshots() == before
    lab.build("-f", "-s", "paid", "--accept", "downstream-stops")
    assert lab.ids("paid") == [1, 2]
    stopped = lab.run("build", "-s", "copy")
    assert (stopped.code, stopped.codes()) == (1, ["upstream-replaced"])
    assert lab.ids("copy") == [1, 2]
    lab.build("-f", "-s", "paid+")
    assert lab.ids("copy") == [1, 2]


def test_a_protected_model_is_never_built_anew(lab: Lab) -> None:
    lab.model("paid", PAID.replace("streams:", "full_refresh: false\nstreams:"))
    lab.land("a", [event(1, "10:00")])
    lab.build()
    before = lab.snapshots()
    result = lab.run("build", "-f")
    assert (result.code, result.codes()) == (1, ["full-refresh-protected"])
    assert lab.snapshots() == before


def test_a_batch_table_is_built_in_any_case(lab: Lab) -> None:
    lab.model("one", "select 1 as one")
    lab.build()
    first = lab.snapshot("one")
    lab.build()
    assert lab.snapshot("one") == first
    lab.build("-f")
    assert lab.snapshot("one") != first


NUMBERED = """/*---
streams: [shop.events]
MOREcolumns: {id: {tests: [not_null]}}
---*/
select id + FROM as id from {{ source('shop', 'events') }}
"""
# Before the publishing commit, behind it, and behind the record of it; a table of each that waits for its tests.
POINTS = {
    f"{kind}_{moment}": point
    for kind in ("plain", "tested")
    for moment, point in (("before", "replacing"), ("between", "replaced"), ("behind", "noted"))
}


@pytest.mark.gate
def test_a_kill_on_either_side_of_the_publishing_commit_is_decided_by_its_marker(lab: Lab) -> None:
    lab.land("a", [event(1, "10:00"), event(2, "10:01")])

    def write(begin: int) -> None:
        for name in POINTS:
            more = "publish: on_tests_pass\n" if name.startswith("tested") else ""
            lab.model(name, NUMBERED.replace("MORE", more).replace("FROM", str(begin)))

    def ids() -> dict[str, list[int]]:
        return {name: lab.ids(name) for name in POINTS}

    write(0)
    lab.build()
    write(100)
    killed_alone(lab.root, "build", "-f", "--threads", "6", script=killing(POINTS))
    assert None not in [lab.table(f"{name}__g2") for name in POINTS]
    phases = {name: lab.model_json(name, 2)["phase"] for name in POINTS}
    assert phases == {
        name: "published" if point == "noted" else "staged" if name.startswith("tested") else "building"
        for name, point in POINTS.items()
    }
    seen = {name: [1, 2] if point == "replacing" else [101, 102] for name, point in POINTS.items()}
    assert ids() == seen

    # What is published stays, and the next build finishes the others.
    done = lab.build()
    assert {name: done.model(name)["status"] == "unchanged" for name in POINTS} == {
        name: point != "replacing" for name, point in POINTS.items()
    }
    assert ids() == {name: [101, 102] for name in POINTS}
    lab.land("b", [event(3, "10:02")])
    lab.build()
    assert ids() == {name: [101, 102, 103] for name in POINTS}
    assert [lab.table(f"{name}__g{n}") for name in POINTS for n in (2, 3)] == [None] * 12
    assert {len(list((lab.state / name).glob("*/model.json"))) for name in POINTS} == {1}
