"""Joins of streams, end to end, beside golden rows from plain Python; and inputs that hold back a watermark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.lab import Lab, Result
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCES = sources_yaml(
    orders={
        "max_files_per_trigger": 1,
        "watermark": "at delay 10 minutes",
        "schema": "id int, at timestamp, item string",
    },
    payments={
        "max_files_per_trigger": 1,
        "watermark": "paid_at delay 10 minutes",
        "schema": "payment int, id int, paid_at timestamp",
    },
    items={"format": "csv", "path": "landing/items", "schema": "item string, title string"},
)
JOIN = """/*---
streams: [shop.orders, shop.payments]
---*/
select {columns}
from {{{{ source('shop', 'orders') }}}} o {kind} join {{{{ source('shop', 'payments') }}}} p
    on p.id = o.id and p.paid_at between o.at and o.at + interval 1 hour
"""
KINDS = {"inner": "inner", "left": "left", "right": "right", "full": "full", "semi": "left semi"}
ENRICHED = """/*---
streams: [shop.orders]
---*/
select o.id, i.title from {{ source('shop', 'orders') }} o left join {{ source('shop', 'items') }} i using (item)
"""
# One file a micro-batch of each side: (order, time), (payment, order, time).
ORDERS = [
    [(1, "10:00"), (2, "10:05"), (3, "10:10"), (4, "10:40")],
    [(5, "10:20"), (6, "12:30")],
    [(7, "10:45"), (8, "12:40")],  # 7 is late
    [(9, "15:30")],
]
PAYMENTS = [
    # 104 comes more than an hour after its order
    [(101, 1, "10:20"), (102, 99, "10:15"), (103, 3, "11:05"), (104, 2, "11:30")],
    [(105, 4, "11:00"), (106, 5, "10:50")],
    [(107, 6, "12:45"), (108, 1, "11:10"), (109, 8, "16:00")],  # 108 is late
    [(110, 77, "15:35"), (111, 6, "13:00")],
]
FIRST_BUILD = 2
DELAY, BOUND = timedelta(minutes=10), timedelta(hours=1)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2024-05-01T{text}:00+00:00")


@dataclass
class Golden:
    """The join as Spark's documentation has it, row by row: what is written, by kind, and how many rows were late."""

    rows: dict[str, Counter[tuple[Any, Any]]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    late: int = 0
    held: dict[str, dict[int, tuple[Any, datetime, bool]]] = field(default_factory=lambda: {"o": {}, "p": {}})
    watermarks: list[datetime] = field(default_factory=lambda: [NEVER, NEVER])

    def build(self, orders: list[Any], payments: list[Any]) -> None:
        """Micro-batches of one build, and the one without rows at its end."""
        newest = {"o": NEVER, "p": NEVER}
        for some, more in [*zip(orders, payments, strict=True), ([], [])]:
            late = self.watermarks[-2]  # the one with which the batch before began
            for side, found in (("o", some), ("p", more)):
                times = [at(row[-1]) for row in found]
                newest[side] = max([newest[side], *times])
            self._match(
                [r for r in some if not self._is_late(r, late)], [r for r in more if not self._is_late(r, late)]
            )
            self._evict(self.watermarks[-1])
            self.watermarks.append(max(self.watermarks[-1], min(newest.values()) - DELAY))

    def _is_late(self, row: Any, watermark: datetime) -> bool:
        late = at(row[-1]) <= watermark
        self.late += late
        return late

    def _match(self, orders: list[Any], payments: list[Any]) -> None:
        for number, time in orders:
            self.held["o"][number] = (number, at(time), False)
        for number, order, time in payments:
            self.held["p"][number] = (order, at(time), False)
        fresh = {number for number, _ in orders} | {number for number, _, _ in payments}
        for order, payment in list(self._pairs()):
            if order in fresh or payment in fresh:
                for kind in ("inner", "left", "right", "full"):
                    self.rows[kind][order, payment] += 1
                self.rows["semi"][order, None] = 1
                self.held["o"][order] = (*self.held["o"][order][:2], True)
                self.held["p"][payment] = (*self.held["p"][payment][:2], True)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for order, (_, time, _) in self.held["o"].items():
            for payment, (of, paid, _) in self.held["p"].items():
                if of == order and time <= paid <= time + BOUND:
                    yield order, payment

    def _evict(self, watermark: datetime) -> None:
        for side, bound, kinds in (("o", BOUND, ("left", "full")), ("p", timedelta(0), ("right", "full"))):
            for number, (_, time, matched) in list(self.held[side].items()):
                if time + bound < watermark:
                    del self.held[side][number]
                    for kind in kinds if not matched else ():
                        self.rows[kind][(number, None) if side == "o" else (None, number)] += 1


def land(lab: Lab, begin: int, end: int) -> None:
    for number in range(begin, end):
        orders = [{"id": i, "at": at(t).isoformat(), "item": "tea" if i % 2 else "cake"} for i, t in ORDERS[number]]
        lab.land(f"o{number}", orders, "landing/orders")
        payments = [{"payment": n, "id": i, "paid_at": at(t).isoformat()} for n, i, t in PAYMENTS[number]]
        lab.land(f"p{number}", payments, "landing/payments")


def warnings(result: Result, code: str) -> dict[str, str]:
    found = [e for e in result.events if e["event"] == "Diagnosed" and e["code"] == code]
    assert {e["level"] for e in found} <= {"warning"}
    return {e["node"]: e["message"] for e in found}


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", [("full", "semi"), tuple(KINDS)], ids=["few", "all"])
def test_joins_of_streams_equal_golden_rows(lab: Lab, kinds: tuple[str, ...]) -> None:
    lab.write("sources/shop.yml", SOURCES)
    text = (lab.root / "project.yml").read_text()
    lab.write("project.yml", text + "models: {+state_store: {partitions: 1}}\n")
    for name in kinds:
        columns = "o.id as o, cast(null as int) as p" if name == "semi" else "o.id as o, p.payment as p"
        lab.model(name, JOIN.format(columns=columns, kind=KINDS[name]))
    lab.model("enriched", ENRICHED)
    lab.write("landing/items/a.csv", "item,title\ntea,Tea\n")
    golden = Golden()

    land(lab, 0, FIRST_BUILD)
    first = lab.build()
    golden.build(ORDERS[:FIRST_BUILD], PAYMENTS[:FIRST_BUILD])
    assert {kind: found(lab, kind) for kind in kinds} == {kind: golden.rows[kind] for kind in kinds}
    assert golden.rows["left"][2, None] == golden.rows["right"][None, 102] == 1
    assert (None, 104) not in golden.rows["full"], "it is still waiting"
    held = warnings(first, "watermark-held")
    assert set(held) == set(kinds)
    assert held["full"] == (
        "'shop.payments' holds back the watermark of 'full', which is at 2024-05-01 11:20:00: its newest event time is 2024-05-01 11:30:00; 'shop.orders' is at 2024-05-01 12:30:00"
    )

    lab.write("landing/items/b.csv", "item,title\ncake,Cake\n")
    land(lab, FIRST_BUILD, len(ORDERS))
    second = lab.build()
    golden.build(ORDERS[FIRST_BUILD:], PAYMENTS[FIRST_BUILD:])
    assert {kind: found(lab, kind) for kind in kinds} == {kind: golden.rows[kind] for kind in kinds}
    assert golden.late == 2
    assert {kind: second.model(kind)["late"] for kind in kinds} == dict.fromkeys(kinds, golden.late)
    # The static side is that of the time at which a row came.
    titles = {row["id"]: row["title"] for row in lab.rows("enriched")}
    assert titles == {1: "Tea", 2: None, 3: "Tea", 4: None, 5: "Tea", 6: None, 7: "Tea", 8: "Cake", 9: "Tea"}


def found(lab: Lab, kind: str) -> Counter[tuple[Any, Any]]:
    return Counter((row["o"], row["p"]) for row in lab.rows(kind))


UNION = """/*---
streams: {shop.orders: {}, shop.payments: {watermark: paid_at as at delay 30 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as hour, count(*) as n
from (
    select at from {{ source('shop', 'orders') }} union all select at from {{ source('shop', 'payments') }}
)
group by hour
"""


def test_an_input_without_rows_holds_back_the_watermark_and_is_named(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCES)
    lab.model("hourly", UNION)

    def order(name: str, *times: str) -> None:
        lab.land(name, [{"id": 1, "at": at(t).isoformat(), "item": "tea"} for t in times], "landing/orders")

    def pay(name: str, *times: str) -> None:
        lab.land(name, [{"payment": 1, "id": 1, "paid_at": at(t).isoformat()} for t in times], "landing/payments")

    order("a", "10:05", "11:20")
    pay("a", "10:10", "11:30")
    first = lab.build()
    # Each side is less than its delay behind the other one.
    assert (first.codes(), first.model("hourly")["watermark"]) == ([], "2024-05-01T11:00:00.000Z")
    assert first.model("hourly")["event_times"] == {
        "shop.orders": "2024-05-01T11:20:00.000Z", "shop.payments": "2024-05-01T11:30:00.000Z",
    }  # fmt: skip
    came = lab.model_json("hourly")["event_times"]["shop.payments"]["came"]

    # Although the payments are ahead of the watermark, it stays where it is as long as none comes.
    order("b", "14:00")
    idle = lab.build()
    ended = idle.model("hourly")
    assert (ended["watermark"], ended["event_times"]["shop.payments"]) == ("2024-05-01T11:00:00.000Z", None)
    (message,) = warnings(idle, "watermark-held").values()
    assert message == (
        f"'shop.payments' holds back the watermark of 'hourly', which is at 2024-05-01 11:00:00: it had no rows in this build; its newest event time, 2024-05-01 11:30:00, came {came[:19].replace('T', ' ')}; 'shop.orders' is at 2024-05-01 14:00:00"
    )
    kept = json.loads((lab.root / "target/run_results.json").read_text())["results"][0]["adapter_response"]
    assert [d["code"] for d in kept["diagnostics"]] == ["watermark-held"]
    assert kept["event_times"] == ended["event_times"]

    order("c", "14:10")
    pay("b", "14:20")
    assert lab.build().codes() == []
    assert {row["hour"].hour: row["n"] for row in lab.rows("hourly")} == {10: 2, 11: 2}
