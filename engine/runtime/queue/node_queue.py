"""The queue of `engine start`: the state of each live node, and which one has the next turn.

Turns have no barrier: a node that is due gets the first free worker, the one that has waited longest first. A node
waits while one that it reads has not succeeded, as in a build.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine.events import NodeState
from engine.node_ids import shown_name
from engine.runtime.queue.back_off import LOCKED, pause_after
from engine.runtime.queue.live_nodes import LiveNode
from engine.state.lock_holder import LockHolder

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
    until: float | None = None
    took_over: bool = False


@dataclass(slots=True)
class Entry:
    """What the queue knows of a node; times are those of the queue's clock.

    Attributes:
        again: it became due during its turn, for this reason; empty: it did not.
        until: when a failed or scheduled node is tried again.
        turns: that it had, with those that found its table locked.
        commits: of its table since it was maintained.
        maintained: when that was, or when its first commit came.
        shown: the reason of its state that was shown last.
        standby: the process that writes its table, and for which this one waits; None: it waits for none.
    """

    node: LiveNode
    state: NodeState = NodeState.IDLE
    reason: str = ""
    due: float | None = None
    earliest: float = 0.0
    again: str = ""
    failures: int = 0
    succeeded: bool | None = None
    paused: bool = False
    until: float | None = None
    turns: int = 0
    commits: int = 0
    maintained: float = 0.0
    shown: str = ""
    standby: LockHolder | None = None
    _begun: float = 0.0


@dataclass(slots=True)
class NodeQueue:
    """The live nodes of a process; used by one thread; `maintain_after` 0: no table is ever maintained."""

    entries: dict[str, Entry] = field(default_factory=dict)
    changes: list[StateChange] = field(default_factory=list)
    maintain_after: int = 100

    def replace(self, nodes: Mapping[str, LiveNode], changed: Iterable[str], now: float) -> None:
        """Use other live nodes from now on: those that changed are due, those that are gone are forgotten."""
        kept = {}
        for id_, node in nodes.items():
            entry = self.entries.get(id_)
            if entry is None:
                entry = Entry(node)
                self._plan_next(entry, now)
            entry.node = node
            kept[id_] = entry
        self.entries = kept
        for id_ in changed:
            if id_ in kept:
                kept[id_].failures, kept[id_].earliest = 0, 0.0
                if kept[id_].state in {NodeState.FAILED, NodeState.BACKING_OFF}:
                    self._release(kept[id_], now)
                elif kept[id_].state is NodeState.STANDBY:
                    kept[id_].until = now
                self.due(id_, "its definition changed", now)

    def due(self, id_: str, reason: str, now: float) -> None:
        """A node has something to do; one that failed and waits for an edit stays as it is."""
        entry = self.entries.get(id_)
        if entry is None:
            return
        if entry.state is NodeState.RUNNING:
            entry.again = entry.again or reason
        elif entry.state is NodeState.BACKING_OFF:
            entry.due = entry.due if entry.due is not None else now
        elif entry.due is None and entry.state not in {NodeState.FAILED, NodeState.STANDBY}:
            entry.due, entry.reason = now, reason
            if not entry.paused:
                self._turn_to(entry, NodeState.QUEUED, reason)

    def committed(self, id_: str, now: float) -> None:
        name = shown_name(id_)
        if (own := self.entries.get(id_)) is not None:
            own.maintained = own.maintained or now
            own.commits += 1
        for entry in self.entries.values():
            if id_ in entry.node.after and entry.node.id != id_:
                self.due(entry.node.id, f"{name} committed", now)

    def new_input(self, source: str, now: float) -> None:
        for entry in self.entries.values():
            if source in entry.node.sources:
                self.due(entry.node.id, f"new input in {shown_name(source)}", now)

    def tick(self, now: float) -> None:
        for entry in self.entries.values():
            if entry.state is NodeState.BACKING_OFF and entry.until is not None and entry.until <= now:
                self._release(entry, now)
                self.due(entry.node.id, "tried again", now)
            elif entry.state is NodeState.STANDBY and entry.until is not None and entry.until <= now:
                # Whether its table is free shows in its turn; until then it stays on standby for everybody else.
                entry.state, entry.until, entry.due = NodeState.QUEUED, None, now
                self._plan_next(entry, now)
            elif entry.node.schedule is not None and entry.until is not None and entry.until <= now:
                entry.until = None
                self.due(entry.node.id, f"schedule {entry.node.schedule.text}", now)
                self._plan_next(entry, now)

    def next(self, now: float) -> Entry | None:
        """The node whose turn begins now: the one that is due longest, of those that may; None: none may."""
        ready = []
        for entry in self.entries.values():
            if entry.due is None or entry.paused or entry.state not in {NodeState.QUEUED, NodeState.WAITING}:
                continue
            if (upstream := self._waits_for(entry)) is not None:
                if not entry.standby:
                    self._turn_to(entry, NodeState.WAITING, shown_name(upstream))
            elif entry.earliest <= now:
                ready.append(entry)
        return min(ready, key=lambda entry: entry.due or 0.0, default=None)

    def begin(self, entry: Entry, now: float) -> None:
        entry.due, entry._begun, entry.again = None, now, ""  # noqa: SLF001 - of this module
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
        entry.failures, entry.again, entry.due, entry.until = 0, "", None, now + LOCKED
        self._turn_to(entry, NodeState.STANDBY, f"{holder.process} writes it")
        entry.standby = None if entry.paused else holder

    def took_over(self, id_: str) -> None:
        if (entry := self.entries.get(id_)) is not None and entry.standby is not None:
            self._turn_to(entry, NodeState.RUNNING, f"took over from {entry.standby.process}")

    def next_maintenance(self, now: float) -> Entry | None:
        """The node whose table is to be maintained now: in a quiet moment, the one with most commits; None: none is."""
        ready = [e for e in self.entries.values() if e.state in {NodeState.IDLE, NodeState.QUEUED} and not e.paused]
        found = max((e for e in ready if self._worn(e, now)), key=lambda entry: entry.commits, default=None)
        if found is None:
            return None
        quiet = all(e.due is None and e.state is not NodeState.RUNNING for e in self.entries.values())
        return found if quiet or found.commits >= _URGENT * self.maintain_after else None

    def begin_maintenance(self, entry: Entry) -> None:
        """The table of a node is maintained, in place of a turn; what makes it due meanwhile counts afterwards."""
        entry.again = entry.reason if entry.due is not None else ""
        entry.due = None
        self._turn_to(entry, NodeState.RUNNING, "maintenance")

    def maintained(self, id_: str, now: float) -> None:
        if (entry := self.entries.get(id_)) is None:
            return
        entry.commits, entry.maintained = 0, now
        self._turn_to(entry, NodeState.IDLE, "")
        if again := entry.again:
            entry.again = ""
            self.due(id_, again, now)

    def succeed(self, id_: str, now: float, *, more: bool) -> None:
        """Its turn ended well; `more`: it left input unread."""
        if (entry := self.entries.get(id_)) is None:
            return
        entry.succeeded, entry.failures = True, 0
        self._rest(entry, now, eager=more)
        self._turn_to(entry, NodeState.IDLE, "")
        if again := entry.again or ("more input" if more else ""):
            entry.again = ""
            self.due(id_, again, now)

    def fail(self, id_: str, now: float, reason: str, *, heals: bool) -> None:
        """Its turn failed; `heals`: it is tried again after a pause, as time may remove the cause."""
        if (entry := self.entries.get(id_)) is None:
            return
        entry.succeeded, entry.again = False, ""
        entry.failures += 1
        if not heals:
            self._turn_to(entry, NodeState.FAILED, reason)
            return
        entry.until = now + pause_after(entry.failures)
        self._turn_to(entry, NodeState.BACKING_OFF, reason, entry.until)

    def heal(self, id_: str, now: float) -> None:
        if (entry := self.entries.get(id_)) is not None and entry.state is NodeState.FAILED:
            self._release(entry, now)
            self.due(id_, "tried again", now)

    def pause(self, ids: Iterable[str]) -> None:
        """Begin no turn of some nodes until they are resumed."""
        for entry in self._those(ids):
            entry.paused = True
            if entry.state is not NodeState.RUNNING:
                self._turn_to(entry, NodeState.PAUSED, "")

    def resume(self, ids: Iterable[str], now: float) -> None:
        for entry in self._those(ids):
            if entry.paused:
                entry.paused, entry.due = False, None
                entry.state = NodeState.IDLE if entry.state is NodeState.PAUSED else entry.state
                self.due(entry.node.id, "resumed", now)

    def take_changes(self) -> list[StateChange]:
        taken, self.changes = self.changes, []
        return taken

    def wait(self, now: float, most: float) -> float:
        """Seconds until something happens by time alone, at most `most`."""
        times = [entry.until for entry in self.entries.values() if entry.until is not None]
        times += [entry.earliest for entry in self.entries.values() if entry.due is not None and entry.earliest > now]
        return max(0.0, min([most, *(time - now for time in times)]))

    def running(self) -> int:
        return sum(entry.state is NodeState.RUNNING for entry in self.entries.values())

    def busy(self) -> bool:
        """Whether a turn is under way that does not only find out whether its table is free."""
        return any(entry.state is NodeState.RUNNING and entry.standby is None for entry in self.entries.values())

    def _release(self, entry: Entry, now: float) -> None:
        entry.state, entry.due, entry.until = NodeState.IDLE, None, None
        if entry.paused:
            self._turn_to(entry, NodeState.PAUSED, "")
        self._plan_next(entry, now)

    def _those(self, ids: Iterable[str]) -> Iterator[Entry]:
        yield from (self.entries[id_] for id_ in ids if id_ in self.entries)

    def _worn(self, entry: Entry, now: float) -> bool:
        """Whether a table has had so many commits, or some for so long, that maintenance is worth its time."""
        if not entry.commits or not self.maintain_after:
            return False
        return entry.commits >= self.maintain_after or now - entry.maintained >= _MAINTAIN_SECONDS

    def _waits_for(self, entry: Entry) -> str | None:
        for id_ in sorted(entry.node.upstream):
            above = self.entries.get(id_)
            if above is None or above.succeeded or (above.succeeded is None and above.due is None
                                                    and above.state is NodeState.IDLE):  # fmt: skip
                continue
            return id_
        return None

    def _rest(self, entry: Entry, now: float, *, eager: bool) -> None:
        took = now - entry._begun  # noqa: SLF001 - of this module
        entry.earliest = max(entry._begun + entry.node.every, now if eager else now + min(took, _REST))  # noqa: SLF001
        if not entry.node.sources and entry.node.schedule is None and not eager:
            entry.earliest = max(entry.earliest, now + took)

    def _plan_next(self, entry: Entry, now: float) -> None:
        if entry.node.schedule is not None:
            moment = entry.node.schedule.after(datetime.fromtimestamp(now, UTC))
            entry.until = moment.timestamp() if moment is not None else None

    def _turn_to(self, entry: Entry, state: NodeState, reason: str, until: float | None = None) -> None:
        if entry.paused and state in {NodeState.IDLE, NodeState.QUEUED, NodeState.WAITING, NodeState.STANDBY}:
            state, reason = NodeState.PAUSED, ""
        before = NodeState.STANDBY if entry.standby else entry.state
        if (before, entry.shown) == (state, reason) and state is not NodeState.BACKING_OFF:
            entry.state = state
            return
        took_over = entry.standby is not None and state is NodeState.RUNNING
        if state is not NodeState.STANDBY:
            entry.standby = None
        entry.state, entry.shown = state, reason
        if state not in {NodeState.IDLE, NodeState.WAITING}:
            entry.reason = reason
        self.changes.append(StateChange(entry.node.id, state, reason, until, took_over))
