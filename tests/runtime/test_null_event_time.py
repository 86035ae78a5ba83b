"""Rows whose event time is NULL: bad records where a stateful step would lose them, and rows like others elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCES = sources_yaml(
    events={"schema": "id int, at timestamp, kind string, text string", "on_bad_record": "quarantine"},
    refunds={"schema": "id int, refunded_at timestamp", "on_bad_record": "drop"},
)
EVENTS, REFUNDS = "{{ source('shop', 'events') }}", "{{ source('shop', 'refunds') }}"
ONE = "streams: {{shop.events: {{watermark: at delay 10 minutes{}}}}}"
TWO = """streams:
  shop.events: {watermark: at delay 10 minutes}
  shop.refunds: {watermark: refunded_at delay 10 minutes}"""
SLIDING = f"""select window(at, '1 hour', '30 minutes').start as t, count(*) as n from {EVENTS}
  group by window(at, '1 hour', '30 minutes')"""
COUNTED = f"select hour.start as hour, count(*) as n from {EVENTS} group by hour"
BOUNDED = f"{EVENTS} e left join {REFUNDS} r on e.id = r.id and r.refunded_at between e.at and e.at + interval 1 hour"

# Where such a row is lost: header and query.
LOSING = {
    "tumbling": (ONE.format("") + "\nwindows: {hour: 'tumbling(at, 1 hour)'}", COUNTED),
    "sessions": (ONE.format("") + "\nwindows: {hour: 'session(at, 1 hour)'}", COUNTED + ", kind"),
    "sliding": (ONE.format("") + "\noutput_mode: update\nunique_key: t", SLIDING),
    "grouped": (ONE.format(""), f"select t, count(*) as n from (select at as t from {EVENTS}) group by t"),
    "distinct_rows": (ONE.format(""), f"select distinct id, at from {EVENTS}"),
    "unique_ids": (ONE.format(", dedup: [id]"), f"select id, at from {EVENTS}"),
    "joined": (TWO, f"select e.id, r.id as refund from {BOUNDED}"),
}  # fmt: skip
# Where it is counted like any other, or the query says itself what becomes of it.
KEEPING = {
    "stateless": (ONE.format(""), f"select id from {EVENTS}"),
    "by_kind": (ONE.format("") + "\noutput_mode: update\nunique_key: kind",
                f"select kind, count(*) as n from {EVENTS} group by kind"),
    "by_day": (ONE.format("") + "\noutput_mode: update\nunique_key: day",
               f"select to_date(at) as day, count(*) as n from {EVENTS} group by to_date(at)"),
    "by_id": (TWO, f"select e.id from {EVENTS} e join {REFUNDS} r on e.id = r.id"),
    "filtered": (ONE.format("") + "\nwindows: {hour: 'tumbling(at, 1 hour)'}",
                 COUNTED.replace("group by", "where id > 0 and at is not null group by")),
}  # fmt: skip


def event(number: int, at: str | None, **more: Any) -> dict[str, Any]:
    return {"id": number, "at": at and f"2024-05-01T{at}:00Z", "kind": "paid", **more}


def refund(number: int, at: str | None) -> dict[str, Any]:
    return {"id": number, "refunded_at": at and f"2024-05-01T{at}:00Z"}


def write(lab: Lab, models: dict[str, tuple[str, str]]) -> None:
    lab.write("sources/shop.yml", SOURCES)
    for name, (header, sql) in models.items():
        lab.model(name, f"/*---\n{header}\n---*/\n{sql}\n")


@pytest.mark.nightly
def test_where_a_stateful_step_would_lose_it_the_row_is_a_bad_record(lab: Lab) -> None:
    write(lab, LOSING | KEEPING)
    lab.land("a", [event(1, "10:05"), event(2, None), event(2, None), event(3, "10:40")])
    lab.land("b", [event(2, None), event(4, "15:00")])
    lab.land("a", [refund(1, "10:10"), refund(2, None)], "landing/refunds")
    lab.land("b", [refund(4, "15:10")], "landing/refunds")
    result = lab.build()
    for name in LOSING:
        expected = {"shop.events": 3, "shop.refunds": 1} if name == "joined" else {"shop.events": 3}
        assert result.model(name)["bad_records"] == expected, name
        assert result.model(name)["quarantined"] == 3, name
        kept = lab.rows(f"{name}__quarantine")
        assert {(r["reason"], json.loads(r["row"])["id"]) for r in kept} == {("'at' is NULL", 2)}, name
    for name in KEEPING:
        assert result.model(name)["bad_records"] == {}, name
    assert len(lab.rows("unique_ids")) == 3
    assert sum(r["n"] for r in lab.rows("by_kind")) == sum(r["n"] for r in lab.rows("by_day")) == 6
    assert lab.ids("by_id") == [1, 2, 2, 2, 4]
    assert [r["n"] for r in lab.rows("filtered")] == [r["n"] for r in lab.rows("tumbling")] == [2]


CAST = "{{column: at_2, as: try_cast(text as timestamp), delay: 10 minutes{}}}"
COMPUTED = "streams: {{shop.events: {{watermark: {}, on_bad_record: {}}}}}\nwindows: {{hour: 'tumbling(at_2, 1 hour)'}}"


@pytest.mark.nightly
def test_a_cast_that_fails_everywhere_stops_the_build_or_is_counted(lab: Lab) -> None:
    write(lab, {
        "failing": (COMPUTED.format(CAST.format(""), "fail"), COUNTED),
        "counting": (COMPUTED.format(CAST.format(", on_null: drop"), "fail"), COUNTED),
    })  # fmt: skip
    lab.land("a", [event(1, "10:05", text="01/05/2024"), event(2, "10:06", text="02/05/2024")])
    result = lab.run("build")
    assert sorted(result.codes()) == ["bad-record", "bad-records"]
    (found,) = [e for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert found["node"] == "failing"
    assert found["message"].startswith("2 records of shop.events cannot be read: ")
    assert "landing/events/a.json: 'at_2' is NULL: try_cast(text as timestamp) ({\"id\":1," in found["message"]
    assert "'on_null: drop' in the watermark" in found["hint"]
    assert "Traceback" not in result.text
    assert not lab.table("failing").history  # type: ignore[union-attr]
    assert result.model("counting")["bad_records"] == {"shop.events": 2}
    # A record that is bad for another reason still stops it.
    lab.write("landing/events/b.json", "{no json\n")
    assert "b.json:1: " in lab.run("build", "-s", "counting").text
    # The setting is no part of the state: it may change in a running model.
    lab.model("failing", f"/*---\n{COMPUTED.format(CAST.format(', on_null: drop'), 'drop')}\n---*/\n{COUNTED}\n")
    lab.model("counting", f"/*---\n{COMPUTED.format(CAST.format(''), 'drop')}\n---*/\n{COUNTED}\n")
    changed = lab.build()
    assert [changed.model(n)["bad_records"] for n in ("failing", "counting")] == [
        {"shop.events": 3},
        {"shop.events": 1},
    ]


CLEAN = f"/*---\nstreams: [shop.events]\n---*/\nselect id, at from {EVENTS}\n"
THROUGH = """/*---
streams: [either]
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, count(*) as n from {{ ref('either') }} group by hour
"""
EITHER = """/*---
materialized: ephemeral
streams: {clean: {watermark: AT delay 10 minutes, on_bad_record: drop}}
---*/
select id, at from {{ ref('clean') }}
"""
HOURLY = """/*---
streams: {clean: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, count(*) as n from {{ ref('clean') }} group by hour
"""


def test_rows_of_a_model_stop_what_reads_it_until_the_stream_says_otherwise(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES)
    lab.model("clean", CLEAN)
    lab.model("hourly", HOURLY)
    lab.model("either", EITHER)
    lab.model("through", THROUGH)
    lab.land("a", [event(1, "10:05"), event(2, None), event(3, "12:00")])
    result = lab.run("build")
    assert sorted(result.codes()) == ["bad-record", "bad-records"]
    assert 'a record of clean cannot be read: \'at\' is NULL ({"id":2,"at":null})' in result.text.replace('\\"', '"')
    assert result.model("through")["bad_records"] == {"clean": 1}
    lab.model("hourly", HOURLY.replace("10 minutes", "10 minutes, on_bad_record: quarantine"))
    assert lab.build().model("hourly")["bad_records"] == {"clean": 1}
    assert [r["n"] for r in lab.rows("hourly")] == [1]
    assert [json.loads(r["row"]) for r in lab.rows("hourly__quarantine")] == [{"id": 2, "at": None}]
