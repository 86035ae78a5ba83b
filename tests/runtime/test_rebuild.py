"""`engine build --rebuild`: a new generation beside the one that is written and read, published at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.state import TableState, locked
from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, {0} as version from {{{{ source('shop', 'events') }}}}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id, version from {{ ref('paid') }}\n"
HOURLY = """/*---
streams: {{paid: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, {0})'}}
---*/
select hour.start as hour, count(*) as n from {{{{ ref('paid') }}}} group by hour
"""
TOTAL = "select count(*) as n, max(version) as version from {{ ref('copy') }}"


def shop(lab: Lab) -> None:
    land(lab)


def land(lab: Lab) -> None:
    lab.land("a", [event(1, "10:05"), event(2, "11:50")])
    lab.land("b", [event(3, "13:40")])


@pytest.fixture
def edited(lab: Lab, tmp_path: Path) -> Lab:
    """A second folder of the same project, with the same landing, lake and state: where the edit is."""
    other = Lab(tmp_path / "edited", lab.session, lab.capsys, lab.schema)
    text = (other.root / "project.yml").read_text()
    other.write("project.yml", text.replace("    schema:", f"    state: {lab.root / '.engine' / 'state'}\n    schema:"))
    for folder in (lab, other):
        folder.write("sources/shop.yml", EVENTS.replace("landing", str(lab.root / "landing")))
    return other


def rebuild(lab: Lab, *arguments: str, code: int = 0) -> Result:
    result = lab.run("build", "--rebuild", *arguments)
    assert result.code == code, result.text
    return result


def versions(lab: Lab, name: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["version"]) for row in lab.rows(name))


def left(lab: Lab) -> list[str]:
    """What is left of a rebuild in the state."""
    return sorted(path.name for path in lab.state.iterdir() if path.name.endswith("__next"))


@pytest.mark.nightly
def test_a_table_is_rebuilt_beside_the_old_one(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    lab.model("paid", PAID.format(2))
    before = lab.snapshot("paid")
    said = rebuild(lab, "-s", "paid", "--no-publish")
    assert lab.snapshot("paid") == before
    planned = lab.run("plan")
    assert planned.code == 0
    assert "the rebuild of 'paid' that was begun" in planned.text
    (compared,) = [e for e in said.events if e["event"] == "RebuildCompared"]
    assert (compared["rows"], compared["only"]) == ([3, 3], [3, 3])
    lab.land("c", [event(4)])
    rebuild(lab, "-s", "paid")
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3, 4)]
    assert left(lab) == []
    lab.land("d", [event(5)])
    lab.build()
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3, 4, 5)]
    assert lab.build().model("paid")["status"] == "unchanged"
    assert lab.run("rollback", "paid", "--yes").code == 0
    lab.model("paid", PAID.format(1))
    lab.build()
    assert versions(lab, "paid") == [(n, 1) for n in (1, 2, 3, 4, 5)]


def test_the_old_code_continues_while_the_new_generation_is_built(lab: Lab, edited: Lab) -> None:
    land(lab)
    for folder, version in ((lab, 1), (edited, 2)):
        folder.model("paid", PAID.format(version))
    lab.build()
    rebuild(edited, "-s", "paid", "--no-publish")
    lab.land("c", [event(4)])
    said = lab.build()
    assert said.codes() == ["rebuild-unfinished"]
    assert versions(lab, "paid") == [(n, 1) for n in (1, 2, 3, 4)]
    assert lab.run("ls", "--orphans").out == ""
    rebuild(edited, "-s", "paid")
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3, 4)]
    lab.land("d", [event(5)])
    edited.build()
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3, 4, 5)]


def chain(lab: Lab, version: int, size: str = "1 hour") -> None:
    lab.model("paid", PAID.format(version))
    lab.model("copy", COPY)
    lab.model("hourly", HOURLY.format(size))
    lab.model("total", TOTAL)


def hours(lab: Lab) -> dict[int, int]:
    return {row["hour"].hour: row["n"] for row in lab.rows("hourly")}


def check_chain(lab: Lab) -> None:
    """A published chain continues: each row once, and the window that was open has all of its rows."""
    assert versions(lab, "paid") == versions(lab, "copy") == [(n, 2) for n in (1, 2, 3, 4)]
    assert left(lab) == []
    lab.land("d", [event(5, "13:55"), event(6, "20:00")])
    lab.build()
    assert versions(lab, "paid") == versions(lab, "copy") == [(n, 2) for n in (1, 2, 3, 4, 5, 6)]
    assert hours(lab) == {10: 2, 12: 3}
    assert lab.rows("total") == [{"n": 6, "version": 2}]
    assert lab.build().model("copy")["status"] == "unchanged"


@pytest.mark.nightly
def test_a_chain_is_rebuilt_together(lab: Lab) -> None:
    shop(lab)
    chain(lab, 1)
    lab.build()
    chain(lab, 2, "2 hours")
    rebuild(lab, "-s", "paid+", "--no-publish")
    assert lab.rows("total") == [{"n": 3, "version": 1}]
    lab.land("c", [event(4, "13:50")])
    rebuild(lab, "-s", "paid+")
    check_chain(lab)


# Of the tables in which two models are rebuilt, of the rebuild, and of the tables that are published, in this order.
POINTS = [
    ("committed", "paid__next"),
    ("recorded", "hourly__next"),
    ("rebuild noted", "paid"),
    *((point, table) for table in ("paid", "hourly") for point in (
        "renewed", "generation copied", "taken over", "previous kept", "replacing", "replaced", "noted",
    )),
    ("rebuild published", "paid"),
]  # fmt: skip
# `make test` has these: while the tables are made, and before, at and after the first of them is published.
FEW = [
    ("committed", "paid__next"),
    ("rebuild noted", "paid"),
    ("replacing", "paid"),
    ("noted", "paid"),
    ("rebuild published", "paid"),
]


def killed(lab: Lab, point: str, table: str) -> None:
    """Kill a rebuild where a table passes a point for the first time."""
    seen: list[str] = []

    def at(name: str, *_: Any) -> None:
        if name == table and not seen:
            seen.append(name)
            kill()

    with reached(point, at):
        assert lab.run("build", "--rebuild", "-s", "paid", "hourly").code != 0
    assert seen == [table], point


def pair(lab: Lab, version: int, size: str) -> None:
    lab.model("paid", PAID.format(version))
    lab.model("hourly", HOURLY.format(size))


def check_pair(lab: Lab) -> None:
    """A published pair continues: each row once, and the window that was open has all of its rows."""
    assert left(lab) == []
    lab.land("d", [event(5, "13:55"), event(6, "20:00")])
    lab.build()
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3, 4, 5, 6, 7)]
    assert hours(lab) == {10: 3, 12: 3}


@pytest.mark.gate
@pytest.mark.nightly_cases("all")
@pytest.mark.parametrize("points", [FEW, POINTS], ids=["few", "all"])
def test_a_rebuild_that_is_killed_at_every_point_is_finished_by_the_same_command(
    lab: Lab, points: list[tuple[str, str]]
) -> None:
    shop(lab)
    pair(lab, 1, "1 hour")
    lab.build()
    pair(lab, 2, "2 hours")
    lab.land("c", [event(4, "10:30")])
    for point, table in points:
        killed(lab, point, table)
    lab.land("e", [event(7, "13:45")])
    rebuild(lab, "-s", "paid", "hourly")
    check_pair(lab)


@pytest.mark.gate
@pytest.mark.parametrize(("point", "table"), [("replacing", "paid"), ("replaced", "paid"), ("replaced", "hourly")])
def test_a_build_between_a_kill_and_the_end_loses_nothing(lab: Lab, point: str, table: str) -> None:
    shop(lab)
    pair(lab, 1, "1 hour")
    lab.build()
    pair(lab, 2, "2 hours")
    lab.land("c", [event(4, "10:30")])
    killed(lab, point, table)
    lab.land("e", [event(7, "13:45")])
    lab.build("-s", "paid")
    rebuild(lab, "-s", "paid", "hourly")
    check_pair(lab)


OTHER = "/*---\nstreams: [shop.events]\n---*/\nselect id + 100 as id from {{ source('shop', 'events') }}\n"
BOTH = """/*---
streams: [paid, other]
---*/
select id, version from {{ ref('paid') }} where id > 2 union all select id, 0 as version from {{ ref('other') }}
"""
CHECKED = PAID.replace(
    "streams:", "columns: {{version: {{tests: [{{accepted_values: {{values: [1, 2]}}}}]}}}}\nstreams:"
)
LAST = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'gone'
exclude: [kind]
expectations: [{{name: known, check: amount is not null, on_fail: quarantine}}]
---*/
select id, at, kind, amount, {0} as version from {{{{ source('shop', 'events') }}}}
"""


@pytest.mark.nightly
def test_a_stream_of_a_rebuilt_and_of_another_table(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.model("other", OTHER)
    lab.model("both", BOTH)
    lab.build()
    lab.land("c", [event(4)])
    lab.build()
    lab.model("paid", PAID.format(2))
    before = lab.snapshot("other")
    rebuild(lab, "-s", "paid+")
    assert lab.snapshot("other") == before
    lab.land("d", [event(5)])
    lab.build()
    assert versions(lab, "both") == [(3, 2), (4, 2), (5, 2), *((n, 0) for n in (101, 102, 103, 104, 105))]


@pytest.mark.nightly
def test_a_table_without_a_row_is_published_with_its_streams(lab: Lab) -> None:
    shop(lab)
    for version in (1, 2):
        lab.model("paid", PAID.format(version).rstrip() + " where id > 3\n")
        lab.model("copy", COPY)
        if version == 1:
            lab.build()
    rebuild(lab, "-s", "paid+")
    lab.land("c", [event(4)])
    lab.build()
    assert versions(lab, "copy") == [(4, 2)]


def test_a_failing_test_publishes_nothing_and_an_edit_begins_again(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", CHECKED.format(1))
    lab.build()
    lab.model("paid", CHECKED.format(3))
    rebuild(lab, "-s", "paid", code=1)
    assert {version for _, version in versions(lab, "paid")} == {1}
    said = rebuild(lab, "-s", "paid", code=1)
    assert "rebuild-restarted" not in said.codes()
    lab.model("paid", CHECKED.format(2))
    said = rebuild(lab, "-s", "paid")
    assert "rebuild-restarted" in said.codes()
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3)]


def test_a_failing_unit_test_makes_no_table(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    unit = """
unit_tests:
  - name: has_a_version
    model: paid
    given: {shop.events: [{id: 1}]}
    expect: {rows: [{id: 1, version: %s}]}
"""
    lab.write("tests/units.yml", unit % 3)
    lab.model("paid", PAID.format(2))
    said = rebuild(lab, "-s", "paid", code=1)
    assert {e["node"]: e["status"] for e in said.events if e["event"] in {"TestFinished", "ModelFinished"}} == {
        "unit_test.paid.has_a_version": "fail",
        "model.paid": "skipped",
    }
    assert versions(lab, "paid") == [(n, 1) for n in (1, 2, 3)]
    lab.write("tests/units.yml", unit % 2)
    rebuild(lab, "-s", "paid")
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3)]


def test_a_rebuild_is_discarded_and_is_of_the_same_models(lab: Lab) -> None:
    shop(lab)
    chain(lab, 1)
    lab.build()
    before = lab.snapshots()
    chain(lab, 2)
    assert rebuild(lab, "-s", "paid", code=1).codes() == ["downstream-stops"]
    rebuild(lab, "-s", "paid+", "--no-publish")
    assert left(lab) == ["copy__next", "hourly__next", "paid__next"]
    said = rebuild(lab, "-s", "copy", code=1)
    assert said.codes() == ["rebuild-unfinished"]
    assert lab.run("erase", "paid", "--where", "id = 1", "--yes").codes() == ["erase-blocked"] * 3
    # The name of the model means its own table.
    assert "paid__next" not in lab.run("drop", "total", "--yes").out
    rebuild(lab, "-s", "paid+", "--discard")
    assert left(lab) == []
    assert lab.table("paid__next") is None
    assert {name: lab.snapshot(name) for name in ("paid", "copy", "hourly")} == {
        name: before[name] for name in ("paid", "copy", "hourly")
    }


@pytest.mark.nightly
def test_deleted_keys_and_the_quarantine_of_the_new_generation_count(lab: Lab) -> None:
    shop(lab)
    lab.land("c", [event(1, "10:30", kind="gone"), event(9, "10:40", amount=None)])
    lab.model("last", LAST.format(1))
    lab.build()
    lab.model("last", LAST.format(2))
    point = reached("taken over", kill, times=1)
    with point as seen:
        assert lab.run("build", "--rebuild", "-s", "last").code != 0
    assert seen == ["last"]
    rebuild(lab, "-s", "last")
    assert left(lab) == []
    # One of each generation; the killed attempt has added none.
    assert len(lab.rows("last__quarantine")) == 2
    # Older than the delete.
    lab.land("d", [event(1, "10:10"), event(4, "10:50")])
    lab.build()
    assert versions(lab, "last") == [(2, 2), (3, 2), (4, 2)]


def test_what_cannot_be_rebuilt_beside_its_table_is_rejected_before(lab: Lab) -> None:
    shop(lab)
    lab.write("sources/shop.yml", EVENTS + "        after_reading: delete\n")
    lab.model("paid", PAID.format(1).replace("streams:", "post_hook: select 1\nstreams:"))
    lab.model("total", "select count(*) as n from {{ ref('paid') }}")
    lab.model(
        "ratio", COPY.replace("version from", "n from").replace("paid') }}", "paid') }} cross join {{ ref('total') }}")
    )
    said = rebuild(lab, "-s", "paid+", code=1)
    assert said.codes() == ["rebuild-unavailable"] * 3
    for text in ("archived or deleted after reading", "hooks", "'total' in full, which is made from 'paid'"):
        assert text in said.text
    assert not lab.state.exists()
    assert rebuild(lab, "-s", "total", code=2).codes() == ["usage"]


@pytest.mark.nightly
def test_the_lock_of_the_table_is_wanted_only_to_publish(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    lab.model("paid", PAID.format(2))
    monkeypatch.setattr("engine.runtime.context.run_context._WAIT_SECONDS", 2.0)
    with locked([TableState(lab.root / ".engine" / "state", "lake", lab.schema, "paid")]):
        rebuild(lab, "-s", "paid", "--no-publish")
        assert rebuild(lab, "-s", "paid", code=1).codes() == ["table-locked"]
    assert versions(lab, "paid") == [(n, 1) for n in (1, 2, 3)]
    rebuild(lab, "-s", "paid")
    assert versions(lab, "paid") == [(n, 2) for n in (1, 2, 3)]


RANKING = """/*---
streams: {shop.events: {watermark: at delay 1 hour}}
output_mode: complete
---*/
select kind, count(*) as id, FACTOR as version from {{ source('shop', 'events') }} group by kind
"""
STAGED = CHECKED.replace("streams:", "publish: on_tests_pass\nstreams:")


@pytest.mark.nightly
def test_a_ranking_and_a_table_that_waits_for_its_tests_are_rebuilt(lab: Lab) -> None:
    shop(lab)
    for version in (1, 2):
        lab.model("ranking", RANKING.replace("FACTOR", str(version)))
        lab.model("staged", STAGED.format(version))
        if version == 1:
            lab.build()
    rebuild(lab)
    assert versions(lab, "ranking") == [(3, 2)]
    assert versions(lab, "staged") == [(n, 2) for n in (1, 2, 3)]
    lab.land("c", [event(4)])
    lab.build()
    assert versions(lab, "ranking") == [(4, 2)]
    assert versions(lab, "staged") == [(n, 2) for n in (1, 2, 3, 4)]
    lab.model("staged", STAGED.format(1).replace("streams:", "full_refresh: false\nstreams:"))
    assert rebuild(lab, "-s", "staged", code=1).codes() == ["full-refresh-protected"]


def test_a_name_that_is_taken_blocks_a_rebuild(lab: Lab) -> None:
    shop(lab)
    lab.model("paid__next", OTHER)
    lab.build()
    lab.model("paid", PAID.format(1))
    assert rebuild(lab, "-s", "paid", code=1).codes() == ["name-taken"]
    rebuild(lab, "-s", "paid", "--discard")
    assert lab.ids("paid__next") == [101, 102, 103]
    assert lab.run("drop", "paid__next", "--yes").code == 0
    assert lab.table("paid__next") is None


@pytest.mark.nightly_cases("renamed before")
@pytest.mark.parametrize("built", [True, False], ids=["renamed before", "not renamed yet"])
def test_a_table_with_another_name_is_not_taken_for_the_one_beside_it(lab: Lab, *, built: bool) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    uuid = lab.table("paid").uuid
    lab.model("paid", PAID.format(2 if not built else 1).replace("streams", "alias: sold\nrenamed_from: paid\nstreams"))
    if built:
        lab.build()
        lab.model("paid", PAID.format(2).replace("streams", "alias: sold\nrenamed_from: paid\nstreams"))
    said = rebuild(lab, "-s", "paid", "--no-publish", code=0 if built else 1)
    if not built:
        assert said.codes() == ["rebuild-unavailable"]
        assert lab.table("paid").uuid == uuid
        return
    assert lab.table("sold").uuid == uuid
    assert versions(lab, "sold") == [(n, 1) for n in (1, 2, 3)]
    rebuild(lab, "-s", "paid")
    assert versions(lab, "sold") == [(n, 2) for n in (1, 2, 3)]
    assert left(lab) == []
