"""Whether a node of `engine start` makes progress with the input that it has.

Progress is a micro-batch that ended, with rows or without, a turn that ended well, or a watermark that moved. Time
counts from the moment there was something to do. Time in which nothing is expected of a node does not count: while it
is paused, on standby, waits for another node (which is judged itself) or has failed (which is reported as such), before
its schedule or trigger is due, and while the machine sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.events import NodeState

# Returns when input of a node that arrived, or was left, at a time should be read: by its schedule or trigger.
DueAt = Callable[[float], float]
_EXPECTED = frozenset({NodeState.IDLE, NodeState.QUEUED, NodeState.RUNNING})


@dataclass(slots=True)
class Progress:
    """What a node has to do, and when it last got on with it; times are seconds since 1970.

    Attributes:
        unread_since: since when a plan has found unread input; None: there is none, or nobody knows.
        turn_since: when the turn began that runs now; None: none does.
        queued_since: when the turn was queued that is queued or runs now; None: none is.
        moved_at: when it made progress last, or when time began to count.
        stalled_before: why it was stalled when an earlier process ended; empty: it was not, or has made progress since.
    """

    unread_since: float | None = None
    turn_since: float | None = None
    queued_since: float | None = None
    moved_at: float = 0.0
    stalled_before: str = ""
    is_expected: bool = True

    def note_progress(self, at: float) -> None:
        self.moved_at = max(self.moved_at, at)
        self.stalled_before = ""

    def note_unread(self, at: float, *, is_unread: bool) -> None:
        self.unread_since = (at if self.unread_since is None else self.unread_since) if is_unread else None
        self.stalled_before = self.stalled_before if is_unread else ""

    def take_state(self, state: NodeState, at: float) -> None:
        """Take the state of the node: time begins to count when something is expected of it again."""
        expected = state in _EXPECTED
        if expected and not self.is_expected:
            self.note_progress(at)
        self.is_expected = expected
        if state is NodeState.QUEUED:
            self.queued_since = at if self.queued_since is None else self.queued_since
        elif state is not NodeState.RUNNING:
            self.queued_since = None

    def slept(self, seconds: float, at: float) -> None:
        """Have time not count in which the machine slept, which ended at `at`."""
        self.moved_at = min(self.moved_at + seconds, at) if self.moved_at else 0.0
        self.unread_since = None if self.unread_since is None else min(self.unread_since + seconds, at)
        self.turn_since = None if self.turn_since is None else min(self.turn_since + seconds, at)
        self.queued_since = None if self.queued_since is None else min(self.queued_since + seconds, at)

    def idle_seconds(self, at: float, due_at: DueAt, *, is_known: bool, on_schedule: bool = False) -> float:
        """Return for how long there has been something to do without progress; 0: there is nothing to do.

        Args:
            at: now.
            due_at: when input should be read.
            is_known: whether a plan knows what is unread; else a turn that runs has something to do.
            on_schedule: the schedule queues its turns: what is queued is due since then. `due_at` may say later if a
                poll noticed the input after that time, or earlier if the machine slept at that time.
        """
        since = self.unread_since if is_known else self.turn_since
        if since is None or not self.is_expected:
            return 0.0
        since = max(since, self.moved_at)
        due = due_at(since)
        turn_begin = self.queued_since if on_schedule and self.queued_since is not None else self.turn_since
        if turn_begin is not None:
            due = max(since, turn_begin) if on_schedule else min(due, max(since, turn_begin))
        return max(0.0, at - due)
