"""`--reset-checkpoint open-windows`: written windows stay, and those that are open follow the edited query."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import Lab, event

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


@dataclass(slots=True)
class Expected:
    """What the table must hold, computed event by event in plain Python.

    Attributes:
        events: of all files: minute of the day and number.
        edits: from which minute on a query counts: the length of its windows, and what it computes.
    """

    events: list[tuple[int, int]] = field(default_factory=list)
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def watermark(self) -> int:
        return max((minute for minute, _ in self.events), default=10) - 10

    def edge(self) -> int:
        """Where the last window that is written ends."""
        start, size, _ = self.edits[-1]
        return max(start, self.watermark // size * size)

    def rows(self) -> list[tuple[str, int]]:
        found = []
        for number, (start, size, value) in enumerate(self.edits):
            end = self.edits[number + 1][0] if number + 1 < len(self.edits) else self.watermark // size * size
            for begin in range(start, end, size):
                inside = [id_ for minute, id_ in self.events if begin <= minute < begin + size]
                if inside:
                    found.append((f"{begin // 60:02}:{begin % 60:02}", VALUES[value](inside)))
        return sorted(found)


VALUES = {"sum(id)": sum, "max(id)": max, "min(id)": min, "count(*)": len}


@pytest.mark.nightly_cases("1")
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 22))]
)  # fmt: skip
def test_random_edits_beside_plain_python(lab: Lab, seed: int) -> None:
    chosen, expected, minute = random.Random(seed), Expected(), 0
    expected.edits.append((0, 60, "sum(id)"))
    model = HOURLY.replace(", dedup: [id]", "")
    lab.model("sums", model.format(size="60 minutes", value="sum(id)"))
    for step in range(9):
        more = []
        for _ in range(chosen.randint(1, 4)):
            minute = min(minute + chosen.randint(0, 45), 1430)
            # Never late: within the delay of the newest event that was read before.
            more.append(
                (max(minute - chosen.randint(0, 9), expected.watermark + 1, 0), len(expected.events) + len(more))
            )
        if expected.watermark > 0 and chosen.random() < 0.6:
            size, value = chosen.choice([15, 20, 30, 60]), chosen.choice([*VALUES])
            edge, words = expected.edge(), ("-s", "sums", "--reset-checkpoint", "open-windows")
            lab.model("sums", model.format(size=f"{size} minutes", value=value))
            if edge % size:
                assert lab.run("build", *words).code == 1
                lab.model("sums", model.format(size=f"{expected.edits[-1][1]} minutes", value=expected.edits[-1][2]))
            else:
                expected.edits.append((edge, size, value))
                if chosen.random() < 0.5:
                    point = chosen.choice(["computing", "written", "committed", "recorded"])
                    with reached(point, kill):
                        lab.run("build", *words)
                else:
                    lab.build(*words)
                lab.build()
        expected.events += more
        lab.land(f"f{step}", [at(f"{m // 60:02}:{m % 60:02}", id_) for m, id_ in more])
        lab.build()
        assert values(lab) == expected.rows(), (step, expected)
