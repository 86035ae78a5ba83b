"""A project with every kind of state in it, and what its tables must hold, counted by hand.

Three files a source, one file a micro-batch; micro-batch 2 is the last that has data. `d` lands later: a repeat, which
only the state of the dedup knows, and one new row.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.lab import EVENTS, Lab, event

_STREAM = "shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 1DEDUP}"
_WATERMARKED = _STREAM.replace("DEDUP", "")
HOURLY = f"""/*---
streams: {{{_WATERMARKED}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---*/
select hour.start as hour, count(*) as n, sum(amount) as amount from {{{{ source('shop', 'events') }}}} group by hour
"""
JOINED = f"""/*---
streams:
  {_WATERMARKED}
  shop.shipped: {{watermark: sent delay 10 minutes, max_files_per_trigger: 1}}
---*/
select e.id, e.at, s.sent
from {{{{ source('shop', 'events') }}}} e
join {{{{ source('shop', 'shipped') }}}} s on s.id = e.id and s.sent between e.at and e.at + interval 1 hour
"""
UNIQUE = f"""/*---
streams: {{{_STREAM.replace("DEDUP", ", dedup: [id]")}}}
---*/
select id, at from {{{{ source('shop', 'events') }}}}
"""
SHIPPED = """      - name: shipped
        format: json
        path: landing/shipped
        schema: "id int, sent timestamp"
"""
MODELS = {"hourly": HOURLY, "joined": JOINED, "uniq": UNIQUE}
LAST = 2


def paid(number: int, at: str) -> dict[str, Any]:
    return event(number, at, amount=float(number))


def sent(number: int, at: str) -> dict[str, Any]:
    return {"id": number, "sent": f"2024-05-01T{at}:00Z"}


def prepare(lab: Lab, endings: Iterable[str] = ("",)) -> None:
    """Write the project, with each model once for an ending of its name, and land what the three micro-batches read."""
    lab.write("sources/shop.yml", EVENTS + SHIPPED)
    for ending in endings:
        for name, text in MODELS.items():
            lab.model(name + ending, text)
    lab.land("a", [paid(1, "10:05"), paid(2, "10:50")])
    lab.land("a", [sent(1, "10:10")], "landing/shipped")
    lab.land("b", [paid(3, "11:40"), paid(4, "10:45")])
    lab.land("b", [sent(4, "10:50"), sent(9, "10:50")], "landing/shipped")
    lab.land("c", [paid(5, "13:15"), paid(3, "11:40")])
    lab.land("c", [sent(3, "11:45"), sent(5, "13:20")], "landing/shipped")


def land_later(lab: Lab) -> None:
    lab.land("d", [paid(5, "13:15"), paid(6, "13:20")])


def check(lab: Lab, ending: str = "", *, later: bool = True) -> None:
    """Compare the tables with what an undisturbed run writes; `later`: `d` has been read too."""
    ten, eleven = (datetime(2024, 5, 1, hour, tzinfo=UTC) for hour in (10, 11))
    hours = sorted((r["hour"], r["n"], r["amount"]) for r in lab.rows(f"hourly{ending}"))
    assert hours == [(ten, 3, 7.0), (eleven, 2, 6.0)]
    assert lab.ids(f"joined{ending}") == [1, 3, 3, 4, 5, *([5] if later else [])]
    assert lab.ids(f"uniq{ending}") == [1, 2, 3, 4, 5, *([6] if later else [])]


def checkpoint(lab: Lab, model: str) -> Path:
    return lab.state / model / "1" / "checkpoint"
