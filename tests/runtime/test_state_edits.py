"""Edits of queries that keep state, run with real state: what `plan` accepts gives the right rows.

Several models are built together, all of them are edited, and built again over rows that close their windows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.lab import EVENTS, Lab, event

PAYS = """      - name: pays
        format: json
        path: landing/pays
        schema: "id int, paid_at timestamp, sum double"
"""
E, P = "{{ source('shop', 'events') }}", "{{ source('shop', 'pays') }}"
ADD = "on_schema_change: append_columns"


def header(delay: str = "10 minutes", *lines: str, more: str = "") -> str:
    said = "\n".join(lines)
    return f"/*---\nstreams: {{shop.events: {{watermark: at delay {delay}{more}}}}}\n{said}\n---*/\n"


HOUR = "windows: {hour: 'tumbling(at, 1 hour)'}"
ALL = "count(*) as n, sum(id) as ids, sum(amount) as total, max(amount) as top"
KINDS = f"select hour.start as h, kind, count(*) as n, sum(id) as ids from {E} group by 1, 2"
SESSIONS = f"select s.start as h, s.end as e, kind, count(*) as n from {E} group by s, kind"
CHAIN = f"""with m as (select window(at, '10 minutes') as w, sum(amount) as s, max(amount) as x from {E} group by 1)
select window(w, '1 hour').start as h, sum(s) as total, max(x) as top, count(*) as n from m group by window(w, '1 hour')"""
JOIN = """/*---
streams: {shop.events: {watermark: at delay %s}, shop.pays: {watermark: paid_at delay %s}}
on_schema_change: append_columns
---*/
"""
BEFORE = {
    "windowed": header("10 minutes", HOUR, ADD) + f"select hour.start as h, {ALL} from {E} group by hour",
    "moved": header("10 minutes", HOUR) + f"select hour.start as h, {ALL} from {E} group by hour",
    "filtered": header("10 minutes", HOUR) + f"select hour.start as h, {ALL} from {E} group by hour",
    "keyed": header("10 minutes", HOUR) + KINDS,
    "sessions": header("10 minutes", "windows: {s: 'session(at, 5 minutes)'}") + SESSIONS,
    "deduped": header("10 minutes", ADD, more=", dedup: [id]") + f"select id, kind from {E}",
    "updated": header("10 minutes", HOUR, "unique_key: [h]") + f"select hour.start as h, {ALL} from {E} group by hour",
    "totals": header("10 minutes", "output_mode: complete") + f"select kind, count(*) as n, sum(id) as ids from {E} group by kind",
    "chained": header() + CHAIN,
    "joined": JOIN % ("10 minutes", "10 minutes") + f"select e.id, e.kind, p.sum from {E} e left join {P} p "
    "on e.id = p.id and p.paid_at between e.at and e.at + interval 1 hour",
}  # fmt: skip
AFTER = {
    # An alias, qualified columns, a renamed window with another spelling, the start as key, another order, an output
    # renamed, a derived column, an aggregate once more, HAVING over aggregates, a larger delay.
    "windowed": header("20 minutes", "windows: {w: 'tumbling(at, 60 minutes)'}", ADD)
    + f"select max(e.amount) - sum(e.amount) as rest, max(amount) as highest, e_total as again, sum(e.amount) as total, "
      f"count(1) as n, sum(id) as ids, w.start as h from (select *, amount as v from {E}) e group by w.start "
      "having max(amount) > 6 and count(*) > 2".replace("e_total", "count(*)"),
    "moved": header("1 minute", HOUR)
    + f"with q as (select * from {E}), g as (select max(amount) as top, hour.start as h, min(id) as unused, "
      "sum(amount) as total, sum(id) as ids, count(*) as n from q group by all) select h, n, ids, total, top from g",
    "filtered": header("10 minutes", HOUR) + f"select hour.start as h, {ALL} from {E} where kind = 'a' group by hour",
    "keyed": header("10 minutes", HOUR) + f"select sum(id) as ids, kind, count(*) as n, hour.start as h from {E} group by 4, 2",
    "sessions": header("20 minutes", "windows: {s: 'session(at, 20 minutes)'}") + SESSIONS,
    "deduped": header("30 minutes", ADD, more=", dedup: [id]") + f"select kind, amount, id from {E} where id <> 5",
    "updated": header("30 minutes", HOUR, "unique_key: [h]")
    + f"select max(amount) as top, sum(amount) as total, sum(id) as ids, count(*) as n, hour.start as h from {E} "
      "group by hour having sum(amount) > 1",
    "totals": header("10 minutes", "output_mode: complete")
    + f"select sum(e.id) * 2 as ids, e.kind, count(*) as n from {E} e group by e.kind having count(*) > 1",
    "chained": header("5 minutes")
    + f"with m as (select sum(e.amount) as s, max(e.amount) as x, window(at, '600 seconds') as w, min(id) as unused "
      f"from {E} e group by 3) select sum(s) as total, max(x) as top, count(*) as n, window(w, '60 minutes').start as h "
      "from m group by window(w, '1 hour')",
    "joined": JOIN % ("20 minutes", "25 minutes")
    + f"with v as (select * from {E}), q as (select * from {P}) select q.sum, q.sum * 2 as twice, v.kind, v.id from v left join q "
      "on v.id = q.id and q.paid_at between v.at and v.at + interval 60 minutes",
}  # fmt: skip

# `make test` has these kinds of state, the night all of them.
FEW = ("windowed", "moved", "filtered", "keyed", "joined")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2024-05-01T{text}:00").replace(tzinfo=UTC)


HOUR_10 = {"h": at("10:00"), "n": 5, "ids": 15, "total": 18.0, "top": 7.0}
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "windowed": [{**HOUR_10, "top": None, "highest": 7.0, "rest": -11.0, "again": 5}],
    "moved": [HOUR_10],
    # The rows of the first build are all in; of the second only those of 'a'.
    "filtered": [{**HOUR_10, "n": 4, "ids": 10, "total": 11.0, "top": 5.0}],
    "keyed": [{"h": at("10:00"), "kind": "a", "n": 3, "ids": 8}, {"h": at("10:00"), "kind": "b", "n": 2, "ids": 7}],
    # 10:40 was open with 5 minutes and is reached by no row; the rows of 10:50 and 10:55 have 20 minutes.
    "sessions": [
        {"h": at("10:05"), "e": at("10:10"), "kind": "a", "n": 1},
        {"h": at("10:20"), "e": at("10:25"), "kind": "b", "n": 1},
        {"h": at("10:40"), "e": at("10:45"), "kind": "a", "n": 1},
        {"h": at("10:50"), "e": at("11:10"), "kind": "a", "n": 1},
        {"h": at("10:55"), "e": at("11:15"), "kind": "b", "n": 1},
    ],
    "deduped": [
        {"id": 1, "kind": "a", "amount": None},
        {"id": 2, "kind": "b", "amount": None},
        {"id": 3, "kind": "a", "amount": None},
        {"id": 4, "kind": "a", "amount": 3.0},
        {"id": 9, "kind": "a", "amount": 0.5},
    ],
    # 14:00 has less than the HAVING asks for.
    "updated": [HOUR_10],
    "totals": [{"kind": "a", "n": 4, "ids": 34}, {"kind": "b", "n": 2, "ids": 14}],
    "chained": [{"h": at("10:00"), "total": 18.0, "top": 7.0, "n": 4}],
    "joined": [
        {"id": 1, "kind": "a", "sum": 1.5, "twice": None},
        {"id": 2, "kind": "b", "sum": None, "twice": None},
        {"id": 3, "kind": "a", "sum": 3.5, "twice": 7.0},
        {"id": 4, "kind": "a", "sum": None, "twice": None},
        {"id": 5, "kind": "b", "sum": 5.5, "twice": 11.0},
    ],
}


def pay(number: int, time: str, amount: float) -> dict[str, Any]:
    return {"id": number, "paid_at": f"2024-05-01T{time}:00Z", "sum": amount}


@pytest.mark.nightly_cases("all")
@pytest.mark.spark
@pytest.mark.parametrize("names", [FEW, tuple(BEFORE)], ids=["few", "all"])
def test_edits_that_leave_the_state_give_the_right_rows(lab: Lab, names: tuple[str, ...]) -> None:
    lab.write("sources/shop.yml", EVENTS + PAYS)
    for name in names:
        lab.model(name, BEFORE[name])
    lab.land("1", [event(1, "10:05", "a", 1.0), event(2, "10:20", "b", 2.0), event(3, "10:40", "a", 5.0)])
    lab.land("1", [pay(1, "10:10", 1.5)], folder="landing/pays")
    lab.build()
    assert [row for name in {*names} & {"windowed", "moved", "keyed", "chained"} for row in lab.rows(name)] == []

    for name in names:
        lab.model(name, AFTER[name])
    lab.land("2", [event(4, "10:50", "a", 3.0), event(5, "10:55", "b", 7.0)])
    lab.land("2", [pay(3, "10:45", 3.5), pay(5, "10:56", 5.5)], folder="landing/pays")
    lab.land("3", [event(9, "14:30", "a", 0.5)])
    lab.land("3", [pay(77, "14:45", 9.5)], folder="landing/pays")
    built = lab.build()
    for name in names:
        assert sorted(lab.rows(name), key=str) == sorted(EXPECTED[name], key=str), name
    note = built.model("filtered")["note"]
    assert "the filter events.kind = 'a' was added; this applies to new rows; open groups of GROUP BY" in note
    assert "watermark delay of 'shop.events' changed from 10 minutes to 20 minutes" in built.model("windowed")["note"]

    # The order of the state lasts as long as the state, also where nothing was edited since.
    lab.land("4", [event(20, "14:40", "a", 1.5), event(21, "17:00", "a", 9.0)])
    lab.build("-s", "moved", "-s", "keyed")
    closed = {"h": at("14:00"), "n": 2, "ids": 29}
    assert [row for row in lab.rows("moved") if row["h"] == at("14:00")] == [{**closed, "total": 2.0, "top": 1.5}]
    assert [row for row in lab.rows("keyed") if row["h"] == at("14:00")] == [{**closed, "kind": "a"}]


STAR = """/*---
streams: {orders: {watermark: at delay 10 minutes}, shop.pays: {watermark: paid_at delay 10 minutes}}
---*/
select %s, p.sum from {{ ref('orders') }} o join {{ source('shop', 'pays') }} p
  on o.id = p.id and p.paid_at between o.at and o.at + interval 1 hour
"""
ORDERS = "/*---\nstreams: [shop.events]\non_schema_change: append_columns\n---*/\nselect %s from {{ source('shop', 'events') }}"


@pytest.mark.nightly
@pytest.mark.spark
def test_a_star_over_a_model_that_gained_a_column_is_rejected_before_anything_is_written(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS + PAYS)
    lab.model("orders", ORDERS % "id, at")
    lab.model("paid", STAR % "o.*")
    lab.land("1", [event(1, "10:05", "a", 1.0), event(2, "10:20", "b", 2.0)])
    lab.land("1", [pay(1, "10:10", 1.5)], folder="landing/pays")
    lab.build()

    lab.model("orders", ORDERS % "id, at, kind")
    lab.land("2", [event(3, "10:40", "a", 5.0)])
    lab.land("2", [pay(3, "10:45", 3.5)], folder="landing/pays")
    before = lab.snapshot("paid")
    result = lab.run("build")
    assert result.code == 1
    assert result.codes() == ["model-changed", "build-rejected"]
    assert (
        "buffers of its left side changed from orders.id, orders.at to orders.id, orders.at, orders.kind" in result.text
    )
    assert lab.snapshot("paid") == before

    lab.model("paid", STAR % "o.id, o.at")
    lab.build()
    assert lab.ids("paid") == [1, 3]


@pytest.mark.spark
def test_what_only_spark_finds_of_the_state_has_a_message_of_its_own(lab: Lab) -> None:
    table = f"lake.{lab.schema}.stock"
    lab.write(
        "sources/shop.yml",
        EVENTS + PAYS + f"      - {{name: stock, format: iceberg, table: {lab.schema}.stock}}\n",
    )
    sql = lab.session.spark.sql  # type: ignore[union-attr]
    sql(f"create namespace if not exists lake.{lab.schema}")
    sql(f"create table {table} (id int, at timestamp) using iceberg")
    sql(f"insert into {table} values (1, timestamp '2024-01-01 10:05:00')")
    lab.model(
        "paid",
        (STAR % "o.*")
        .replace("{{ ref('orders') }}", "{{ source('shop', 'stock') }}")
        .replace("orders:", "shop.stock:"),
    )
    lab.land("1", [pay(1, "10:10", 1.5)], folder="landing/pays")
    lab.build()
    sql(f"alter table {table} add column kind string")
    sql(f"insert into {table} values (3, timestamp '2024-01-01 10:40:00', 'a')")
    lab.model(
        "paid", (lab.root / "models/paid.sql").read_text().replace("streams:", "on_schema_change: ignore\nstreams:")
    )
    lab.land("2", [pay(3, "10:45", 3.5)], folder="landing/pays")
    before = lab.snapshot("paid")
    result = lab.run("build")
    assert result.code == 1
    assert "state-schema" in result.codes()
    assert "model-changed" not in result.codes()
    assert "instead of '*'" in result.text
    assert lab.snapshot("paid") == before
