"""The queue of `engine start`: the state of each live node, and which one has the next turn.

A due node gets the first free worker, the one that has waited longest first, unless one that it reads failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from engine.errors import Diagnostic
from engine.events import NodeState
from engine.node_ids import shown_name
from engine.runtime.queue.live_nodes import LiveNode
from engine.state.lock_holder import LockHolder

FIRST: Final = 1.0
MOST: Final = 300.0
# Seconds after which a node on standby finds out whether its table is free.
LOCKED: Final = 10.0

# What only an edit of the project or a decision of the user removes; all else may pass by itself.
_NEEDS_EDIT: Final = frozenset({
    "model-changed", "source-changed", "source-columns", "source-replaced", "source-shrunk", "source-gap",
    "source-path", "table-schema", "table-replaced", "table-rolled-back", "table-missing", "name-taken",
    "checkpoint-lost", "checkpoint-damaged", "state-missing", "state-copied", "state-unreadable",
    "upstream-replaced", "upstream-rewritten", "upstream-history", "file-missing", "file-changed", "not-supported",
    "materialization-changed", "full-refresh-protected", "reset-position", "build-rejected", "sink-schema",
})  # fmt: skip


def pause_after(failures: int) -> float:
    """Return the seconds to wait after that many failures in a row: 1, 2, 4, .. up to 300."""
    return float(min(FIRST * 2 ** min(failures - 1, 16), MOST))


def may_recover(diagnostics: Iterable[Diagnostic]) -> bool:
    return not any(diagnostic.is_error and diagnostic.code in _NEEDS_EDIT for diagnostic in diagnostics)


# Tables are maintained at the latest so many seconds after the first commit since.
_MAINTAIN_SECONDS = 6 * 60 * 60.0
# A table with so many times as many is not left to a quiet moment.
_URGENT = 3
# A node has at least as much time to itself as its turns take: a table that is computed again after each commit of what
# it reads would otherwise keep a worker busy all the time.
_REST = 1.0


@dataclass(frozen=True, slots=True)
class StateChange:
    node: str
    state: NodeState
    reason: str
    retry_at: float | None = None
    took_over: bool = False


@dataclass(slots=True)
class Entry:
    """What the queue knows of a node; times are those of the queue's clock.

    `due_reason`: why it became due during its turn. `turns` count those that found its table locked. `commits`: of its
    table since it was `maintained` (or since the first). `shown_reason`: of its state, as shown last. `standby`: the
    process that writes its table, and for which this one waits.
    """

    node: LiveNode
    state: NodeState = NodeState.IDLE
    reason: str = ""
    due_since: float | None = None
    earliest: float = 0.0
    due_reason: str = ""
    failures: int = 0
    succeeded: bool | None = None
    paused: bool = False
    retry_at: float | None = None
    turns: int = 0
    commits: int = 0
    maintained: float = 0.0
    shown_reason: str = ""
    standby: LockHolder | None = None
    _turn_start: float = 0.0


@dataclass(slots=True)
class NodeQueue:
    """The live nodes of a process; used by one thread; `maintain_after` 0: no table is ever maintained."""

    entries: dict[str, Entry] = field(default_factory=dict)
    changes: list[StateChange] = field(default_factory=list)
    maintain_after: int = 100

    def replace(self, nodes: Mapping[str, LiveNode], changed: Iterable[str], now: float) -> None:
        """Use other live nodes from now on: those that changed are due, those that are gone are forgotten."""
        entries = {}
        for id_, node in nodes.items():
            entry = self.entries.get(id_)
            if entry is None:
                entry = Entry(node)
                self._plan_next(entry, now)
            entry.node = node
            entries[id_] = entry
        self.entries = entries
        for id_ in changed:
            if id_ in entries:
                entries[id_].failures, entries[id_].earliest = 0, 0.0
                if entries[id_].state in {NodeState.FAILED, NodeState.BACKING_OFF}:
                    self._release(entries[id_], now)
                elif entries[id_].state is NodeState.STANDBY:
                    entries[id_].retry_at = now
                self.mark_due(id_, "its definition changed", now)

    def mark_due(self, id_: str, reason: str, now: float) -> None:
        """A node has something to do; one that failed and waits for an edit stays as it is."""
        entry = self.entries.get(id_)
        if entry is None:
            return
        if entry.state is NodeState.RUNNING:
            entry.due_reason = entry.due_reason or reason
        elif entry.state is NodeState.BACKING_OFF:
            entry.due_since = entry.due_since if entry.due_since is not None else now
        elif entry.due_since is None and entry.state not in {NodeState.FAILED, NodeState.STANDBY}:
            entry.due_since, entry.reason = now, reason
            if not entry.paused:
                self._turn_to(entry, NodeState.QUEUED, reason)

    def committed(self, id_: str, now: float) -> None:
        if (committed_entry := self.entries.get(id_)) is not None:
            committed_entry.maintained = committed_entry.maintained or now
            committed_entry.commits += 1
        self.trigger(id_, f"{shown_name(id_)} committed", now)

    def trigger(self, id_: str, reason: str, now: float) -> None:
        """Have those nodes run that wait for a commit of a node, or for its tests."""
        for entry in self.entries.values():
            if id_ in entry.node.commit_triggers and entry.node.id != id_:
                self.mark_due(entry.node.id, reason, now)

    def new_input(self, source: str, now: float) -> None:
        for entry in self.entries.values():
            if source in entry.node.sources:
                self.mark_due(entry.node.id, f"new input in {shown_name(source)}", now)

    def tick(self, now: float) -> None:
        for entry in self.entries.values():
            if entry.state is NodeState.BACKING_OFF and entry.retry_at is not None and entry.retry_at <= now:
                self._release(entry, now)
                self.mark_due(entry.node.id, "tried again", now)
            elif entry.state is NodeState.STANDBY and entry.retry_at is not None and entry.retry_at <= now:
                # Whether its table is free shows in its turn; until then it stays on standby for everybody else.
                entry.state, entry.retry_at, entry.due_since = NodeState.QUEUED, None, now
                self._plan_next(entry, now)
            elif entry.node.schedule is not None and entry.retry_at is not None and entry.retry_at <= now:
                entry.retry_at = None
                self.mark_due(entry.node.id, f"schedule {entry.node.schedule.text}", now)
                self._plan_next(entry, now)

    def next(self, now: float) -> Entry | None:
        """The node whose turn begins now: the one that is due longest, of those that may; None: none may."""
        ready = []
        for entry in self.entries.values():
            if entry.due_since is None or entry.paused or entry.state not in {NodeState.QUEUED, NodeState.WAITING}:
                continue
            if (upstream := self._waits_for(entry)) is not None:
                if not entry.standby:
                    self._turn_to(entry, NodeState.WAITING, shown_name(upstream))
            elif entry.earliest <= now:
                ready.append(entry)
        return min(ready, key=lambda entry: entry.due_since or 0.0, default=None)

    def begin_turn(self, entry: Entry, now: float) -> None:
        entry.due_since, entry._turn_start, entry.due_reason = None, now, ""  # noqa: SLF001 - of this module
        entry.turns += 1
        if entry.standby:
            entry.state = NodeState.RUNNING
        else:
            self._turn_to(entry, NodeState.RUNNING, entry.reason)

    def stand_by(self, id_: str, now: float, holder: LockHolder, *, up_to_date: bool) -> None:
        """The table of a node is another process's to write; whether it still is is found out soon."""
        if (entry := self.entries.get(id_)) is None:
            return
        entry.succeeded = up_to_date or entry.succeeded or None
        entry.failures, entry.due_reason, entry.due_since, entry.retry_at = 0, "", None, now + LOCKED
        self._turn_to(entry, NodeState.STANDBY, f"{holder.process} writes it")
        entry.standby = None if entry.paused else holder

    def took_over(self, id_: str) -> None:
        if (entry := self.entries.get(id_)) is not None and entry.standby is not None:
            self._turn_to(entry, NodeState.RUNNING, f"took over from {entry.standby.process}")

    def next_maintenance(self, now: float) -> Entry | None:
        """The node whose table is to be maintained now: in a quiet moment, the one with most commits; None: none is."""
        ready = [e for e in self.entries.values() if e.state in {NodeState.IDLE, NodeState.QUEUED} and not e.paused]
        worn_entry = max((e for e in ready if self._worn(e, now)), key=lambda entry: entry.commits, default=None)
        if worn_entry is None:
            return None
        quiet = all(e.due_since is None and e.state is not NodeState.RUNNING for e in self.entries.values())
        return worn_entry if quiet or worn_entry.commits >= _URGENT * self.maintain_after else None

    def begin_maintenance(self, entry: Entry) -> None:
        """The table of a node is maintained, in place of a turn; what makes it due meanwhile counts afterwards."""
        entry.due_reason = entry.reason if entry.due_since is not None else ""
        entry.due_since = None
        self._turn_to(entry, NodeState.RUNNING, "maintenance")

    def maintained(self, id_: str, now: float) -> None:
        if (entry := self.entries.get(id_)) is None:
            return
        entry.commits, entry.maintained = 0, now
        self._turn_to(entry, NodeState.IDLE, "")
        if due_reason := entry.due_reason:
            entry.due_reason = ""
            self.mark_due(id_, due_reason, now)

    def succeed(self, id_: str, now: float, *, more: bool) -> None:
        """Its turn ended well; `more`: it left input unread."""
        if (entry := self.entries.get(id_)) is None:
            return
        entry.succeeded, entry.failures = True, 0
        self._delay_next_turn(entry, now, eager=more)
        self._turn_to(entry, NodeState.IDLE, "")
        if due_reason := entry.due_reason or ("more input" if more else ""):
            entry.due_reason = ""
            self.mark_due(id_, due_reason, now)

    def fail(self, id_: str, now: float, reason: str, *, heals: bool) -> None:
        """Its turn failed; `heals`: it is tried again after a pause, as time may remove the cause."""
        if (entry := self.entries.get(id_)) is None:
            return
        entry.succeeded, entry.due_reason = False, ""
        entry.failures += 1
        if not heals:
            self._turn_to(entry, NodeState.FAILED, reason)
            return
        entry.retry_at = now + pause_after(entry.failures)
        self._turn_to(entry, NodeState.BACKING_OFF, reason, entry.retry_at)

    def heal(self, id_: str, now: float) -> None:
        if (entry := self.entries.get(id_)) is not None and entry.state is NodeState.FAILED:
            self._release(entry, now)
            self.mark_due(id_, "tried again", now)

    def pause(self, ids: Iterable[str]) -> None:
        for entry in self._entries_of(ids):
            entry.paused = True
            if entry.state is not NodeState.RUNNING:
                self._turn_to(entry, NodeState.PAUSED, "")

    def resume(self, ids: Iterable[str], now: float) -> None:
        for entry in self._entries_of(ids):
            if entry.paused:
                entry.paused, entry.due_since = False, None
                entry.state = NodeState.IDLE if entry.state is NodeState.PAUSED else entry.state
                self.mark_due(entry.node.id, "resumed", now)

    def take_changes(self) -> list[StateChange]:
        changes, self.changes = self.changes, []
        return changes

    def wait(self, now: float, most: float) -> float:
        """Seconds until something happens by time alone, at most `most`."""
        times = [entry.retry_at for entry in self.entries.values() if entry.retry_at is not None]
        times += [
            entry.earliest for entry in self.entries.values() if entry.due_since is not None and entry.earliest > now
        ]
        return max(0.0, min([most, *(time - now for time in times)]))

    def running(self) -> int:
        return sum(entry.state is NodeState.RUNNING for entry in self.entries.values())

    def busy(self) -> bool:
        """Whether a turn is under way that does not only find out whether its table is free."""
        return any(entry.state is NodeState.RUNNING and entry.standby is None for entry in self.entries.values())

    def _release(self, entry: Entry, now: float) -> None:
        entry.state, entry.due_since, entry.retry_at = NodeState.IDLE, None, None
        if entry.paused:
            self._turn_to(entry, NodeState.PAUSED, "")
        self._plan_next(entry, now)

    def _entries_of(self, ids: Iterable[str]) -> Iterator[Entry]:
        yield from (self.entries[id_] for id_ in ids if id_ in self.entries)

    def _worn(self, entry: Entry, now: float) -> bool:
        """Whether a table has had so many commits, or some for so long, that maintenance is worth its time."""
        if not entry.commits or not self.maintain_after:
            return False
        return entry.commits >= self.maintain_after or now - entry.maintained >= _MAINTAIN_SECONDS

    def _waits_for(self, entry: Entry) -> str | None:
        for id_ in sorted(entry.node.upstream):
            above = self.entries.get(id_)
            if above is None or above.succeeded or (above.succeeded is None and above.due_since is None
                                                    and above.state is NodeState.IDLE):  # fmt: skip
                continue
            return id_
        return None

    def _delay_next_turn(self, entry: Entry, now: float, *, eager: bool) -> None:
        took = now - entry._turn_start  # noqa: SLF001 - of this module
        entry.earliest = max(entry._turn_start + entry.node.min_seconds, now if eager else now + min(took, _REST))  # noqa: SLF001
        if not entry.node.sources and entry.node.schedule is None and not eager:
            entry.earliest = max(entry.earliest, now + took)

    def _plan_next(self, entry: Entry, now: float) -> None:
        if entry.node.schedule is not None:
            moment = entry.node.schedule.after(datetime.fromtimestamp(now, UTC))
            entry.retry_at = moment.timestamp() if moment is not None else None

    def _turn_to(self, entry: Entry, state: NodeState, reason: str, retry_at: float | None = None) -> None:
        if entry.paused and state in {NodeState.IDLE, NodeState.QUEUED, NodeState.WAITING, NodeState.STANDBY}:
            state, reason = NodeState.PAUSED, ""
        earlier_state = NodeState.STANDBY if entry.standby else entry.state
        if (earlier_state, entry.shown_reason) == (state, reason) and state is not NodeState.BACKING_OFF:
            entry.state = state
            return
        took_over = entry.standby is not None and state is NodeState.RUNNING
        if state is not NodeState.STANDBY:
            entry.standby = None
        entry.state, entry.shown_reason = state, reason
        if state not in {NodeState.IDLE, NodeState.WAITING}:
            entry.reason = reason
        self.changes.append(StateChange(entry.node.id, state, reason, retry_at, took_over))
