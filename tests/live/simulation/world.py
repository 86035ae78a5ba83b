"""A world for `engine start`: a clock that can be turned, sources, a project that is edited, and turns that are played.

The loop, the queue, the status, the history, the alerts, the metrics and the page are the real ones. Played are the
clock, the polls of sources, the plan's facts, and what workers do in a turn.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from engine.api import Selection
from engine.api.keep_running import live_project
from engine.api.keep_running.live_edits import ProjectEdit
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.api.keep_running.live_turns import EndedTurn
from engine.compile.types.cron import Schedule
from engine.errors import Diagnostic
from engine.events import BatchCommitted, Event, ModelFinished, ModelStarted, NodeState, Status, TestFinished
from engine.live.node_status import StallRule
from engine.plan import Action, ActionKind, Plan
from engine.plan.actions.action import Unread
from engine.runtime.queue.live_nodes import LiveNode
from tests.live.simulation.truth import STALLED, Model, Truth

START = 1_800_000_000
TEST = "test.a_positive"
A, B, C, D = "model.a", "model.b", "model.c", "model.d"
NODES = {
    A: LiveNode(A, (A,), sources=frozenset({"source.s1"})),
    B: LiveNode(B, (B,), sources=frozenset({"source.s2"})),
    C: LiveNode(C, (C,), upstream=frozenset({A}), commit_triggers=frozenset({A})),
    D: LiveNode(D, (D,), schedule=Schedule.of("*/20 * * * *")),
    f"tests.{A}": LiveNode(
        f"tests.{A}", (TEST,), upstream=frozenset({A}), commit_triggers=frozenset({A}), min_seconds=30.0
    ),
}
READERS = {"source.s1": (A, D), "source.s2": (B,)}
EXPECTED = {NodeState.IDLE, NodeState.QUEUED, NodeState.RUNNING}
MESSAGES = ("the disk is full", "the state cannot be written", "no broker answers")


class Killed(BaseException):
    """The process ends at once."""


class World:
    """One schedule: a sequence of processes over one folder."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.now = self.awake = START + self.random.randrange(1200)
        self.truth = Truth({name: Model(scheduled=name == D, idle_from=self.now) for name in (A, B, C, D)})
        self.nodes = dict(NODES)
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.life = 0  # what belongs to an earlier process does not happen
        self.live: LiveProject
        self.arrived: set[str] = set()
        self.edit: Callable[[], ProjectEdit] | None = None
        self.weather = 0.0  # how probable it is that a turn fails
        self.tests_fail = False
        self.tested = True
        self.settled: Callable[[], None] = lambda: None
        self.log: list[str] = []
        self._number = 0

    # Time.

    def at(self, moment: int, act: Callable[[], None], *, of_process: bool = True) -> None:
        life = self.life
        self._number += 1

        def happen() -> None:
            if not of_process or life == self.life:
                act()

        heapq.heappush(self.agenda, (moment, self._number, happen))

    def pass_(self, seconds: int, *, asleep: bool = False) -> None:
        """Let time pass in which nothing happens."""
        self.now += seconds
        self.awake += 0 if asleep else seconds
        for name, model in self.truth.models.items():
            if asleep:
                model.sleeps(seconds)
            else:
                model.passes(seconds, self.now, expected=self.expected(name), queued=self.queued(name))

    def expected(self, name: str) -> bool:
        entry = self.live.queue.entries.get(name)
        return entry is not None and entry.state in EXPECTED

    def queued(self, name: str) -> bool:
        entry = self.live.queue.entries.get(name)
        return entry is not None and entry.state is NodeState.QUEUED

    def turn_clock(self) -> None:
        """Go to what happens next, in steps in which a poll can notice what has arrived."""
        busy = any(model.unread or model.running for model in self.truth.models.values())
        until = self.now + (5 if busy else 60)
        until = min(until, self.now + max(1, round(self.live.queue.wait(self.now, 60.0))))
        if self.agenda:
            until = min(until, max(self.agenda[0][0], self.now))
        if until > self.now:
            self.pass_(until - self.now)
        while self.agenda and self.agenda[0][0] <= self.now:
            heapq.heappop(self.agenda)[2]()

    def rule(self, name: str) -> StallRule:
        """When a node counts as stalled."""
        schedule = NODES[name].schedule
        if schedule is None:
            return StallRule(STALLED)

        def due_at(at: float) -> float:
            moment = schedule.after(datetime.fromtimestamp(at, UTC))
            return at if moment is None else moment.timestamp()

        return StallRule(STALLED, due_at, on_schedule=True)

    # The project and its sources.

    def arrive(self, source: str, count: int) -> None:
        self.arrived.add(source)
        for name in READERS[source]:
            self.truth.models[name].unread += [self.now] * count

    def decide(self, *_: Any) -> Plan:
        return Plan({one: self._action(one) for node in self.nodes.values() for one in node.run})

    def _action(self, node: str) -> Action:
        if node == TEST:
            return Action(node, ActionKind.TEST, unchanged=self.tested)
        model = self.truth.models[node]
        unread = Unread("input", "offsets", len(model.unread), oldest_at=min(model.unread, default=None))
        refusals = (Diagnostic("model-changed", "its old state does not fit"),) if model.needs_edit else ()
        return Action(node, ActionKind.RESUME, ("unread input",), refusals, (unread,), unchanged=not model.unread)

    # Turns.

    def submit(self, _: Any, __: Any, node: LiveNode, number: int, ___: Any) -> None:
        begun = self.now
        if node.id.startswith("tests."):
            self.at(self.now + self.random.randint(1, 5), lambda: self._tests(node, number, begun))
            return
        model = self.truth.models[node.id]
        model.running = True
        self.emit(ModelStarted(node.id, 1, 1, "streaming_table", f"lake.{node.id}"))
        fails = self.random.random() < self.weather
        at = self.now + (self.random.randint(400, 900) if self.random.random() < 0.04 else self.random.randint(1, 3))
        batches = 0 if fails or not model.unread else self.random.randint(1, 4)
        done: list[bool] = []
        for number_ in range(batches):
            self.at(at, lambda batch=number_: done.append(self._batch(node.id, batch, last=batch == batches - 1)))
            at += self.random.randint(1, 20)
        self.at(at, lambda: self._end(node, number, begun, done, fails=fails))

    def _batch(self, name: str, number: int, *, last: bool) -> bool:
        model, draw = self.truth.models[name], self.random
        read = len(model.unread) if last else draw.randint(0, len(model.unread))
        del model.unread[:read]
        late, bad = (draw.randint(0, read) if draw.random() < 0.2 else 0 for _ in range(2))
        out = read if draw.random() < 0.6 else 0
        for key, more in (("rows_in", read), ("rows_out", out), ("late", late), ("bad", bad), ("batches", 1)):
            model.sums[key] += more
        model.bad_at = [(at, count) for at, count in model.bad_at if at > self.now - 3600] + [(self.now, bad)]
        model.reason = f"reason {self.now % 7}" if bad else model.reason
        model.progress(self.now)
        if out:
            model.last_commit = self.now
            if name == A:
                self.truth.models[C].unread.append(self.now)
                self.tested = False
        self.emit(
            BatchCommitted(
                node=name, batch_id=number, watermark=None, snapshot_id=None, seconds=1.0, rows_in=read,
                rows_out=out, late=late, bad_records={"input": bad} if bad else {},
                bad_reasons={"input": model.reason} if bad else {},
            )
        )  # fmt: skip
        return out > 0

    def _end(self, node: LiveNode, number: int, begun: int, done: list[bool], *, fails: bool) -> None:
        model = self.truth.models[node.id]
        model.running = False
        model.sums["turns"] += 1
        message = self.random.choice(MESSAGES) if fails else ""
        needs_edit = fails and self.random.random() < 0.1
        if fails:
            model.failed(message, self.now)
            model.needs_edit = needs_edit
        else:
            model.good()
            model.progress(self.now)
        status = Status.ERROR if fails else Status.SUCCESS if done else Status.UNCHANGED
        self.emit(
            ModelFinished(
                status, message, node=node.id, index=1, total=1, kind="streaming_table", relation="lake",
                seconds=1.0, at=self.text(), batches=len(done),
            )
        )  # fmt: skip
        code = "model-changed" if needs_edit else "kafka-unreachable"
        findings = (Diagnostic(code, message),) if fails else ()
        ended = EndedTurn(
            node.id, status, float(self.now - begun), findings, message, more=bool(model.unread) and not fails,
            committed=any(done),
        )  # fmt: skip
        self.live._inbox.put(lambda: self.live._ended(ended, number))

    def _tests(self, node: LiveNode, number: int, begun: int) -> None:
        failing = self.tests_fail
        status, message = (Status.FAIL, "3 rows") if failing else (Status.PASS, "")
        self.truth.models[A].tests = {TEST: message} if failing else {}
        self.tested = not failing
        self.emit(TestFinished(TEST, 1, 1, status, 1.0, 3 * failing, message, self.text()))
        ended = EndedTurn(node.id, status, float(self.now - begun), (), message)
        self.live._inbox.put(lambda: self.live._ended(ended, number))

    def emit(self, event: Event) -> None:
        self.live.emit(event)

    def text(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).isoformat(timespec="seconds")

    # A process.

    @contextmanager
    def played(self) -> Iterator[None]:
        """Have the loop use this world."""
        clock = SimpleNamespace(time=lambda: float(self.now), monotonic=lambda: float(self.awake))
        polls = SimpleNamespace(follow=lambda *_: None, changed=self._changed, close=lambda: None)
        pool = SimpleNamespace(submit=self.submit, shutdown=lambda **_: None)
        follower = SimpleNamespace(pause=0.0, paths=None, edited=lambda: ("a.sql",) if self.edit else ())
        played = {
            "time": clock, "now": self.text, "SourcePolls": lambda *_: polls,
            "ThreadPoolExecutor": lambda *_, **__: pool, "FileFollower": lambda *_: follower,
            "live_nodes": lambda *_: dict(self.nodes), "read_edit": lambda *_: self._take_edit(),
            "release_unused_memory": lambda: None, "limit_malloc_arenas": lambda: None,
        }  # fmt: skip
        with patch.multiple(live_project, **played):
            yield

    def _changed(self, _: float) -> list[str]:
        arrived, self.arrived = sorted(self.arrived), set()
        return arrived

    def _take_edit(self) -> ProjectEdit:
        edit, self.edit = self.edit, None
        assert edit is not None
        return edit()

    def new_process(self) -> LiveProject:
        self.life += 1
        project: Any = SimpleNamespace(root=self.folder, decide=self.decide)
        self.live = LiveProject(project, Selection(), LiveOptions(threads=2, maintain_after=0))
        self.live._inbox = Inbox(self)  # type: ignore[assignment]
        return self.live

    def compiled(self) -> Any:
        target = SimpleNamespace(name="dev", place=lambda _: None)
        return SimpleNamespace(manifest=None, project=SimpleNamespace(paths=None), target=target)


class Inbox:
    """What other threads ask of the loop; a wait lets the world's time pass."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items: deque[Callable[[], None]] = deque()

    def put(self, item: Callable[[], None]) -> None:
        self._items.append(item)

    def get(self, **_: Any) -> Callable[[], None]:
        if not self._items:
            self._world.settled()
            self._world.turn_clock()
        if not self._items:
            raise Empty
        return self._items.popleft()
