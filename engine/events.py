"""What happens during a run, as frozen records.

The runtime takes an `Emit` and prints nothing itself. The terminal, JSON lines, run_results.json and the
journal are all made from these records; `RunResults` is their fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from engine.errors import Diagnostic


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
    """A run begins; `total` nodes will be started or skipped."""

    run_id: str
    command: str
    target: str
    total: int
    at: str


@dataclass(frozen=True, slots=True)
class ModelStarted:
    """Node `index` of the run begins."""

    node: str
    index: int
    total: int
    kind: str
    relation: str


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """A micro-batch ended.

    Attributes:
        rows_out: rows written; 0: nothing was committed.
        late: rows behind the watermark.
        bad_records: records taken out because they could not be read, by input.
        failed_checks: rows that did not meet an expectation, by its name.
        quarantined: rows written to the model's quarantine.
        rows_updated: those of `rows_out` that were in the table before, by their key.
        rows_deleted: rows that were taken out of the table, by their key; they are not among `rows_out`.
        watermark: UTC text.
        replayed: it had been written before a crash; nothing is counted twice.
    """

    node: str
    batch_id: int
    rows_in: int
    rows_out: int
    late: int
    state_rows: int
    watermark: str | None
    snapshot_id: int | None
    seconds: float
    replayed: bool = False
    bad_records: Mapping[str, int] = field(default_factory=dict)
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """A model ended, `at` a time (UTC). Numbers are sums over the run's micro-batches; watermark is the last one.

    `event_times` has the newest event time of each input of a query with several watermarks; None: it had no row.
    """

    node: str
    index: int
    total: int
    kind: str
    relation: str
    status: Status
    seconds: float
    message: str = ""
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    batches: int = 0
    watermark: str | None = None
    snapshot_id: int | None = None
    note: str = ""
    bad_records: Mapping[str, int] = field(default_factory=dict)
    failed_checks: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    event_times: Mapping[str, str | None] = field(default_factory=dict)
    at: str = ""


@dataclass(frozen=True, slots=True)
class TestFinished:
    """A data test ended, `at` a time (UTC); `failures` counts failing rows."""

    node: str
    index: int
    total: int
    status: Status
    seconds: float
    failures: int = 0
    message: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A diagnostic to be shown."""

    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over."""

    seconds: float


Event = RunStarted | ModelStarted | BatchCommitted | ModelFinished | TestFinished | Diagnosed | RunFinished
Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RunResults:
    """The fold of a run's events."""

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
        """Whether the command exits with 1."""
        return any(r.status.failed for r in self.results) or any(d.is_error for d in self.diagnostics)

    def count(self, *statuses: Status) -> int:
        """How many nodes ended in one of these ways."""
        return sum(r.status in statuses for r in self.results)


def now() -> str:
    """Return the time of an event, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def fold(events: Iterable[Event]) -> RunResults:
    """Make the results of a run from its events, in order."""
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
