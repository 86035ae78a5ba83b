"""`--reset-checkpoint open-windows`: written windows stay, and those that are open follow the edited query."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab, event

pytestmark = pytest.mark.spark

HOURLY = """/*---
streams: {{shop.events: {{watermark: at delay 10 minutes, dedup: [id]}}}}
windows: {{w: 'tumbling(at, {size})'}}
---*/
select w.start as begins, kind, {value} as v from {{{{ source('shop', 'events') }}}} group by w, kind
"""
READER = "/*---\nstreams: [sums]\n---*/\nselect begins, v from {{ ref('sums') }}"


def at(clock: str, id_: int) -> dict[str, Any]:
    """An event of a time of day; its number is what is summed up."""
    return {**event(id_), "at": f"2024-01-01T{clock}:00Z", "kind": "a"}


def values(lab: Lab, model: str = "sums") -> list[tuple[str, int]]:
    return sorted((row["begins"].strftime("%H:%M"), row["v"]) for row in lab.rows(model))


def begun(lab: Lab) -> None:
    """Hours 10 and 11 are written; of hour 12 two events are read, and one that is not."""
    lab.write("sources/shop.yml", EVENTS)
    lab.model("sums", HOURLY.format(size="1 hour", value="sum(id)"))
    lab.model("reader", READER)
    lab.land("a", [at("10:05", 1), at("10:50", 2), at("11:30", 3)])
    lab.build()
    lab.land("b", [at("12:05", 4), at("12:40", 5), at("12:05", 4)])
    lab.build()
    assert values(lab) == [("10:00", 3), ("11:00", 3)]
    lab.land("c", [at("12:50", 6), at("11:40", 7)])


def test_open_windows_follow_the_edit_and_written_ones_stay(lab: Lab) -> None:
    begun(lab)
    lab.model("sums", HOURLY.format(size="1 hour", value="max(id)"))
    rejected = lab.run("plan")
    assert "--reset-checkpoint open-windows" in rejected.text
    planned = lab.run("plan", "-s", "sums", "--reset-checkpoint", "open-windows")
    assert "windows from 2024-01-01 12:00:00 (UTC) on follow the query as it is now" in planned.text

    # Killed before its first micro-batch, it begins there all the same.
    with reached("computing", kill):
        assert lab.run("build", "-s", "sums", "--reset-checkpoint", "open-windows").code != 0
    lab.land("d", [at("13:20", 8), at("14:30", 9)])
    lab.build()
    expected = [("10:00", 3), ("11:00", 3), ("12:00", 6), ("13:00", 8)]
    assert values(lab) == expected
    assert values(lab, "reader") == expected
    assert {e["status"] for e in lab.build().events if e["event"] == "ModelFinished"} == {"unchanged"}

    # Another edit, before the new query has written a window: the one that is open is of 14:00.
    lab.model("sums", HOURLY.format(size="30 minutes", value="min(id)"))
    lab.build("-s", "sums", "--reset-checkpoint", "open-windows")
    lab.model("sums", HOURLY.format(size="30 minutes", value="count(*)"))
    lab.build("-s", "sums", "--reset-checkpoint", "open-windows")
    lab.land("e", [at("14:40", 10), at("14:22", 11), at("15:30", 12)])
    lab.build()
    assert values(lab) == [*expected, ("14:00", 1), ("14:30", 2)]


def test_windows_that_do_not_meet_are_rejected_before_anything_starts(lab: Lab) -> None:
    begun(lab)
    before = lab.snapshots()
    for edited, why in (
        (HOURLY.format(size="7 hours", value="sum(id)"), "a window of 7 hours does not begin at 2024-01-01 12:00:00"),
        (HOURLY.format(size="1 hour", value="sum(id)").replace("at delay", "cast(kind as timestamp) as t delay"), ""),
        (HOURLY.format(size="1 hour", value="sum(id)").replace("windows:", "output_mode: update\nwindows:"), "append"),
        (HOURLY.replace("tumbling(at, {size})", "session(at, 5 minutes)").format(value="max(id)"), "one tumbling"),
    ):
        lab.model("sums", edited)
        refused = lab.run("build", "-s", "sums", "--reset-checkpoint", "open-windows")
        assert refused.code == 1
        assert why in refused.text, refused.text
        assert lab.snapshots() == before
