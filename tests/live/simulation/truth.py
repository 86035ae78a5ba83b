"""The truth, written a second time: what a status has to say, from what happened in the world and from nothing else.

Nothing of `engine.live` is used. Time without progress is summed up second by second, where the product compares times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

STALLED, LAG, BAD, RESTARTS = 300, 120, 20, 3
# A poll finds unread input up to so many seconds later, so that the product may be late.
LATE = 12
# What was unread at a poll may have been read since, and more have come a moment later.
EARLY = 2


@dataclass
class Model:
    """A model in the world."""

    scheduled: bool = False
    unread: list[int] = field(default_factory=list)  # when each unread record came to be
    polled: tuple[int, int | None] | None = None  # how many were unread at the last poll, and the oldest
    sums: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("rows_in", "rows_out", "late", "bad", "batches", "turns", "failed"), 0)
    )
    bad_at: list[tuple[int, int]] = field(default_factory=list)
    reason: str = ""  # why a record was bad, of the last micro-batch that had one
    last_commit: int | None = None
    failures: int = 0
    error: str | None = None
    error_begun: int = 0
    past: str | None = None
    tests: dict[str, str] = field(default_factory=dict)
    needs_edit: bool = False
    running: bool = False
    idle: int = 0  # seconds with something to do and no progress
    idle_from: int = 0  # when that began
    stalled_before: bool = False

    def progress(self, at: int) -> None:
        self.idle, self.idle_from, self.stalled_before = 0, at, False

    def passes(self, seconds: int, at: int, *, expected: bool, queued: bool) -> None:
        """Let awake time pass that ends at a time; nothing else happens in it."""
        if not expected:
            self.progress(at)
        elif not self.unread:
            self.idle, self.idle_from = 0, at
        elif self.running or queued or not self.scheduled:
            self.idle += seconds
        else:
            due = -(-(self.idle_from // 60 * 60 + 60) // 1200) * 1200
            self.idle += max(0, min(seconds, at - due))

    def sleeps(self, seconds: int) -> None:
        """Let time pass that counts for nothing: a schedule that came in it is due after it."""
        self.idle_from += seconds

    def failed(self, message: str, at: int) -> None:
        self.failures += 1
        self.sums["failed"] += 1
        if self.error is None or (message != self.error and at - self.error_begun > 60):
            self.error, self.error_begun = message, at

    def good(self) -> None:
        # A model that needed an edit may be paused and resumed, and runs.
        self.failures, self.needs_edit = 0, False
        if self.error is not None:
            self.past, self.error = self.error, None

    def restart(self, at: int, *, was_stalled: bool) -> None:
        self.idle, self.idle_from, self.running = 0, at, False
        self.stalled_before = was_stalled

    def stalled(self, *, expected: bool) -> bool | None:
        """Whether it is stalled; None: a poll may or may not have noticed yet."""
        if self.failures or self.needs_edit or not expected:
            return False
        if self.stalled_before:
            return True
        if self.idle < STALLED - EARLY:
            return False
        return True if self.idle > STALLED + LATE else None

    def recent_bad(self, at: int) -> bool | None:
        """Whether there were too many bad records in ten minutes, which are counted in steps."""
        least = sum(count for moment, count in self.bad_at if moment > at - 600)
        most = sum(count for moment, count in self.bad_at if moment > at - 600 - 180)
        return True if least > BAD else False if most <= BAD else None

    def lag_seconds(self, at: int) -> float | None:
        if self.polled is None:
            return None
        count, oldest = self.polled
        return 0.0 if not count else None if oldest is None else float(at - oldest)


@dataclass
class Truth:
    """All models, and the project."""

    models: dict[str, Model]
    rejected: str | None = None

    def health(self, name: str, *, expected: bool) -> str | None:
        model = self.models[name]
        if model.failures or model.needs_edit or model.tests:
            return "failed"
        stalled = model.stalled(expected=expected)
        return None if stalled is None else "stalled" if stalled else "healthy"

    def alerts(self, name: str, at: int, *, expected: bool) -> dict[str, bool | None]:
        """Which alerts of a model are open; None: that is not certain."""
        model = self.models[name]
        failed = self.health(name, expected=expected) == "failed"
        lag = model.lag_seconds(at)
        return {
            "failed": failed,
            "stalled": model.stalled(expected=expected),
            "lag": None if lag is None else lag > LAG,
            "bad_records": model.recent_bad(at),
            "restarts": model.failures > RESTARTS,
        }
