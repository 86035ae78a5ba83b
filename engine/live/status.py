"""`LiveStatus`: what `engine start` is doing, as a fold of its events in constant memory per node.

Its JSON form (`to_json`) is documented in docs/how-to/monitor.md. `version` grows if a key changes its meaning or goes;
keys may be added without that.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from engine.events import (
    INTERRUPTED,
    BatchCommitted,
    Event,
    LiveStarted,
    LiveStopped,
    ModelFinished,
    ModelStarted,
    NodeStateChanged,
    NodeTurnFinished,
    NodeTurnStarted,
    ProjectReloaded,
    SessionClosed,
    TestFinished,
)
from engine.live.lag import Lag
from engine.live.node_status import Health, NodeStatus
from engine.live.status_record import VERSION, StatusRecord
from engine.live.turn_history import seconds_of

STALLED_AFTER = 300.0
# How long, in seconds, unread input of a node may wait for a commit, by its id.
StalledAfter = Callable[[str], float]
_TEST_MESSAGE = 500


class LiveStatus:
    """The status of one process; events come from one thread at a time, readers from any.

    Attributes:
        nodes: by id.
        revision: grows with each change.
        owners: the model that each test is of, by their ids; a test of none counts for itself.
        stalled_after: seconds after which a node with unread input and no commit counts as stalled.
    """

    def __init__(
        self, owners: Mapping[str, str] | None = None, *, stalled_after: StalledAfter = lambda _: STALLED_AFTER
    ) -> None:
        self.owners = dict(owners or {})
        self.nodes: dict[str, NodeStatus] = {}
        self.revision = 0
        self.stalled_after = stalled_after
        self._lock = threading.RLock()
        self._started = LiveStarted("", "", (), 0, "")
        self._stopped: LiveStopped | None = None
        self._reloaded: ProjectReloaded | None = None
        self._session = ""

    def add(self, event: Event, at: float | None = None) -> None:
        """Fold an event in; `at` is its time where it has none."""
        with self._lock:
            self.revision += 1
            self._add(event, time.time() if at is None else at)

    def _add(self, event: Event, at: float) -> None:
        match event:
            case LiveStarted():
                self._started, self._stopped = event, None
                self._keep(event.nodes, seconds_of(event.at))
            case LiveStopped():
                self._stop(event)
            case ProjectReloaded():
                self._reloaded = event
                self._keep(event.nodes or tuple(self.nodes), seconds_of(event.at))
            case SessionClosed():
                self._session = "closed"
            case ModelStarted():
                self._session = "open"
                self._of(event.node).kind = event.kind
                self._of(event.node).relation = event.relation
            case BatchCommitted():
                self._of(event.node).batch(event, at)
            case ModelFinished():
                self._of(event.node).model(event, seconds_of(event.at) if event.at else at)
            case TestFinished():
                self._test(event)
            case NodeStateChanged() | NodeTurnStarted() | NodeTurnFinished():
                self._turn(event)
            case _:
                pass

    def _stop(self, event: LiveStopped) -> None:
        self._stopped = event
        for status in self.nodes.values():
            status.stop(seconds_of(event.at))

    def _turn(self, event: NodeStateChanged | NodeTurnStarted | NodeTurnFinished) -> None:
        status = self._of(event.node)
        match event:
            case NodeStateChanged():
                if status.state is not event.state:
                    status.since = seconds_of(event.at)
                status.state, status.reason, status.until = event.state, event.reason, event.until
            case NodeTurnStarted():
                status.tests_failing.clear()
            case NodeTurnFinished():
                status.turn(event, seconds_of(event.at))

    def _test(self, event: TestFinished) -> None:
        owner = self.nodes.get(self.owners.get(event.node, event.node))
        if owner is None:
            return
        owner.tests_failing.pop(event.node, None)
        if event.status.failed and event.message != INTERRUPTED:
            owner.tests_failing[event.node] = event.message[:_TEST_MESSAGE]

    def _keep(self, nodes: tuple[str, ...], at: float) -> None:
        """Have a status for these nodes and no other."""
        self.nodes = {node: self.nodes.get(node) or NodeStatus(node, since=at) for node in nodes}

    def _of(self, node: str) -> NodeStatus:
        return self.nodes.setdefault(node, NodeStatus(node, since=time.time()))

    def note_lags(self, found: Mapping[str, tuple[Lag, ...]], at: float | None = None) -> None:
        """Take what a plan found unread (`lag.lags`)."""
        with self._lock:
            for node, lag in found.items():
                if node in self.nodes:
                    self.nodes[node].read(lag, time.time() if at is None else at)
            self.revision += 1

    def to_json(self, at: float | None = None) -> StatusRecord:
        """Return the status as documented; times are seconds since 1970."""
        now = time.time() if at is None else at
        with self._lock:
            nodes = [status.to_json(now, self.stalled_after(node)) for node, status in self.nodes.items()]
            started, stopped, reloaded = self._started, self._stopped, self._reloaded
            return {
                "version": VERSION,
                "at": now,
                "run_id": started.run_id,
                "target": started.target,
                "pid": started.pid,
                "started_at": seconds_of(started.at) if started.at else None,
                "stopped_at": seconds_of(stopped.at) if stopped else None,
                "stop_reason": stopped.reason if stopped else None,
                "session": self._session or None,
                "rejected": (reloaded.rejected if reloaded else "") or None,
                "health": overall([node["health"] for node in nodes]),
                "states": dict(Counter(node["state"] for node in nodes)),
                "nodes": nodes,
            }


def overall(found: list[str]) -> str:
    """Return the worst health of several."""
    return next((bad.value for bad in (Health.FAILED, Health.STALLED) if bad in found), Health.HEALTHY.value)


def healthy(status: StatusRecord) -> bool:
    """Whether a status, as JSON, has no node that failed or stalled, and the project as it is now is used."""
    return status["health"] == Health.HEALTHY and not status["rejected"]
