"""What is known of one node of `engine start`: sums and last values, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from engine.events import INTERRUPTED, BatchCommitted, HeldInState, ModelFinished, NodeState, NodeTurnFinished, Status
from engine.live.lag import Lag, is_behind
from engine.live.rates import RowRate
from engine.live.turn_history import seconds_of

if TYPE_CHECKING:
    from engine.live.status_record import HeldRecord, NodeRecord


class Health(StrEnum):
    """Whether somebody should look at a node."""

    HEALTHY = "healthy"
    STALLED = "stalled"
    FAILED = "failed"


@dataclass(slots=True)
class NodeStatus:
    """The status of a node; times are seconds since 1970.

    Attributes:
        node: its id.
        state: what it is doing, since when and why; `until`: when that may end.
        held: what each step that keeps state holds; empty: none does, or it is not known before a micro-batch.
        rows_in: rows read since the process began; likewise the other sums.
        behind_since: since when there has been unread input; None: there is none.
        moved_at: when its watermark advanced last.
        rows_since: rows read since then.
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
    quarantined: int = 0
    state_rows: int = 0
    held: tuple[HeldInState, ...] = ()
    batches: int = 0
    bad_records: dict[str, int] = field(default_factory=dict)
    failed_checks: dict[str, int] = field(default_factory=dict)
    last_commit: float | None = None
    snapshot_id: int | None = None
    watermark: str | None = None
    moved_at: float | None = None
    rows_since: int = 0
    last_rows_at: float | None = None
    lag: tuple[Lag, ...] = ()
    behind_since: float | None = None
    turns: int = 0
    failed_turns: int = 0
    failures: int = 0
    restarts: int = 0
    last_error: str = ""
    last_error_at: float | None = None
    last_turn_seconds: float | None = None
    tests_failing: dict[str, str] = field(default_factory=dict)
    rate: RowRate = field(default_factory=RowRate)

    def batch(self, event: BatchCommitted, at: float) -> None:
        """Add a micro-batch."""
        self.state_rows, self.held = event.state_rows, event.held
        self._watermark(event.watermark, at)
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
        self.quarantined += event.quarantined
        _add(self.bad_records, event.bad_records)
        _add(self.failed_checks, event.failed_checks)
        self.rate.add(event.rows_in or event.rows_out, at)
        if event.rows_in:
            self.rows_since += event.rows_in
            self.last_rows_at = at

    def _watermark(self, watermark: str | None, at: float) -> None:
        if watermark is not None and watermark != self.watermark:
            self.watermark, self.moved_at, self.rows_since = watermark, at, 0

    def model(self, event: ModelFinished, at: float) -> None:
        """Take the end of a model's run; its sums are those of micro-batches that were added, if it has any."""
        self.kind, self.relation, self.note = event.kind, event.relation, event.note
        self._watermark(event.watermark, at)
        self.snapshot_id = event.snapshot_id or self.snapshot_id
        if not event.batches and event.status is Status.SUCCESS:
            self._rows(event, at)
            self.last_commit = at

    def turn(self, event: NodeTurnFinished, at: float) -> None:
        """Take the end of a turn."""
        self.turns += 1
        self.last_turn_seconds = event.seconds
        if event.message == INTERRUPTED:
            return
        self.restarts += self.failures > 0
        if event.status.failed:
            self.failed_turns += 1
            self.failures += 1
            self.last_error, self.last_error_at = event.message, at
        else:
            self.failures = 0

    def stop(self, at: float) -> None:
        """Take the end of the process: nothing runs any more."""
        if self.state in {NodeState.RUNNING, NodeState.QUEUED}:
            self.state, self.reason, self.until, self.since = NodeState.IDLE, "", "", at

    def read(self, found: tuple[Lag, ...], at: float) -> None:
        """Take what it has not read, as a plan found it."""
        self.lag = found
        self.behind_since = (self.behind_since or at) if is_behind(found) else None

    def stalled(self, at: float, after: float) -> str:
        """Return why it counts as stalled: input arrives, and nothing comes of it; empty if it does not.

        Args:
            at: now.
            after: seconds without a commit, or without progress of the watermark while rows are read.
        """
        if self.state in {NodeState.PAUSED, NodeState.STANDBY}:
            return ""
        begun = max(self.behind_since or at, self.last_commit or 0)
        if self.behind_since is not None and at - begun >= after:
            return f"there is unread input, and nothing was committed for {round(at - begun)} s"
        if self.moved_at is not None and self.rows_since and (self.last_rows_at or 0) - self.moved_at >= after:
            return f"rows are read, and the watermark has not advanced for {round(at - self.moved_at)} s"
        return ""

    def health(self, at: float, after: float) -> Health:
        """Whether somebody should look at it."""
        if self.state is NodeState.FAILED or self.failures or self.tests_failing:
            return Health.FAILED
        return Health.STALLED if self.stalled(at, after) else Health.HEALTHY

    def to_json(self, at: float, after: float) -> NodeRecord:
        """Return the node in the form that docs/how-to/monitor.md documents."""
        return {
            "node": self.node,
            "name": _name(self.node),
            "kind": self.kind,
            "relation": self.relation,
            "state": self.state.value,
            "reason": self.reason,
            "since": self.since,
            "until": self.until or None,
            "health": self.health(at, after).value,
            "stalled": self.stalled(at, after) or None,
            "stalled_after": after,
            "last_commit": self.last_commit,
            "snapshot_id": str(self.snapshot_id) if self.snapshot_id is not None else None,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_per_second_1m": round(self.rate.per_second(60, at), 3),
            "rows_per_second_5m": round(self.rate.per_second(300, at), 3),
            "late": self.late,
            "bad_records": dict(self.bad_records),
            "failed_checks": dict(self.failed_checks),
            "quarantined": self.quarantined,
            "state_rows": self.state_rows,
            "held": [cast("HeldRecord", asdict(one)) for one in self.held],
            "batches": self.batches,
            "lag": [{"input": lag.input, "what": lag.what or None, "count": lag.count} for lag in self.lag],
            "lag_seconds": round(at - self.behind_since, 1) if self.behind_since is not None else 0.0,
            "watermark": self.watermark,
            "watermark_age_seconds": _age(self.watermark, at),
            "note": self.note,
            "turns": self.turns,
            "failed_turns": self.failed_turns,
            "failures": self.failures,
            "restarts": self.restarts,
            "last_turn_seconds": self.last_turn_seconds,
            "last_error": self.last_error or None,
            "last_error_at": self.last_error_at,
            "tests_failing": dict(self.tests_failing),
        }


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        sums[name] = sums.get(name, 0) + number


def _age(watermark: str | None, at: float) -> float | None:
    return round(at - seconds_of(watermark), 1) if watermark else None


def _name(node: str) -> str:
    """Return what to call a node: a model by its name, the tests of one as such."""
    rest = node.partition(".")[2]
    return f"tests of {rest.partition('.')[2]}" if rest.startswith("model.") else rest
