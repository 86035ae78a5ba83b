"""What a build does to a node, and the plan of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.errors import Diagnostic
from engine.plan.comparison import Comparison
from engine.plan.deployed.renamed_tables import Renaming

if TYPE_CHECKING:
    from engine.sources.kafka.native_client import ClusterOffsets
    from engine.sources.spec import SourceSpec


class ActionKind(StrEnum):
    """What becomes of a node; for a streaming table it says how its query starts.

    Attributes:
        CREATE: nothing of it is written yet.
        EMPTY: the same, and its table is made without reading a row (`--empty`).
        RESUME: a stream continues with its checkpoint.
        RESET: a stream begins a new checkpoint over the rows of its table (`--reset-checkpoint`).
        REFRESH: rebuilt from the first row (`--full-refresh`).
        REBUILD: a batch table or view is computed again.
        TEST: a data test or a unit test is run.
    """

    CREATE = "create"
    EMPTY = "empty"
    RESUME = "resume"
    RESET = "reset"
    REFRESH = "refresh"
    REBUILD = "rebuild"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Reset:
    """What `--reset-checkpoint` says.

    Attributes:
        at: from which time sources are read, in milliseconds since 1970; None: from the first record.
        gap: nothing is read again.
        windows: events of windows that are written are left out (see `engine.plan.edits.open_windows`).
    """

    at: int | None
    gap: bool = False
    windows: bool = False


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the user says about a build.

    Attributes:
        reset: where the sources of the selected streams begin, each with a new checkpoint; None: they resume.
        accept: consequences that are accepted: `downstream-stops`, `files-gone`.
        empty: tables that do not exist are made without rows, and those that do are left as they are.
    """

    full_refresh: bool = False
    reset: Reset | None = None
    accept: tuple[str, ...] = ()
    empty: bool = False
    discard_refresh: bool = False


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """Topics with records that a stream has not read; when they were written is not part of a plan."""

    spec: SourceSpec
    offsets: tuple[Mapping[str, Any], ...]
    topics: ClusterOffsets


@dataclass(frozen=True, slots=True)
class Unread:
    """What an input has that its reader has not read.

    Attributes:
        what: `files`, `snapshots`, `offsets` or `tables`; empty: only the system behind it knows.
        present: how many there are now, where nodes before it will add some; else None.
        oldest_at: when the oldest of those that are there now came to be, in seconds since 1970: modification time of a
            file, commit time of a snapshot; None: not known, or there is none.
    """

    name: str
    what: str = ""
    count: int | None = None
    names: tuple[str, ...] = ()
    rows: int | None = None
    present: int | None = None
    oldest_at: float | None = None
    records: UnreadRecords | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Action:
    """What a build does to a node.

    Attributes:
        refusals: why it cannot be built; empty: it can.
        unchanged: there is nothing to do; False: there is; None: only a build can tell.
        comparison: of a model with what wrote its table last; None: a test.
        notes: what the build notes of an edit, and of settings without effect as long as a checkpoint lives.
        renaming: what gets its table its name before that; None: it has it.
        inputs: of an unchanged batch table, what it counts as computed from now on; None: what is recorded.
        events_from: of a reset, the event time before which no window is written again, in milliseconds since 1970.
        writes: what is written, in a phrase; empty: nothing, or a test.
    """

    node: str
    kind: ActionKind
    reasons: tuple[str, ...] = ()
    refusals: tuple[Diagnostic, ...] = ()
    unread: tuple[Unread, ...] = ()
    unchanged: bool | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    inputs: Mapping[str, Any] | None = None
    renaming: Renaming | None = None
    events_from: int | None = None
    writes: str = ""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    actions: Mapping[str, Action]

    @property
    def refusals(self) -> tuple[Diagnostic, ...]:
        return tuple(dict.fromkeys(refusal for action in self.actions.values() for refusal in action.refusals))

    @property
    def unchanged(self) -> bool:
        return all(action.unchanged for action in self.actions.values())

    def rejected(self) -> Iterator[str]:
        yield from (node for node, action in self.actions.items() if action.refusals)
