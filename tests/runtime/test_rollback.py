"""`engine rollback`: what a full refresh has replaced is the table's again, with its checkpoint."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import Lab, Result, event

pytestmark = pytest.mark.spark

HOURLY = """/*---
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, {size})'}}
{more}
---*/
select hour.start as hour, count(*) as n{column} from {{{{ source('shop', 'events') }}}} group by hour
"""
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, {0} as version from {{{{ source('shop', 'events') }}}}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id, version from {{ ref('paid') }}\n"
LAST = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'gone'
exclude: [kind]
---*/
select {0} as id, at, kind, amount from {{{{ source('shop', 'events') }}}}
"""
TOTAL = "select count(*) as n, max(version) as version from {{ ref('copy') }}"


def roll_back(lab: Lab, *models: str, code: int = 0, more: tuple[str, ...] = ("--yes",)) -> Result:
    result = lab.run("rollback", *models, *more)
    assert result.code == code, result.text
    return result


def rows(lab: Lab, name: str) -> list[dict[str, Any]]:
    return sorted(lab.rows(name), key=str)


def hourly(size: str, column: str = "", more: str = "") -> str:
    return HOURLY.format(size=size, column=column, more=more)


def shop(lab: Lab) -> None:
    lab.land("a", [event(1, "10:05"), event(2, "11:50")])
    lab.land("b", [event(3, "13:40")])


def rebuilt(lab: Lab) -> None:
    """The first version of a model, replaced by the second."""
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    lab.model("paid", PAID.format(2))
    lab.build("-f")


def test_rows_columns_layout_and_open_windows_come_back(lab: Lab) -> None:
    shop(lab)
    lab.model("hourly", hourly("1 hour"))
    lab.build()
    before, table = rows(lab, "hourly"), lab.table("hourly")
    assert table is not None
    changed = hourly(
        "2 hours", ", max(amount) as most", "partition_by: most\ntable_properties: {commit.retry.num-retries: '7'}"
    )
    lab.model("hourly", changed)
    lab.build("-f")
    refreshed = rows(lab, "hourly")
    assert refreshed != before
    said = roll_back(lab, "hourly", more=("--dry-run",))
    assert [e["event"] for e in said.events] == ["WouldRollBack"]
    assert rows(lab, "hourly") == refreshed
    result = roll_back(lab, "hourly")
    assert {(e["model"], e["generation"], e["rows"]) for e in result.events if e["event"] == "RolledBack"} == {
        ("hourly", 1, len(before))
    }
    now = lab.table("hourly")
    assert now is not None
    assert rows(lab, "hourly") == before
    assert (now.columns, now.layout, now.properties, now.history) == (
        table.columns, table.layout, table.properties, table.history
    )  # fmt: skip
    # The edit is still there, and is rejected as it was.
    assert lab.run("build").codes() == ["model-changed"]
    lab.model("hourly", hourly("1 hour"))
    assert lab.build().model("hourly")["status"] == "unchanged"
    # The window of 13:40 was open then, and is closed with both of its rows.
    lab.land("c", [event(4, "13:55"), event(5, "16:00")])
    lab.build()
    assert {row["hour"].hour: row["n"] for row in lab.rows("hourly")} == {10: 1, 11: 1, 13: 2}


def test_a_second_rollback_undoes_the_first(lab: Lab) -> None:
    rebuilt(lab)
    lab.land("c", [event(4)])
    lab.build()
    refreshed = rows(lab, "paid")
    assert [row["version"] for row in refreshed] == [2] * 4
    roll_back(lab, "paid")
    assert [row["version"] for row in lab.rows("paid")] == [1] * 3
    roll_back(lab, "paid")
    assert rows(lab, "paid") == refreshed
    assert lab.build().model("paid")["status"] == "unchanged"
    roll_back(lab, "paid")
    lab.model("paid", PAID.format(1))
    # What came after the refresh is read by the generation that came back.
    lab.build()
    assert [(row["id"], row["version"]) for row in rows(lab, "paid")] == [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_a_chain_goes_back_together(lab: Lab) -> None:
    shop(lab)
    for name, text in {"paid": PAID.format(1), "copy": COPY, "total": TOTAL}.items():
        lab.model(name, text)
    lab.build()
    lab.model("paid", PAID.format(2))
    lab.build("-f", "-s", "paid+")
    assert lab.rows("total") == [{"n": 3, "version": 2}]
    assert roll_back(lab, "paid", code=1).codes() == ["downstream-stops"]
    roll_back(lab, "paid+")
    lab.model("paid", PAID.format(1))
    lab.land("c", [event(4)])
    lab.build()
    assert {row["version"] for row in lab.rows("copy")} == {1}
    assert (lab.ids("copy"), lab.rows("total")) == ([1, 2, 3, 4], [{"n": 4, "version": 1}])


def test_a_stream_that_was_not_rebuilt_continues_with_what_came_back(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.model("copy", COPY)
    lab.build()
    lab.model("paid", PAID.format(2))
    lab.build("-f", "-s", "paid", "--accept", "downstream-stops")
    assert lab.run("build", "-s", "copy").code == 1
    roll_back(lab, "paid")
    lab.model("paid", PAID.format(1))
    lab.land("c", [event(4)])
    lab.build()
    assert lab.ids("copy") == [1, 2, 3, 4]


@pytest.mark.nightly
def test_a_stream_whose_input_has_expired_stays_as_it_is(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.model("copy", COPY)
    lab.build()
    lab.model("copy", COPY.replace("select id", "select id + 0 as id"))
    lab.build("-f", "-s", "copy")
    for number in range(2):
        lab.land(f"more-{number}", [event(4 + number)])
        lab.build()
    lab.session.spark.sql(  # type: ignore[union-attr]
        f"call lake.system.expire_snapshots(table => '{lab.schema}.paid', retain_last => 1, "
        "older_than => timestamp '2100-01-01 00:00:00')"
    )
    before = rows(lab, "copy")
    said = roll_back(lab, "copy", code=1)
    assert said.codes() == ["rollback-unavailable"]
    assert "rows of 'paid' that 'copy' had not read before" in said.text
    assert rows(lab, "copy") == before


POINTS = ["begun", "put back", "brought back", "retired", "unnoted"]


@pytest.mark.gate
@pytest.mark.parametrize("point", POINTS)
def test_a_rollback_that_is_killed_is_finished_by_the_same_command(lab: Lab, point: str) -> None:
    rebuilt(lab)
    with reached(point, kill) as seen:
        assert lab.run("rollback", "paid", "--yes").code != 0
    assert seen == ["paid"]
    if point != "unnoted":
        assert "rollback-unfinished" in lab.run("build").codes()
        roll_back(lab, "paid")
    lab.model("paid", PAID.format(1))
    lab.land("c", [event(4)])
    lab.build()
    assert [(row["id"], row["version"]) for row in rows(lab, "paid")] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert not list(lab.state.rglob("operation.json"))


@pytest.mark.gate
@pytest.mark.parametrize("point", ["previous kept", "replacing", "replaced", "noted"])
def test_a_refresh_that_is_killed_keeps_what_it_replaced_and_nothing_else(lab: Lab, point: str) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    lab.model("paid", PAID.format(2))
    with reached(point, kill) as seen:
        assert lab.run("build", "-f").code != 0
    assert "paid" in seen
    if point in {"previous kept", "replacing"}:
        lab.build("--discard-refresh")
        lab.land("c", [event(4)])
        lab.model("paid", PAID.format(1))
        lab.build()
        # Nothing was replaced: there is nothing to go back to, whatever the tag says.
        assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]
        lab.model("paid", PAID.format(3))
        lab.build("-f")
        roll_back(lab, "paid")
        assert [(row["id"], row["version"]) for row in rows(lab, "paid")] == [(1, 1), (2, 1), (3, 1), (4, 1)]
        return
    lab.build()
    roll_back(lab, "paid")
    assert [(row["id"], row["version"]) for row in rows(lab, "paid")] == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.nightly
def test_what_was_kept_for_a_refresh_that_never_came_is_no_way_back(lab: Lab) -> None:
    """Its checkpoint has gone on since: with the rows of then, those in between would be missing."""
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    with reached("replacing", kill) as seen:
        assert lab.run("build", "-f").code != 0
    assert seen
    lab.build("--discard-refresh")
    lab.land("c", [event(4)])
    lab.build()
    assert list(lab.state.rglob("previous.json"))
    lab.build("--reset-checkpoint", "now")
    assert not list(lab.state.rglob("previous.json"))
    assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]
    assert lab.ids("paid") == [1, 2, 3, 4]


@pytest.mark.nightly
def test_deleted_keys_of_the_earlier_generation_count_again(lab: Lab) -> None:
    shop(lab)
    lab.model("last", LAST.format("id"))
    lab.build()
    lab.land("c", [event(1, "10:30", kind="gone")])
    lab.build()
    assert lab.ids("last") == [2, 3]
    lab.model("last", LAST.format("id").replace("amount", "amount, 1 as one"))
    lab.build("-f")
    assert [e["rows"] for e in roll_back(lab, "last").events] == [2]
    lab.model("last", LAST.format("id"))
    # Older than the delete.
    lab.land("d", [event(1, "10:10"), event(4, "10:40")])
    lab.build()
    assert lab.ids("last") == [2, 3, 4]
    lab.model("last", LAST.format("cast(id as string)"))
    lab.build("-f")
    assert roll_back(lab, "last", code=1).codes() == ["rollback-unavailable"]


def test_what_is_not_kept_is_not_brought_back(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.model("total", "select count(*) as n from {{ ref('paid') }}")
    lab.build()
    assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]
    assert roll_back(lab, "total", code=1).codes() == ["rollback-unavailable"]
    lab.model("paid", PAID.format(2).replace("streams:", "keep_previous: 0 days\nstreams:"))
    lab.build("-f")
    assert not list(lab.state.rglob("previous.json"))
    assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]
    # As if its time had passed.
    lab.model("paid", PAID.format(3))
    lab.build("-f")
    (noted,) = lab.state.rglob("previous.json")
    noted.write_text(json.dumps({**json.loads(noted.read_text()), "until": 1}))
    lab.land("c", [event(4)])
    lab.build()
    assert not list(lab.state.rglob("previous.json"))
    assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]


@pytest.mark.nightly
def test_maintenance_keeps_what_may_come_back_and_an_erasure_does_not(lab: Lab) -> None:
    rebuilt(lab)
    assert lab.run("maintain", "--older-than", "0 seconds").code == 0
    assert lab.run("erase", "paid", "--where", "id = 99", "--yes").code == 0
    roll_back(lab, "paid")
    assert {row["version"] for row in lab.rows("paid")} == {1}
    lab.model("paid", PAID.format(1))
    assert lab.run("erase", "paid", "--where", "id = 1", "--yes").code == 0
    assert not list(lab.state.rglob("previous.json"))
    assert roll_back(lab, "paid", code=1).codes() == ["rollback-unavailable"]
    lab.land("c", [event(4)])
    lab.build()
    assert lab.ids("paid") == [2, 3, 4]


@pytest.mark.nightly
def test_a_generation_whose_checkpoint_was_lost_does_not_come_back(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format(1))
    lab.build()
    shutil.rmtree(lab.state / "paid" / "1" / "checkpoint")
    assert lab.run("build").codes() == ["checkpoint-lost"]
    lab.build("-f")
    said = roll_back(lab, "paid", code=1)
    assert said.codes() == ["rollback-unavailable"]
    assert "the checkpoint of" in said.text
