"""`LiveStatus`: what `engine start` is doing, as a fold of its events in constant memory per node.

Its JSON form (`to_json`) is documented in docs/status-json.md. `version` grows if a key changes its meaning or goes;
keys may be added without that.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
    SinkFinished,
    Status,
    TestFinished,
)
from engine.live.lag import Lag
from engine.live.node_status import Health, NodeStatus, StallRule
from engine.live.status_record import VERSION, NodeRecord, StatusRecord
from engine.live.turn_history import seconds_of
from engine.node_ids import SINK

STALLED_AFTER = 300.0
# When a node counts as stalled, by its id.
StallRules = Callable[[str], StallRule]
_TEST_MESSAGE = 500
_TESTS = "tests."
# Clocks are read one after the other, and are set by some milliseconds now and then.
_LEAST_SLEEP = 2.0


@dataclass(slots=True)
class Clock:
    """The time: `wall` in seconds since 1970, `awake` in seconds since some moment, without those of sleep."""

    wall: Callable[[], float] = time.time
    awake: Callable[[], float] = time.monotonic
    _ahead: float | None = field(default=None)

    def slept(self) -> float:
        """Return for how long the machine has slept since the last call, or by how much the clock was set."""
        ahead = self.wall() - self.awake()
        seconds = ahead - (ahead if self._ahead is None else self._ahead)
        self._ahead = ahead
        return seconds if abs(seconds) >= _LEAST_SLEEP else 0.0


def usual_rule(_: str) -> StallRule:
    return StallRule(STALLED_AFTER)


class LiveStatus:
    """The status of one process; events come from one thread at a time, readers from any.

    Attributes:
        revision: grows with each change.
        owners: the model that each test is of, by their ids; a test of none counts for itself.
        kept: what an earlier process knew of the nodes of a target, by id (`NodeStatus.persistent_record`).
    """

    def __init__(
        self,
        owners: Mapping[str, str] | None = None,
        *,
        stall_rules: StallRules = usual_rule,
        clock: Clock | None = None,
        restored_nodes: Callable[[str], Mapping[str, Mapping[str, Any]]] = lambda _: {},
    ) -> None:
        self.owners: Mapping[str, str] = dict(owners or {})
        self.nodes: dict[str, NodeStatus] = {}
        # Those of deleted models, too.
        self._all: dict[str, NodeStatus] = {}
        self.revision = 0
        self.stall_rules = stall_rules
        self._clock = clock or Clock()
        self._restored_nodes = restored_nodes
        self._restored: Mapping[str, Mapping[str, Any]] = {}
        self._lock = threading.RLock()
        self._started = LiveStarted("", "", (), 0, "")
        self._stopped: LiveStopped | None = None
        self._reloaded: ProjectReloaded | None = None
        self._session = ""

    def add(self, event: Event, at: float | None = None) -> None:
        """Fold an event in; `at` is its time where it has none."""
        with self._lock:
            now = self._now(at)
            self.revision += 1
            self._add(event, now)

    def _now(self, at: float | None) -> float:
        """The time; what counts time learns of the machine's sleep before anything else."""
        if at is not None:
            return at
        now = self._clock.wall()
        if slept := self._clock.slept():
            for status in self._all.values():
                status.progress.slept(slept, now)
        return now

    def _add(self, event: Event, at: float) -> None:
        match event:
            case LiveStarted():
                self._started, self._stopped = event, None
                self._restored = self._restored_nodes(event.target)
                self._keep(event.nodes, seconds_of(event.at), begins=True)
            case LiveStopped():
                self._stop(event)
            case ProjectReloaded():
                self._reloaded = event
                self._keep(event.nodes or tuple(self.nodes), seconds_of(event.at))
            case SessionClosed():
                self._session = "closed"
            case ModelStarted():
                self._session = "open"
                self._status_of(event.node).kind = event.kind
                self._status_of(event.node).relation = event.relation
            case BatchCommitted():
                self._status_of(event.node).batch(event, at)
            case ModelFinished() | SinkFinished():
                self._finished(event, seconds_of(event.at) if event.at else at)
            case TestFinished():
                self._test(event)
            case NodeStateChanged() | NodeTurnStarted() | NodeTurnFinished():
                self._turn(event)
            case _:
                pass

    def _finished(self, event: ModelFinished | SinkFinished, at: float) -> None:
        status = self._status_of(event.node)
        if isinstance(event, SinkFinished):
            status.delivery(event, at)
        else:
            status.model(event, at)

    def _stop(self, event: LiveStopped) -> None:
        self._stopped = event
        for status in self.nodes.values():
            status.stop(seconds_of(event.at))

    def _turn(self, event: NodeStateChanged | NodeTurnStarted | NodeTurnFinished) -> None:
        status, at = self._status_of(event.node), seconds_of(event.at)
        match event:
            case NodeStateChanged():
                status.change(event, at)
            case NodeTurnStarted():
                status.begin(event, at)
            case NodeTurnFinished():
                status.turn(event, at)

    def _test(self, event: TestFinished) -> None:
        owner = self.nodes.get(self.owners.get(event.node, event.node))
        # A test that did not run says nothing: it fails until it passes.
        if owner is None or event.message == INTERRUPTED or event.status is Status.SKIPPED:
            return
        owner.tests_failing.pop(event.node, None)
        if event.status.failed:
            owner.tests_failing[event.node] = event.message[:_TEST_MESSAGE]

    def _keep(self, nodes: tuple[str, ...], at: float, *, begins: bool = False) -> None:
        """Show these nodes and no other, and failing tests that there still are.

        A node that is added while the process runs begins again: what it had to do in an earlier life is over.
        """
        re_added = {node for node in nodes if node not in self.nodes and (node in self._all or not begins)}
        self.nodes = {node: self._all.get(node) or self._new(node, at) for node in nodes}
        for node in re_added:
            self.nodes[node].begin_again(at)
        for status in self.nodes.values():
            removed_tests = [test for test in status.tests_failing if self.owners and test not in self.owners]
            for test in removed_tests:
                del status.tests_failing[test]

    def _status_of(self, node: str) -> NodeStatus:
        """The status of a node; one that is not kept running any more may end its turn, and is not shown."""
        status = self._all.get(node) or self._new(node, self._clock.wall())
        if not self._started.nodes:
            self.nodes[node] = status
        return status

    def _new(self, node: str, at: float) -> NodeStatus:
        status = self._all[node] = NodeStatus(node, since=at)
        status.restore(self._restored.get(node, {}))
        return status

    def to_keep(self) -> tuple[str, dict[str, dict[str, Any]]]:
        with self._lock:
            now = self._now(None)
            nodes = {node: status.persistent_record(now, self.stall_rules(node)) for node, status in self._all.items()}
            return self._started.target, nodes

    def note_lags(self, lags_by_node: Mapping[str, tuple[Lag, ...]], at: float | None = None) -> None:
        with self._lock:
            now = self._now(at)
            for node, lag in lags_by_node.items():
                if node in self.nodes:
                    self.nodes[node].read(lag, now)
            self.revision += 1

    def to_json(self, at: float | None = None) -> StatusRecord:
        """Return the status as documented; times are seconds since 1970."""
        with self._lock:
            now = self._now(at)
            nodes = [self._node(status, now) for status in self.nodes.values()]
            models = [node for node in nodes if node["tests_of"] is None and not node["node"].startswith(SINK)]
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
                "rejected": (reloaded.rejection if reloaded else "") or None,
                "health": overall(node["health"] for node in nodes),
                "states": dict(Counter(node["state"] for node in models)),
                "healths": dict(Counter(node["health"] for node in models)),
                "nodes": nodes,
            }

    def _node(self, status: NodeStatus, at: float) -> NodeRecord:
        """A node as JSON; what fails in the tests of a model is shown once, at the model."""
        record = status.to_json(at, self.stall_rules(status.node))
        tested = self.nodes.get(status.node.removeprefix(_TESTS)) if status.node.startswith(_TESTS) else None
        if tested is not None and tested.tests_failing:
            record["health"], record["last_error"], record["last_error_at"] = Health.HEALTHY.value, None, None
        return record


def overall(healths: Iterable[str]) -> str:
    lags_by_node = set(healths)
    return next((bad.value for bad in (Health.FAILED, Health.STALLED) if bad in lags_by_node), Health.HEALTHY.value)


def healthy(status: StatusRecord) -> bool:
    return status["health"] == Health.HEALTHY and not status["rejected"]
