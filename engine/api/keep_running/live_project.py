"""`engine start`: the models of a project kept up to date by bounded runs in one warm session, until it is stopped.

One thread decides (`follow`): it polls sources, makes a plan now and then, reads edits, and gives turns to workers. A
turn is a run of one model as `build -s MODEL` would do it. See docs/design/019-keep-running.md.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from engine.api.keep_running.live_edits import read_edit
from engine.api.keep_running.live_sinks import LiveSinks, current_snapshot, run_sink
from engine.api.keep_running.live_turns import EndedTurn, Standby, TurnContext, maintain_turn, run_turn
from engine.api.keep_running.source_polls import SourcePolls
from engine.api.requests import THREADS, Selection
from engine.api.unused_memory import limit_malloc_arenas, release_unused_memory
from engine.api.warm_session import WarmSession
from engine.errors import EngineError
from engine.events import (
    INTERRUPTED,
    UP_TO_DATE,
    BatchCommitted,
    Diagnosed,
    Emit,
    Event,
    LiveStarted,
    LiveStopped,
    MaintenanceFinished,
    NodeState,
    NodeStateChanged,
    NodeTurnFinished,
    NodeTurnStarted,
    ProjectReloaded,
    SessionClosed,
    SessionRestarted,
    Status,
    now,
)
from engine.live.lag import Lag
from engine.node_ids import SINK, TESTS, shown_name
from engine.plan.actions.action import ActionKind
from engine.project.followed_files import FileFollower
from engine.runtime.queue.live_nodes import LiveNode, live_nodes
from engine.runtime.queue.node_queue import Entry, NodeQueue, may_recover

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled
    from engine.plan import Action, Plan

_log = logging.getLogger("engine.api")

# Spark shares its cores between models instead of serving them in the order in which they came.
FAIR = {"spark.scheduler.mode": "FAIR"}
# 0.4 ms of processor for 60 folders. After a minute without a turn, half as often.
_POLL_SECONDS = 0.25
_QUIET_SECONDS = 60.0
_PLAN_SECONDS = 60.0
# A plan may take this part of the time.
_PLAN_SHARE = 0.01
_LOOK_SECONDS = 2.0
_CANCEL_SECONDS = 0.5
_MEMORY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a project is kept running.

    `turn_seconds`: after which a turn ends between two micro-batches. `reload`: edits are followed; else `reload` is
    called. `idle_seconds`: without a turn after which Java ends; None: never. `maintain_after`: commits after which a
    table is maintained, in a quiet moment; 0: never. `java_memory`: bytes above which Java is restarted between turns.
    """

    threads: int = THREADS
    turn_seconds: float = 20.0
    reload: bool = True
    idle_seconds: float | None = 600.0
    maintain_after: int = 100
    java_memory: int | None = None


@dataclass(slots=True)
class LiveProject:
    """A project that is kept running; `follow` returns when `stop` was called.

    `listeners`: get each event, one at a time. `beat`: when the thread that decides has turned last, by the monotonic
    clock.
    """

    project: Project
    selection: Selection
    options: LiveOptions
    listeners: tuple[Emit, ...] = ()
    queue: NodeQueue = field(default_factory=NodeQueue)
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    beat: float = field(default_factory=time.monotonic)
    _inbox: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)
    _stop: threading.Event = field(default_factory=threading.Event)
    _reason: str = ""
    _stop_reported: bool = False
    _compiled: Compiled | None = None
    _nodes: list[str] = field(default_factory=list)
    _live_sinks: LiveSinks = field(default_factory=LiveSinks)
    _polls: SourcePolls | None = None
    _session: WarmSession = field(init=False)
    _planned: bool = False
    _last_turn: float = 0.0
    _memory_checked: float = 0.0
    _too_large: bool = False
    # The newest plan, and how much had happened when it was made.
    _newest_plan: tuple[int, Plan] | None = None
    _event_count: int = 0
    _emitting: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        limit_malloc_arenas()
        self.queue.maintain_after = self.options.maintain_after
        self._session = WarmSession(lambda reason: self.emit(SessionRestarted(reason, now())), FAIR)

    def emit(self, event: Event) -> None:
        with self._emitting:
            # What a micro-batch has read is no longer unread.
            self._event_count += isinstance(event, BatchCommitted)
            for listener in self.listeners:
                listener(event)

    # Called by other threads and by handlers of signals.

    def stop(self, reason: str) -> None:
        """End: running turns are abandoned, what they have committed stays."""
        self._reason = self._reason or reason
        self._stop.set()
        # What waits for something to happen wakes up.
        self._inbox.put(lambda: None)

    @property
    def stopping(self) -> threading.Event:
        return self._stop

    def pause(self, nodes: Sequence[str]) -> None:
        """Begin no turn of some nodes, or of all if none is named, until they are resumed."""
        self._inbox.put(lambda: self.queue.pause(nodes or tuple(self.queue.entries)))

    def resume(self, nodes: Sequence[str]) -> None:
        self._inbox.put(lambda: self.queue.resume(nodes or tuple(self.queue.entries), time.time()))

    def reload(self) -> None:
        self._inbox.put(lambda: self._reload(()))

    def plan_now(self) -> Plan:
        """Return the plan of all nodes, recomputed if something has happened since the last one.

        Raises EngineError: it cannot be made.
        """
        event_count, newest = self._event_count, self._newest_plan
        if newest is not None and newest[0] == event_count:
            return newest[1]
        if self._compiled is None:
            raise TypeError
        plan = self.project.decide(self._compiled, self._nodes)
        self._newest_plan = event_count, plan
        return plan

    def sink_lags(self) -> Mapping[str, tuple[Lag, ...]]:
        """Return what sinks have not delivered, read again if something has happened since, or after a minute."""
        return self._live_sinks.lags(self._compiled, self._event_count) if self._compiled is not None else {}

    @property
    def compiled(self) -> Compiled | None:
        return self._compiled

    @property
    def planned(self) -> bool:
        """Whether the first plan has been made, so that what is not due has nothing to do."""
        return self._planned

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self.queue.entries)

    # The thread that decides.

    def follow(self, compiled: Compiled, nodes: Sequence[str], sinks: Sequence[str] = ()) -> None:
        """Keep some nodes and sinks of the compiled project up to date until `stop`; the caller holds the session.

        Raises EngineError: a catalog cannot be read at the start.
        """
        self._use(compiled, nodes, sinks, ())
        follower = FileFollower(self.project.root, compiled.project.paths)
        self.emit(LiveStarted(self.run_id, compiled.target.name, self.nodes, os.getpid(), now()))
        self._plan(first=True)
        self._planned = True
        pool = ThreadPoolExecutor(self.options.threads, thread_name_prefix="turn")
        try:
            self._loop(pool, follower)
        finally:
            self._end(pool)
            self.report_stopped()

    def report_stopped(self) -> None:
        if not self._stop_reported:
            self._stop_reported = True
            self.emit(LiveStopped(self._reason or "an error", now()))

    def _loop(self, pool: ThreadPoolExecutor, follower: FileFollower) -> None:
        last_poll = last_look = time.monotonic()
        last_plan, pause = last_poll, _PLAN_SECONDS
        self._last_turn = last_poll
        while not self._stop.is_set():
            self.beat = moment = time.monotonic()
            poll_interval = _POLL_SECONDS if moment - self._last_turn < _QUIET_SECONDS else 2 * _POLL_SECONDS
            if moment - last_poll >= poll_interval:
                last_poll = moment
                self._poll()
            if self.options.reload and moment - last_look >= max(_LOOK_SECONDS, follower.pause):
                last_look = moment
                if files := follower.edited():
                    self._reload(files)
                    if self._compiled is not None:
                        follower.paths = self._compiled.project.paths
            if moment - last_plan >= pause:
                self._plan()
                if self._last_turn > last_plan:
                    # A turn leaves holes between what stays, some 10 kB in all.
                    release_unused_memory()
                last_plan = time.monotonic()
                pause = max(_PLAN_SECONDS, (last_plan - moment) / _PLAN_SHARE)
            self.queue.tick(time.time())
            self._give_turns(pool)
            self._report_state_changes()
            self._close_idle_session(moment)
            try:
                poll = max(last_poll + poll_interval - time.monotonic(), 0.0)
                self._inbox.get(timeout=self.queue.wait(time.time(), poll))()
            except Empty:
                continue

    def _give_turns(self, pool: ThreadPoolExecutor) -> None:
        if self._too_large:
            return
        while self.queue.running() < self.options.threads and (entry := self.queue.next(time.time())) is not None:
            moment = time.time()
            waited = moment - (entry.due_since or moment)
            self.queue.begin_turn(entry, moment)
            self._report_state_changes()
            standby = self._standby(entry)
            if standby is None:
                self.emit(NodeTurnStarted(entry.node.id, entry.turns, entry.reason, waited, now()))
            if self._compiled is None:
                raise TypeError
            pool.submit(self._turn, self._compiled, entry.node, entry.turns, standby)
        self._maintain(pool)

    def _standby(self, entry: Entry) -> Standby | None:
        if (holder := entry.standby) is None:
            return None
        node, number = entry.node.id, entry.turns

        def begin(took_over: bool) -> None:
            reason = f"took over from {holder.process}" if took_over else "tried again"
            self.emit(NodeTurnStarted(node, number, reason, 0.0, now()))
            if took_over:
                self._inbox.put(lambda: self.queue.took_over(node))

        return Standby(holder, begin)

    def _maintain(self, pool: ThreadPoolExecutor) -> None:
        if self._compiled is None or self.queue.running() >= self.options.threads:
            return
        if (worn_table := self.queue.next_maintenance(time.time())) is not None:
            self.queue.begin_maintenance(worn_table)
            pool.submit(self._maintain_table, self._compiled, worn_table.node.id)

    def _report_state_changes(self) -> None:
        for change in self.queue.take_changes():
            until = (
                datetime.fromtimestamp(change.retry_at, UTC).isoformat(timespec="seconds") if change.retry_at else ""
            )
            self.emit(NodeStateChanged(change.node, change.state, change.reason, now(), until, change.took_over))

    def _poll(self) -> None:
        if self._polls is not None:
            for source in self._polls.changed(time.monotonic()):
                self._event_count += 1
                self.queue.new_input(source, time.time())

    def _plan(self, *, first: bool = False) -> None:
        """What only a plan sees: rewritten files, tables that others have changed, a failure that is over."""
        if self._compiled is None:
            return
        try:
            # Tests that a plan finds passed have passed on what the table was before.
            tested = {model: current_snapshot(self._compiled, model) for model in self._live_sinks.tested_models}
            plan = self.project.decide(self._compiled, self._nodes)
        except EngineError as error:
            if first:
                raise
            _log.warning("the plan failed", exc_info=True)
            for finding in error.diagnostics:
                self.emit(Diagnosed(finding))
            return
        for entry in list(self.queue.entries.values()):
            actions = [action for node in entry.node.run if (action := plan.actions.get(node)) is not None]
            if any(action.refusals for action in actions):
                self._reject(entry, actions)
            elif entry.node.id.startswith(SINK):
                self._schedule_sink(entry)
            else:
                self._schedule_work(entry, actions)
                model = entry.node.id.removeprefix(TESTS)
                if model in tested and all(action.unchanged for action in actions):
                    self._live_sinks.note_tested(model, tested[model])

    def _schedule_sink(self, entry: Entry) -> None:
        """Have a sink run that has not run yet, or whose table another process has changed."""
        if self._compiled is None:
            raise TypeError
        sink = self._live_sinks.sinks[entry.node.id]
        model = self.queue.entries.get(sink.model)
        if model is not None and model.standby is not None:
            # The process that writes the table delivers it, too.
            return
        if entry.succeeded is None:
            self.queue.mark_due(sink.id, "first turn", time.time())
        elif self._live_sinks.lag(self._compiled, sink).count:
            self.queue.mark_due(sink.id, f"{shown_name(sink.model)} committed", time.time())

    def _schedule_work(self, entry: Entry, actions: Sequence[Action]) -> None:
        """Have a node run that the plan finds work for; the first plan also decides what has been built before.

        Once built, a node with a schedule waits for its times, whatever a plan finds.
        """
        if entry.state is NodeState.FAILED:
            self.queue.heal(entry.node.id, time.time())
        elif entry.standby is not None:
            # What reads a table that another process has written can run.
            exists = all(action.kind is not ActionKind.CREATE for action in actions)
            entry.succeeded = entry.succeeded or exists or None
        elif all(action.unchanged for action in actions):
            if entry.succeeded is None and entry.state is NodeState.IDLE:
                entry.succeeded = True
                self.emit(NodeStateChanged(entry.node.id, NodeState.IDLE, UP_TO_DATE, now()))
        elif entry.succeeded is None or (entry.node.schedule is None and any(a.unchanged is False for a in actions)):
            self.queue.mark_due(entry.node.id, _first_reason(actions), time.time())

    def _reject(self, entry: Entry, actions: Iterable[Action]) -> None:
        if entry.state in {NodeState.FAILED, NodeState.RUNNING, NodeState.BACKING_OFF}:
            return
        finding = next(refusal for action in actions for refusal in action.refusals)
        self.emit(Diagnosed(finding))
        self.queue.fail(entry.node.id, time.time(), finding.message, heals=may_recover([finding]))

    def _reload(self, files: tuple[str, ...]) -> None:
        edit = read_edit(self.project, self.selection, self._compiled)
        errors = [finding for finding in edit.rejected if finding.is_error]
        for finding in errors:
            self.emit(Diagnosed(finding))
        if edit.compiled is not None:
            self._use(edit.compiled, edit.nodes, edit.sinks, edit.changed)
        rejected = (errors[0].message if errors else "rejected") if edit.rejected else ""
        self.emit(ProjectReloaded(files, edit.changed, rejected, now(), self.nodes, edit.unused))

    def _use(self, compiled: Compiled, nodes: Sequence[str], sinks: Sequence[str], changed: Sequence[str]) -> None:
        manifest = compiled.manifest
        live_nodes_by_id = live_nodes(manifest, nodes, sinks)
        due = {node.id for node in live_nodes_by_id.values() if set(node.run) & set(changed)}
        self._compiled, self._nodes = compiled, list(nodes)
        self._live_sinks.use(manifest, live_nodes_by_id)
        # The newest plan is of other nodes.
        self._event_count += 1
        self.queue.replace(live_nodes_by_id, due, time.time())
        place = compiled.target.place(self.project.root)
        self._polls = self._polls or SourcePolls(place, self._note_new_input)
        sources = {source for node in live_nodes_by_id.values() for source in node.sources}
        self._polls.follow(manifest, sorted(sources), place)

    def _note_new_input(self, source: str) -> None:
        def note() -> None:
            self._event_count += 1
            self.queue.new_input(source, time.time())

        self._inbox.put(note)

    def _close_idle_session(self, moment: float) -> None:
        """Give Java back after some time without a turn, or between two turns if it has grown too large."""
        if not self._session.is_open:
            return
        if moment - self._memory_checked >= _MEMORY_SECONDS:
            self._memory_checked = moment
            self._session.bound_log()
        if self._memory_checked == moment and self.options.java_memory is not None:
            self._too_large = self._session.java_memory > self.options.java_memory
        if self.queue.running():
            self._last_turn = moment if self.queue.busy() else self._last_turn
        elif self._too_large:
            self._close_session(f"it used more than {(self.options.java_memory or 0) >> 20} MB")
        elif self.options.idle_seconds is not None and moment - self._last_turn > self.options.idle_seconds:
            self._close_session("idle")

    def _close_session(self, reason: str) -> None:
        self._session.close()
        self._too_large = False
        self.emit(SessionClosed(reason, now()))

    def _end(self, pool: ThreadPoolExecutor) -> None:
        self._stop.set()
        if self._polls is not None:
            self._polls.close()
        shutdown = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, name="ending")
        shutdown.start()
        while shutdown.is_alive():
            self._session.cancel_jobs()
            shutdown.join(_CANCEL_SECONDS)
        self._session.close()

    # Workers.

    def _turn(self, compiled: Compiled, node: LiveNode, number: int, standby: Standby | None) -> None:
        begin = time.monotonic()
        ended = EndedTurn(node.id, Status.ERROR, begin, message="internal error")
        try:
            if node.id.startswith(SINK):
                ended = run_sink(self._turn_context(), compiled, node, self._live_sinks)
            else:
                ended = self._run_model(compiled, node, standby)
        finally:
            # Whatever happened to a turn: one that has not ended would keep its node and a worker indefinitely.
            self._inbox.put(lambda: self._ended(ended, number))

    def _run_model(self, compiled: Compiled, node: LiveNode, standby: Standby | None) -> EndedTurn:
        """Run a model or the tests of one, which pass on what the table is when they begin."""
        model = node.id.removeprefix(TESTS)
        has_sinks = node.id != model and model in self._live_sinks.tested_models
        snapshot = current_snapshot(compiled, model) if has_sinks else None
        ended = run_turn(self._turn_context(), compiled, node, self._nodes, standby)
        if has_sinks and not ended.status.failed and ended.message != INTERRUPTED:
            self._live_sinks.note_tested(model, snapshot)
        return ended

    def _maintain_table(self, compiled: Compiled, node: str) -> None:
        begin = time.monotonic()
        message, failed = "internal error", True
        try:
            message, failed = maintain_turn(self._turn_context(), compiled, node, self._nodes)
        finally:
            self._inbox.put(lambda: self._maintenance_ended(node, time.monotonic() - begin, message, failed=failed))

    def _turn_context(self) -> TurnContext:
        def committed(node: str) -> None:
            self._inbox.put(lambda: self._committed(node))

        return TurnContext(self.project, self.options.turn_seconds, self._stop, self._session, self.emit, committed)

    def _ended(self, ended: EndedTurn, number: int) -> None:
        moment = time.time()
        # What another process has written is no longer unread.
        self._event_count += 1
        if ended.is_shown:
            self._last_turn = time.monotonic()
            message = ended.message if ended.status.failed else ""
            self.emit(NodeTurnFinished(ended.node, number, ended.status, ended.seconds, ended.more, message, now()))
        if ended.holder is not None:
            self.queue.stand_by(ended.node, moment, ended.holder, up_to_date=not ended.locked)
        elif ended.status.failed and ended.message != INTERRUPTED:
            self.queue.fail(ended.node, moment, ended.message, heals=may_recover(ended.findings))
        else:
            self.queue.succeed(ended.node, moment, more=ended.more)
            if ended.node.startswith(TESTS) and ended.message != INTERRUPTED:
                self.queue.trigger(ended.node, f"{shown_name(ended.node)} passed", moment)
        if ended.committed:
            self._committed(ended.node)

    def _committed(self, node: str) -> None:
        """A node has rows to read: what reads it need not wait for the end of its turn."""
        moment = time.time()
        self.queue.committed(node, moment)
        if not node.startswith(TESTS):
            self.queue.mark_due(f"{TESTS}{node}", f"{shown_name(node)} committed", moment)

    def _maintenance_ended(self, node: str, seconds: float, message: str, *, failed: bool) -> None:
        self._last_turn = time.monotonic()
        self.emit(MaintenanceFinished(node, seconds, message, failed, now()))
        self.queue.maintained(node, time.time())


def _first_reason(actions: Iterable[Action]) -> str:
    for action in actions:
        if action.unchanged is False and action.reasons:
            return str(action.reasons[0])
    return "first turn"
