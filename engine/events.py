"""What happens during a run, as frozen records.

The runtime takes an `Emit` and prints nothing itself. The terminal, JSON lines, run_results.json and the
journal are all made from these records; `RunResults` is their fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from engine.errors import Diagnostic

# The message of a node that was running when its command was interrupted.
INTERRUPTED = "interrupted"
# The reason of a node that is idle because the first plan of a process found nothing to do.
UP_TO_DATE = "up to date"


class Status(StrEnum):
    """How a node ended; the words of dbt's run_results."""

    SUCCESS = "success"
    UNCHANGED = "unchanged"
    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"

    @property
    def failed(self) -> bool:
        """Return whether nodes that depend on this one are skipped."""
        return self in {Status.FAIL, Status.ERROR, Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    command: str
    target: str
    total: int
    at: str


class Step(StrEnum):
    COMPILE = "compile"
    PLAN = "plan"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class StepStarted:
    step: Step


@dataclass(frozen=True, slots=True)
class ModelStarted:
    """Node `index` (from 1) of the run starts; `unread` counts a stream's input by unit, if the plan can."""

    node: str
    index: int
    total: int
    kind: str
    relation: str
    unread: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The numbers of one micro-batch, or of several.

    Attributes:
        rows_out: rows written; 0: nothing was committed.
        rows_updated: rows of `rows_out` whose key the table already had.
        rows_deleted: rows deleted by key; not part of `rows_out`.
        duplicates: rows that `dedup` dropped.
        skipped: records that are not rows, such as tombstones.
        bad_records: unreadable records, by input.
        bad_reasons: one reason for each input, without values of records.
    """

    rows_in: int = 0
    rows_out: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    late: int = 0
    duplicates: int = 0
    state_rows: int = 0
    skipped: int = 0
    bad_records: Mapping[str, int] = field(default_factory=dict)
    bad_reasons: Mapping[str, str] = field(default_factory=dict)
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0

    def numbers(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(Metrics)}

    def plus(self, later: Metrics) -> Metrics:
        """Return the sum of both; state is that of `later`."""
        return Metrics(
            rows_in=self.rows_in + later.rows_in,
            rows_out=self.rows_out + later.rows_out,
            rows_updated=self.rows_updated + later.rows_updated,
            rows_deleted=self.rows_deleted + later.rows_deleted,
            late=self.late + later.late,
            duplicates=self.duplicates + later.duplicates,
            state_rows=later.state_rows,
            skipped=self.skipped + later.skipped,
            bad_records=_summed(self.bad_records, later.bad_records),
            bad_reasons={**later.bad_reasons, **self.bad_reasons},
            failed_checks=_summed(self.failed_checks, later.failed_checks),
            quarantined=self.quarantined + later.quarantined,
        )


def _summed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


@dataclass(frozen=True, slots=True)
class HeldInState:
    """What one step of a query keeps between micro-batches."""

    operator: str
    meaning: str
    explanation: str
    count: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class BatchCommitted(Metrics):
    """A micro-batch ended.

    `watermark`: UTC text. `replayed`: it was written before a crash; nothing is counted twice. `read`: how much of
    `ModelStarted.unread` it read, by unit; a unit is missing if that is unknown.
    """

    node: str
    batch_id: int
    watermark: str | None
    snapshot_id: int | None
    seconds: float
    replayed: bool = False
    read: Mapping[str, int] = field(default_factory=dict)
    held: tuple[HeldInState, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome(Metrics):
    """How a model's run ended; numbers are sums over its micro-batches.

    Attributes:
        message: the reason in one line; empty for success.
        watermark: the last one, UTC text.
        event_times: the newest event time of each input of a query with several watermarks; None: it had no rows.
        more: the run stopped with input left (`engine start`).
    """

    status: Status
    message: str = ""
    batches: int = field(default=0, kw_only=True)
    watermark: str | None = field(default=None, kw_only=True)
    watermark_held: str = field(default="", kw_only=True)
    snapshot_id: int | None = field(default=None, kw_only=True)
    note: str = field(default="", kw_only=True)
    event_times: Mapping[str, str | None] = field(default_factory=dict, kw_only=True)
    more: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFinished(Outcome):
    node: str
    index: int
    total: int
    kind: str
    relation: str
    seconds: float
    at: str = ""


@dataclass(frozen=True, slots=True)
class TestFinished:
    """A test ended; `failures` counts failing rows, or expectations of a unit test.

    `passed_at` is when it last passed with the same model, rows and text, and was therefore not run; empty: it ran.
    """

    node: str
    index: int
    total: int
    status: Status
    seconds: float
    failures: int = 0
    message: str = ""
    at: str = ""
    passed_at: str = ""

    @property
    def cached(self) -> bool:
        return bool(self.passed_at)


@dataclass(frozen=True, slots=True)
class SinkFinished:
    """A delivery ended.

    Attributes:
        index: its place in the run, from 1.
        place: where it delivers, for people.
        rows_out: rows that it inserted or updated.
        rows_deleted: rows that it deleted, by their key.
        at: when it ended, UTC.
    """

    node: str
    index: int
    total: int
    status: Status
    seconds: float
    place: str
    rows_out: int = 0
    rows_deleted: int = 0
    message: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosed:
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class RunFinished:
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """`--watch` starts run `number` (from 1) after an edit of `files`; `due` is None if the project has errors."""

    number: int
    files: tuple[str, ...]
    due: int | None
    total: int
    at: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A run of `--watch` ended; `seconds` counts from when its edit was noticed."""

    number: int
    seconds: float
    at: str


@dataclass(frozen=True, slots=True)
class SessionRestarted:
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class LiveStarted:
    """`engine start` began; its commits carry `run_id`."""

    run_id: str
    target: str
    nodes: tuple[str, ...]
    pid: int
    at: str


class NodeState(StrEnum):
    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    BACKING_OFF = "backing off"
    STANDBY = "standby"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeStateChanged:
    """A node of `engine start` changed its state.

    Attributes:
        state: idle: up to date; queued: a run is due; waiting: for the node that `reason` names; backing off: retried
            after a failure that can pass; standby: another process writes its table; failed: it needs an edit.
        reason: in words: "new input in sales.orders", "orders committed", the first line of an error.
        until: when a node that backs off is retried, or a scheduled one is due, UTC; empty: unknown.
        took_over: it was on standby, and this process writes its table from now on.
    """

    node: str
    state: NodeState
    reason: str
    at: str
    until: str = ""
    took_over: bool = False


@dataclass(frozen=True, slots=True)
class NodeTurnStarted:
    """A run of a model and its tests starts: the node's run `number` (from 1), `waited` seconds after it was due."""

    node: str
    number: int
    reason: str
    waited: float
    at: str


@dataclass(frozen=True, slots=True)
class NodeTurnFinished:
    """A run of a node ended; `more`: input is left, and another run is due. `message` is empty unless it failed."""

    node: str
    number: int
    status: Status
    seconds: float
    more: bool
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class ProjectReloaded:
    """`engine start` re-read the project.

    Attributes:
        files: edited files, relative to the project; empty: on request.
        changed: nodes whose new definition is used from their next run on.
        rejected: why all or part of the edit is not used; empty: all of it is.
        unused: nodes that keep their old definition while the rest of the edit is used; empty: none of it is used.
    """

    files: tuple[str, ...]
    changed: tuple[str, ...]
    rejected: str
    at: str
    nodes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def rejection(self) -> str:
        """Return which part of the edit is not used, and why, in a sentence; empty: all of it is used."""
        if not self.rejected:
            return ""
        if not self.unused:
            return f"the edited project is not used: {self.rejected}"
        names = [f"'{node.partition('.')[2]}'" for node in self.unused]
        listed = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
        clause = "which continue as they were" if names[1:] else "which continues as it was"
        return f"the edit is used but for {listed}, {clause}: {self.rejected}"


@dataclass(frozen=True, slots=True)
class MaintenanceFinished:
    node: str
    seconds: float
    message: str
    failed: bool
    at: str


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """`engine start` shut Java down; it restarts when there is work."""

    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class LiveStopped:
    reason: str
    at: str


LiveEvent = (
    LiveStarted | NodeStateChanged | NodeTurnStarted | NodeTurnFinished | ProjectReloaded | MaintenanceFinished
    | SessionClosed | LiveStopped
)  # fmt: skip
# How a node of a run ended.
Finished = ModelFinished | TestFinished | SinkFinished
Event = (
    RunStarted | StepStarted | ModelStarted | BatchCommitted | Finished | Diagnosed | RunFinished | TurnStarted
    | TurnFinished | SessionRestarted | LiveEvent
)  # fmt: skip
Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RunResults:
    run_id: str = ""
    command: str = ""
    target: str = ""
    started_at: str = ""
    seconds: float = 0.0
    results: tuple[Finished, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    batches: tuple[BatchCommitted, ...] = ()

    @property
    def failed(self) -> bool:
        return any(r.status.failed for r in self.results) or any(d.is_error for d in self.diagnostics)

    def count(self, *statuses: Status) -> int:
        return sum(r.status in statuses for r in self.results)

    @property
    def cached(self) -> int:
        return sum(isinstance(r, TestFinished) and r.cached for r in self.results)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def fold(events: Iterable[Event]) -> RunResults:
    fold_state = _Fold()
    for event in events:
        fold_state.add(event)
    return fold_state.run_results()


@dataclass(slots=True)
class _Fold:
    started: RunStarted | None = None
    seconds: float = 0.0
    results: list[Finished] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    batches: list[BatchCommitted] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.started = event
            case ModelFinished() | TestFinished() | SinkFinished():
                self.results.append(event)
            case Diagnosed():
                self.diagnostics.append(event.diagnostic)
            case BatchCommitted():
                self.batches.append(event)
            case RunFinished():
                self.seconds = event.seconds
            case _:
                pass

    def run_results(self) -> RunResults:
        run_started = self.started
        return RunResults(
            run_id=run_started.run_id if run_started else "",
            command=run_started.command if run_started else "",
            target=run_started.target if run_started else "",
            started_at=run_started.at if run_started else "",
            seconds=self.seconds,
            results=tuple(self.results),
            diagnostics=tuple(self.diagnostics),
            batches=tuple(self.batches),
        )
