"""What is known of one node of `engine start`: sums and last values, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from engine.events import (
    INTERRUPTED,
    UP_TO_DATE,
    BatchCommitted,
    HeldInState,
    ModelFinished,
    NodeState,
    NodeStateChanged,
    NodeTurnFinished,
    NodeTurnStarted,
    SinkFinished,
    Status,
)
from engine.live.lag import Lag, is_behind, seconds_unread
from engine.live.progress import DueAt, Progress
from engine.live.turn_history import seconds_of
from engine.node_ids import SINK, TESTS, shown_name
from engine.times import SECONDS

if TYPE_CHECKING:
    from engine.live.status_record import HeldRecord, LagRecord, NodeRecord


# An error that follows so soon on another one mostly comes of it: a disk is full, then the state cannot be written.
_ONE_CAUSE_SECONDS = 60.0


@dataclass(slots=True)
class LastError:
    """The error of a node.

    Attributes:
        message: of the error that its last turn failed with; empty: it did not fail.
        at: when that came last.
        past: the message of the last error that is over; empty: there was none.
        past_at: when it came last.
        first_at: when the error came for the first time.
    """

    message: str = ""
    at: float | None = None
    past: str = ""
    past_at: float | None = None
    first_at: float = 0.0

    def failed(self, message: str, at: float) -> None:
        """Take the error of a turn: another one within a minute of the first does not replace it."""
        if message != self.message and (not self.message or at - self.first_at > _ONE_CAUSE_SECONDS):
            self.message, self.first_at = message, at
        self.at = at

    def over(self) -> None:
        if self.message:
            self.past, self.past_at = self.message, self.at
            self.message, self.at = "", None


_STEP = 5


_MINUTES = 5


_PLACES = _MINUTES * 60 // _STEP


@dataclass(slots=True)
class RowRate:
    """Sums of 5 seconds each over the last 5 minutes."""

    _sums: list[int] = field(default_factory=lambda: [0] * _PLACES)
    _last: int = 0

    def add(self, rows: int, at: float) -> None:
        """Count rows at a time in seconds."""
        self._forward(at)
        self._sums[self._last % _PLACES] += rows

    def per_second(self, seconds: int, at: float) -> float:
        """Return the mean over the last `seconds` (at most 300) before a time."""
        self._forward(at)
        steps = min(seconds // _STEP, _PLACES)
        return sum(self._sums[(self._last - back) % _PLACES] for back in range(steps)) / seconds

    def _forward(self, at: float) -> None:
        now = int(at // _STEP)
        for step in range(max(self._last + 1, now - _PLACES + 1), now + 1):
            self._sums[step % _PLACES] = 0
        self._last = max(self._last, now)


_PERSISTENT_FIELDS = frozenset({
    "kind", "relation", "note", "rows_in", "rows_out", "late", "duplicates", "quarantined", "state_rows", "batches",
    "bad_records", "bad_reasons", "failed_checks", "last_commit", "snapshot_id", "watermark", "watermark_held",
    "ahead_since", "turns", "failed_turns", "failures", "restarts", "last_turn_seconds", "tests_failing",
})  # fmt: skip


class Health(StrEnum):
    HEALTHY = "healthy"
    STALLED = "stalled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StallRule:
    """When a node counts as stalled.

    Attributes:
        after: seconds without progress.
        due_at: when input that arrived at a time should be read.
        on_schedule: the node's schedule queues its turns; else input does, and a turn may wait for its trigger.
    """

    after: float
    due_at: DueAt = lambda at: at
    on_schedule: bool = False


@dataclass(slots=True)
class NodeStatus:
    """The status of a node; times are seconds since 1970.

    Attributes:
        state: what it is doing, since when and why; `until`: when that may end.
        bad_reasons: why a record of an input could not be read, of the last micro-batch that had one.
        held: what each step that keeps state holds; empty: none does, or it is not known before a micro-batch.
        rows_in: rows read since its history began; likewise the other sums.
        watermark_held: why its watermark is held back; empty: it is not.
        ahead_since: since when rows are late because its watermark is ahead of the clock; None: they are not.
        failures: turns that failed one after the other, up to now.
        restarts: turns that followed a failed one.
    """

    node: str
    state: NodeState = NodeState.IDLE
    reason: str = ""
    since: float = 0.0
    until: str = ""
    kind: str = ""
    relation: str = ""
    note: str = ""
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    duplicates: int = 0
    quarantined: int = 0
    state_rows: int = 0
    held: tuple[HeldInState, ...] = ()
    batches: int = 0
    bad_records: dict[str, int] = field(default_factory=dict)
    bad_reasons: dict[str, str] = field(default_factory=dict)
    failed_checks: dict[str, int] = field(default_factory=dict)
    last_commit: float | None = None
    snapshot_id: int | None = None
    watermark: str | None = None
    watermark_held: str = ""
    ahead_since: float | None = None
    lag: tuple[Lag, ...] = ()
    turns: int = 0
    failed_turns: int = 0
    failures: int = 0
    restarts: int = 0
    last_turn_seconds: float | None = None
    tests_failing: dict[str, str] = field(default_factory=dict)
    error: LastError = field(default_factory=LastError)
    progress: Progress = field(default_factory=Progress)
    rate: RowRate = field(default_factory=RowRate)

    def persistent_record(self, at: float, rule: StallRule) -> dict[str, Any]:
        """Return what a later process is to know: sums and last values, not what the node was doing."""
        return {
            "stalled": self.stalled(at, rule),
            "lag": [asdict(lag) for lag in self.lag],
            **{name: getattr(self, name) for name in _PERSISTENT_FIELDS},
            "held": [asdict(one) for one in self.held],
            "error": asdict(self.error),
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take what an earlier process knew; what failed there fails until a turn or a plan says otherwise."""
        for name in _PERSISTENT_FIELDS & record.keys():
            setattr(self, name, record[name])
        self.held = tuple(HeldInState(**one) for one in record.get("held", ()))
        self.lag = tuple(Lag(**one) for one in record.get("lag", ()))
        self.error = LastError(**record.get("error", {}))
        self.progress.stalled_before = record.get("stalled", "")

    def begin_again(self, at: float) -> None:
        self.state, self.reason, self.until, self.since = NodeState.IDLE, "", "", at
        self.progress = Progress(moved_at=at)

    def batch(self, event: BatchCommitted, at: float) -> None:
        self.state_rows, self.held = event.state_rows, event.held
        self.watermark = event.watermark or self.watermark
        self.progress.note_progress(at)
        if event.rows_out or event.rows_deleted:
            self.last_commit, self.snapshot_id = at, event.snapshot_id or self.snapshot_id
        if event.replayed:
            return
        self.batches += 1
        self._rows(event, at)

    def _rows(self, event: BatchCommitted | ModelFinished, at: float) -> None:
        self.rows_in += event.rows_in
        self.rows_out += event.rows_out
        self.late += event.late
        self.duplicates += event.duplicates
        self.quarantined += event.quarantined
        _add(self.bad_records, event.bad_records)
        self.bad_reasons |= event.bad_reasons
        _add(self.failed_checks, event.failed_checks)
        self.rate.add(event.rows_in or event.rows_out, at)
        if event.rows_in:
            is_lost = event.late and (_age(self.watermark, at) or 0) < -SECONDS["day"]
            self.ahead_since = (at if self.ahead_since is None else self.ahead_since) if is_lost else None

    def model(self, event: ModelFinished, at: float) -> None:
        """Take the end of a model's run; its sums are those of micro-batches that were added, if it has any."""
        self.kind, self.relation, self.note = event.kind, event.relation, event.note
        self.watermark = event.watermark or self.watermark
        self.snapshot_id = event.snapshot_id or self.snapshot_id
        if event.batches:
            self.watermark_held = event.watermark_held
        elif event.status is Status.SUCCESS:
            self._rows(event, at)
            self.last_commit = at

    def delivery(self, event: SinkFinished, at: float) -> None:
        self.kind, self.relation = "sink", event.place
        if event.status is Status.SUCCESS:
            self.rows_out += event.rows_out
            self.rate.add(event.rows_out, at)
            self.last_commit = at

    def change(self, event: NodeStateChanged, at: float) -> None:
        if self.state is not event.state:
            self.since = at
        self.state, self.reason, self.until = event.state, event.reason, event.until
        self.progress.take_state(event.state, at)
        if event.state is NodeState.STANDBY or (event.state is NodeState.IDLE and event.reason == UP_TO_DATE):
            # An earlier process or another one has done what failed here, or will report it.
            self.failures = 0
            self.error.over()

    def begin(self, _: NodeTurnStarted, at: float) -> None:
        self.progress.turn_since = at

    def turn(self, event: NodeTurnFinished, at: float) -> None:
        self.turns += 1
        self.last_turn_seconds = event.seconds
        self.progress.turn_since = None
        if event.message == INTERRUPTED:
            return
        self.restarts += self.failures > 0
        if event.status.failed:
            self.failed_turns += 1
            self.failures += 1
            self.error.failed(event.message, at)
        else:
            self.failures = 0
            self.error.over()
            self.progress.note_progress(at)

    def stop(self, at: float) -> None:
        if self.state in {NodeState.RUNNING, NodeState.QUEUED}:
            self.state, self.reason, self.until, self.since = NodeState.IDLE, "", "", at

    def read(self, lags: tuple[Lag, ...], at: float) -> None:
        self.lag = lags
        if is_behind(lags) or all(lag.count == 0 for lag in lags):
            self.progress.note_unread(at, is_unread=is_behind(lags))

    def stalled(self, at: float, rule: StallRule) -> str:
        """Return why it counts as stalled; empty if it does not, or has failed, which says more."""
        if self.failures or self.state is NodeState.FAILED:
            return ""
        if self.progress.stalled_before and self.progress.is_expected:
            return self.progress.stalled_before
        is_known = all(lag.count is not None for lag in self.lag)
        idle = 0.0
        if self.lag:
            idle = self.progress.idle_seconds(at, rule.due_at, is_known=is_known, on_schedule=rule.on_schedule)
        if idle >= rule.after:
            verb = "delivered" if self.node.startswith(SINK) else "read"
            problem = "there is unread input" if is_known else "a run is in progress"
            return f"{problem}, and nothing was {verb} for {round(idle)} s"
        if self.progress.is_expected and self.ahead_since is not None and at - self.ahead_since >= rule.after:
            return f"rows are discarded as late: the watermark {self.watermark} is more than a day ahead of the clock"
        return ""

    def health(self, at: float, rule: StallRule) -> Health:
        if self.state is NodeState.FAILED or self.failures or self.tests_failing:
            return Health.FAILED
        return Health.STALLED if self.stalled(at, rule) else Health.HEALTHY

    def to_json(self, at: float, rule: StallRule) -> NodeRecord:
        return {
            "node": self.node,
            "name": shown_name(self.node),
            "tests_of": self.node.removeprefix(TESTS) if self.node.startswith(TESTS) else None,
            "kind": self.kind,
            "relation": self.relation,
            "state": self.state.value,
            "reason": self._reason(),
            "since": self.since,
            "until": self.until or None,
            "health": self.health(at, rule).value,
            "stalled": self.stalled(at, rule) or None,
            "stalled_after": rule.after,
            "last_commit": self.last_commit,
            "snapshot_id": str(self.snapshot_id) if self.snapshot_id is not None else None,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_per_second_1m": round(self.rate.per_second(60, at), 3),
            "rows_per_second_5m": round(self.rate.per_second(300, at), 3),
            "late": self.late,
            "duplicates": self.duplicates,
            "bad_records": dict(self.bad_records),
            "bad_reasons": dict(self.bad_reasons),
            "failed_checks": dict(self.failed_checks),
            "quarantined": self.quarantined,
            "state_rows": self.state_rows,
            "held": [cast("HeldRecord", asdict(one)) for one in self.held],
            "batches": self.batches,
            "lag": [_lag(lag) for lag in self.lag],
            "lag_seconds": seconds_unread(self.lag, at),
            "watermark": self.watermark,
            "watermark_age_seconds": _age(self.watermark, at),
            "watermark_held": self.watermark_held or None,
            "note": self.note,
            "turns": self.turns,
            "failed_turns": self.failed_turns,
            "failures": self.failures,
            "restarts": self.restarts,
            "last_turn_seconds": self.last_turn_seconds,
            "last_error": self.error.message or None,
            "last_error_at": self.error.at,
            "past_error": self.error.past or None,
            "past_error_at": self.error.past_at,
            "tests_failing": dict(self.tests_failing),
        }

    def _reason(self) -> str:
        """Why it is in its state; of errors that follow from each other, the first."""
        is_error = self.state in {NodeState.BACKING_OFF, NodeState.FAILED} and bool(self.error.message)
        return self.error.message if is_error else self.reason


def _lag(lag: Lag) -> LagRecord:
    return {"input": lag.input, "what": lag.what or None, "count": lag.count, "oldest_at": lag.oldest_at}


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        sums[name] = sums.get(name, 0) + number


def _age(watermark: str | None, at: float) -> float | None:
    return round(at - seconds_of(watermark), 1) if watermark else None
