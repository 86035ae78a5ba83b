"""Stalled is what has something to do and makes no progress, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from engine.events import NodeState, NodeTurnStarted, Status
from engine.live.lag import Lag
from engine.live.status import Clock, LiveStatus
from tests.live.sequences import BEGIN, ORDERS, batch, finished, started, state, text, turn

UNREAD = {ORDERS: (Lag("shop.orders", "offsets", 4),)}
READ = {ORDERS: (Lag("shop.orders", "offsets", 0),)}
UNKNOWN = {ORDERS: (Lag("shop.orders", "", None),)}


def begun() -> LiveStatus:
    status = LiveStatus()
    status.add(started(), BEGIN)
    return status


def health(status: LiveStatus, after: float) -> str:
    return status.to_json(BEGIN + after)["nodes"][0]["health"]


def test_unread_input_without_progress_is_stalled_after_five_minutes() -> None:
    status = begun()
    status.note_lags(UNREAD, BEGIN + 10)
    assert (health(status, 309), health(status, 310)) == ("healthy", "stalled")
    status.note_lags(READ, BEGIN + 311)
    assert health(status, 9999) == "healthy"


@pytest.mark.parametrize("numbers", [{"rows_in": 5}, {"rows_in": 5, "rows_out": 5}, {}, {"watermark": "2026-01-01"}])
def test_a_micro_batch_is_progress_whether_it_writes_rows_or_not(numbers: dict) -> None:
    """An hourly window over a steady topic reads, and writes once an hour."""
    status = begun()
    for minute in range(120):
        status.note_lags(UNREAD, BEGIN + minute * 60)
        status.add(batch(number=minute, **numbers), BEGIN + minute * 60)
        assert health(status, minute * 60 + 59) == "healthy"
    assert health(status, 119 * 60 + 300) == "stalled"


def test_a_silence_does_not_count() -> None:
    status = begun()
    for event in turn():
        status.add(event, BEGIN)
    status.note_lags(READ, BEGIN + 5)
    status.note_lags(UNREAD, BEGIN + 36_000)
    assert (health(status, 36_001), health(status, 36_300)) == ("healthy", "stalled")
    status.add(batch(number=9, rows_in=1, watermark="2026-01-01T00:00:00"), BEGIN + 36_301)
    status.note_lags(READ, BEGIN + 36_302)
    status.add(batch(number=10, rows_in=1, watermark="2026-01-01T00:00:00"), BEGIN + 80_000)
    assert health(status, 80_001) == "healthy"


@pytest.mark.parametrize(
    "quiet", [NodeState.PAUSED, NodeState.STANDBY, NodeState.WAITING, NodeState.BACKING_OFF, NodeState.FAILED]
)
def test_time_in_which_nothing_is_expected_does_not_count(quiet: NodeState) -> None:
    status = begun()
    status.note_lags(UNREAD, BEGIN)
    status.add(state(ORDERS, quiet, at=BEGIN + 200), BEGIN + 200)
    status.note_lags(UNREAD, BEGIN + 5000)
    assert health(status, 9000) == ("failed" if quiet is NodeState.FAILED else "healthy")
    status.add(state(ORDERS, NodeState.QUEUED, at=BEGIN + 9000), BEGIN + 9000)
    assert (health(status, 9299), health(status, 9300)) == ("healthy", "stalled")


def test_a_turn_that_hangs_is_stalled_where_nobody_knows_what_is_unread() -> None:
    status = begun()
    status.note_lags(UNKNOWN, BEGIN)
    assert health(status, 9999) == "healthy"
    for event in (
        state(ORDERS, NodeState.RUNNING, at=BEGIN + 9999),
        NodeTurnStarted(ORDERS, 1, "", 0.0, text(BEGIN + 9999)),
    ):
        status.add(event, BEGIN + 9999)
    assert (health(status, 9999 + 299), health(status, 9999 + 300)) == ("healthy", "stalled")
    for event in turn(number=2, at=BEGIN + 11_000):
        status.add(event, BEGIN + 11_000)
    assert health(status, 20_000) == "healthy"


def test_failed_turns_are_reported_as_such_alone() -> None:
    status = begun()
    status.note_lags(UNREAD, BEGIN)
    for number in range(50):
        for event in turn(number=number, at=BEGIN + number * 60, status=Status.ERROR, message="no"):
            status.add(event, BEGIN + number * 60)
    node = status.to_json(BEGIN + 3001)["nodes"][0]
    assert (node["health"], node["stalled"]) == ("failed", None)


class Ticks:
    """A clock of a machine that sleeps."""

    def __init__(self) -> None:
        self.wall, self.awake = BEGIN, 1000.0

    def pass_(self, seconds: float, *, asleep: bool = False) -> None:
        self.wall += seconds
        self.awake += 0.0 if asleep else seconds


def test_the_sleep_of_the_machine_does_not_count() -> None:
    ticks = Ticks()
    status = LiveStatus(clock=Clock(lambda: ticks.wall, lambda: ticks.awake))

    def healths(seconds: Iterable[float], *, asleep: bool = False) -> list[str]:
        found = []
        for more in seconds:
            ticks.pass_(more, asleep=asleep)
            found.append(status.to_json()["health"])
        return found

    status.add(started())
    status.note_lags(UNREAD)
    assert healths([100, 100]) == ["healthy", "healthy"]
    assert healths([3600], asleep=True) == ["healthy"]
    assert healths([99, 1]) == ["healthy", "stalled"]
    status.add(batch(number=1))
    ticks.pass_(7200, asleep=True)
    status.add(batch(number=2))  # the first that is seen after it
    assert healths([299, 1]) == ["healthy", "stalled"]


def ahead(days: float) -> str:
    return datetime.fromtimestamp(BEGIN + days * 86_400, UTC).isoformat()


@pytest.mark.parametrize(("days", "late", "expected"), [(30, 3, "stalled"), (30, 0, "healthy"), (-30, 3, "healthy")])
def test_a_watermark_that_is_ahead_needs_somebody_and_one_that_does_not_move_nobody(
    days: float, late: int, expected: str
) -> None:
    status = begun()
    for minute in range(10):
        status.add(batch(number=minute, rows_in=5, late=late, watermark=ahead(days)), BEGIN + minute * 60)
    assert health(status, 541) == expected
    status.add(state(ORDERS, NodeState.PAUSED), BEGIN)
    assert health(status, 541) == "healthy"


def test_the_status_says_why_a_watermark_is_held_back() -> None:
    status = begun()
    why = "'clicks' holds back the watermark of 'orders'"
    status.add(finished(ORDERS, Status.SUCCESS, batches=1, watermark_held=why), BEGIN)
    status.add(finished(ORDERS, Status.UNCHANGED, "no new data"), BEGIN)
    assert status.to_json(BEGIN)["nodes"][0]["watermark_held"] == why
    status.add(finished(ORDERS, Status.SUCCESS, batches=1), BEGIN)
    assert status.to_json(BEGIN)["nodes"][0]["watermark_held"] is None
