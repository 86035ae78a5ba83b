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
        """Whether what depends on the node is skipped."""
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
    """Node `index` of the run begins.

    Attributes:
        index: its place in the run, from 1.
        unread: of a stream, how much input it has to read, by unit (`files`, `offsets`, `snapshots`), as far as the
            plan could count it.
    """

    node: str
    index: int
    total: int
    kind: str
    relation: str
    unread: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The numbers of a micro-batch, or of several together.

    Attributes:
        rows_out: rows written; 0: nothing was committed.
        rows_updated: those of `rows_out` that were in the table before, by their key.
        rows_deleted: rows that were taken out of the table, by their key; they are not among `rows_out`.
        duplicates: rows that `dedup` dropped.
        bad_records: records taken out because they could not be read, by input.
        bad_reasons: one of the reasons of them, by input, without values of records.
    """

    rows_in: int = 0
    rows_out: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    late: int = 0
    duplicates: int = 0
    state_rows: int = 0
    bad_records: Mapping[str, int] = field(default_factory=dict)
    bad_reasons: Mapping[str, str] = field(default_factory=dict)
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0

    def numbers(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(Metrics)}

    def plus(self, later: Metrics) -> Metrics:
        """Both together; what is held in state is what the later one says."""
        return Metrics(
            rows_in=self.rows_in + later.rows_in,
            rows_out=self.rows_out + later.rows_out,
            rows_updated=self.rows_updated + later.rows_updated,
            rows_deleted=self.rows_deleted + later.rows_deleted,
            late=self.late + later.late,
            duplicates=self.duplicates + later.duplicates,
            state_rows=later.state_rows,
            bad_records=_summed(self.bad_records, later.bad_records),
            bad_reasons={**later.bad_reasons, **self.bad_reasons},
            failed_checks=_summed(self.failed_checks, later.failed_checks),
            quarantined=self.quarantined + later.quarantined,
        )


def _summed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


@dataclass(frozen=True, slots=True)
class HeldInState:
    """What one step of a query holds between micro-batches."""

    operator: str
    meaning: str
    explanation: str
    count: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class BatchCommitted(Metrics):
    """A micro-batch ended.

    Attributes:
        watermark: UTC text.
        replayed: it had been written before a crash; nothing is counted twice.
        read: how much of `ModelStarted.unread` it read, by unit; a unit is missing where that is not known.
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
    """How a model's turn ended; numbers are sums over its micro-batches.

    Attributes:
        message: why, in one line; empty for success.
        watermark: the last one, UTC text.
        event_times: the newest event time of each input of a query with several watermarks; None: it had no row.
        more: its turn ended before it had read all there was (`engine start`).
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
    """A test ended.

    Attributes:
        index: its place in the run, from 1.
        failures: failing rows of a data test, expectations of a unit test that do not hold.
        at: when it ended, UTC.
        passed_at: when it passed last with the same model, rows and text, so that it did not run; empty: it ran.
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
class Diagnosed:
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class RunFinished:
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """`--watch` runs what is due after an edit.

    Attributes:
        number: of the turn, from 1; the first one follows no edit.
        files: that were written, made or removed, relative to the project.
        due: how many nodes will run; None: not known, because the project has errors.
        at: when it begins, UTC.
    """

    number: int
    files: tuple[str, ...]
    due: int | None
    total: int
    at: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn of `--watch` is over; `seconds` since its edit was noticed; `at` in UTC."""

    number: int
    seconds: float
    at: str


@dataclass(frozen=True, slots=True)
class SessionRestarted:
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class LiveStarted:
    """`engine start` runs; commits carry `run_id`; `at` in UTC."""

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
    """A node of `engine start` is in another state.

    Attributes:
        state: idle: up to date; queued: a turn is due; running; waiting: for the node that `reason` names, which must
            succeed first; backing off: its last turn failed for a reason that can pass, and it is tried again;
            standby: another process writes its table, and this one takes over when that one ends; paused; failed: an
            edit of the project is needed.
        reason: why, in words: "new input in sales.orders", "orders committed", the first line of an error.
        at: when, UTC.
        until: when a node that backs off is tried again, or a scheduled one is due, UTC; empty: not known.
        took_over: it was on standby, and from now on this process writes its table.
    """

    node: str
    state: NodeState
    reason: str
    at: str
    until: str = ""
    took_over: bool = False


@dataclass(frozen=True, slots=True)
class NodeTurnStarted:
    """A node's turn begins: a bounded run of a model and its tests.

    Attributes:
        node: id of the model; of a test of sources, of the test.
        number: of this node's turns, from 1.
        waited: seconds since it was due.
        at: when it begins, UTC.
    """

    node: str
    number: int
    reason: str
    waited: float
    at: str


@dataclass(frozen=True, slots=True)
class NodeTurnFinished:
    """A node's turn is over.

    Attributes:
        node: as in `NodeTurnStarted`.
        status: of the model; `error` if the turn could not begin.
        more: it has not read all there was; another turn is due.
        message: why it failed, in one line; empty if it did not.
        at: when it ended, UTC.
    """

    node: str
    number: int
    status: Status
    seconds: float
    more: bool
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class ProjectReloaded:
    """`engine start` has read the project again.

    Attributes:
        files: that were edited, relative to the project; empty: it was asked to.
        changed: ids of nodes whose new definition is used from their next turn on.
        rejected: why the project as it is now is not used, or not all of it; empty: it is.
        at: when, UTC.
        unused: ids of the nodes that continue as they were, while the rest of the edit is used; empty: nothing of a
            rejected edit is used.
    """

    files: tuple[str, ...]
    changed: tuple[str, ...]
    rejected: str
    at: str
    nodes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def rejection(self) -> str:
        """What of the edit is not used, and why, in a sentence; empty: all of it is used."""
        if not self.rejected:
            return ""
        if not self.unused:
            return f"the edited project is not used: {self.rejected}"
        names = [f"'{node.partition('.')[2]}'" for node in self.unused]
        several = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
        ways = "which continue as they were" if names[1:] else "which continues as it was"
        return f"the edit is used but for {several}, {ways}: {self.rejected}"


@dataclass(frozen=True, slots=True)
class MaintenanceFinished:
    node: str
    seconds: float
    message: str
    failed: bool
    at: str


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """`engine start` gave Java back; `reason` says why. It is opened again when there is work."""

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
Event = (
    RunStarted | StepStarted | ModelStarted | BatchCommitted | ModelFinished | TestFinished | Diagnosed | RunFinished
    | TurnStarted | TurnFinished | SessionRestarted | LiveEvent
)  # fmt: skip
Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RunResults:
    run_id: str = ""
    command: str = ""
    target: str = ""
    started_at: str = ""
    seconds: float = 0.0
    results: tuple[ModelFinished | TestFinished, ...] = ()
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
    collected = _Fold()
    for event in events:
        collected.add(event)
    return collected.done()


@dataclass(slots=True)
class _Fold:
    started: RunStarted | None = None
    seconds: float = 0.0
    results: list[ModelFinished | TestFinished] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    batches: list[BatchCommitted] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.started = event
            case ModelFinished() | TestFinished():
                self.results.append(event)
            case Diagnosed():
                self.diagnostics.append(event.diagnostic)
            case BatchCommitted():
                self.batches.append(event)
            case RunFinished():
                self.seconds = event.seconds
            case _:
                pass

    def done(self) -> RunResults:
        s = self.started
        return RunResults(
            run_id=s.run_id if s else "",
            command=s.command if s else "",
            target=s.target if s else "",
            started_at=s.at if s else "",
            seconds=self.seconds,
            results=tuple(self.results),
            diagnostics=tuple(self.diagnostics),
            batches=tuple(self.batches),
        )
