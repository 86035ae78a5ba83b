"""The listener of `engine start`: status, history and log are kept from one stream of events.

`on_event` returns within microseconds and raises nothing. Once a second a thread writes what has changed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from engine.errors import EngineError
from engine.events import (
    INTERRUPTED,
    Diagnosed,
    Emit,
    Event,
    LiveStarted,
    LiveStopped,
    MaintenanceFinished,
    NodeState,
    NodeStateChanged,
    NodeTurnFinished,
    ProjectReloaded,
    SessionClosed,
    now,
)
from engine.live import status_file
from engine.live.lag import Lag
from engine.live.status import LiveStatus, StallRules, usual_rule
from engine.live.status_record import StatusRecord
from engine.live.turn_history import TurnHistory
from engine.node_ids import shown_name

_EACH = 1.0
_LAGS_EACH = 5.0
_LINES = 500

Lags = Callable[[], Mapping[str, tuple[Lag, ...]]]
Look = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class Observer:
    """What reads the events of one process.

    Attributes:
        beat: returns when the thread that decides has turned last, by the monotonic clock.
        log: the last lines: time (UTC), level, text.
        problem: why something could not be written or asked the last time; empty if it could.
    """

    target_dir: Path
    status: LiveStatus
    history: TurnHistory
    beat: Callable[[], float] = time.monotonic
    log: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=_LINES))
    problem: str = ""
    readers: list[Emit] = field(default_factory=list)

    def on_event(self, event: Event) -> None:
        self.status.add(event)
        self.history.add(event)
        if (line := line_of(event)) is not None:
            self.log.append(line)
            self.history.add_line(line)
        for reader in self.readers:
            reader(event)

    def node_ids(self) -> list[str]:
        return [node["node"] for node in self.status.to_json()["nodes"]]

    @property
    def alive(self) -> bool:
        """Whether the thread that decides turns."""
        return status_file.is_fresh(self.beat())

    def write(self, status: StatusRecord) -> None:
        try:
            status_file.write(self.target_dir, status)
            self.problem = ""
        except EngineError as error:
            self.problem = str(error)
        self.history.keep(*self.status.to_keep())
        self.history.flush()


@contextmanager
def observing(
    target_dir: Path,
    owners: Mapping[str, str],
    lags: Lags | None = None,
    checks: tuple[Look, ...] = (),
    *,
    stall_rules: StallRules = usual_rule,
    beat: Callable[[], float] = time.monotonic,
) -> Iterator[Observer]:
    """Observe a process while the block runs; its `on_event` is the listener.

    Args:
        target_dir: folder of artifacts; `live/` in it is used.
        owners: ids of the models that tests are of, by the ids of tests.
        lags: what is unread by node id (`engine.live.lag.lags` of a plan), called every five seconds in a thread.
        looks: called with the status, as JSON, once a second (alerts).
        stall_rules: when a node counts as stalled, by its id.
        beat: returns when the thread that decides has turned last, by the monotonic clock.

    Raises:
        UsageError: another process is observed in this folder.
        ProjectError: `target-link`, `target-unwritable`.
    """
    with ExitStack() as stack:
        lock = stack.enter_context(status_file.hold(target_dir))
        history = TurnHistory(target_dir)
        status = LiveStatus(owners, stall_rules=stall_rules, restored_nodes=history.stored_nodes)
        observer = Observer(target_dir, status, history, beat)
        observer.log.extend(history.lines())
        stack.callback(observer.history.close)
        ended = threading.Event()
        thread = threading.Thread(
            target=_watch, args=(observer, lock, lags, checks, ended), name="engine-live-observer", daemon=True
        )
        thread.start()
        try:
            yield observer
        finally:
            ended.set()
            thread.join(10)
            observer.write(observer.status.to_json())


def _watch(
    observer: Observer, lock: BinaryIO, lags: Lags | None, checks: tuple[Look, ...], ended: threading.Event
) -> None:
    written_revision, asked_at, busy = -1, 0.0, 0.0
    while not ended.wait(_EACH):
        status_file.note_beat(lock, observer.beat())
        begin = time.monotonic()
        # A poll that takes long is asked less often.
        if lags is not None and begin - asked_at > max(_LAGS_EACH, 20 * busy):
            try:
                observer.status.note_lags(lags())
            except Exception as error:  # noqa: BLE001 - a reader of events stops nothing
                observer.problem = f"the unread input cannot be determined: {error}"
            asked_at = time.monotonic()
            busy = asked_at - begin
        revision = observer.status.revision
        if revision == written_revision and not checks:
            continue
        status = observer.status.to_json()
        if revision != written_revision:
            observer.write(status)
            written_revision = revision
        for check in checks:
            try:
                check(status)
            except Exception as error:  # noqa: BLE001 - likewise
                observer.problem = str(error)


def line_of(event: Event) -> tuple[str, str, str] | None:  # noqa: PLR0911 - one for each kind of event
    """Return an event as a line of the log: time (UTC), level, text; None if it is not worth one."""
    match event:
        case LiveStarted():
            return event.at, "info", f"started with {len(event.nodes)} nodes, target {event.target}"
        case NodeTurnFinished():
            text = f"{shown_name(event.node)}: {event.status.value} in {event.seconds:.2f} s"
            is_error = event.status.failed and event.message != INTERRUPTED
            return event.at, "error" if is_error else "info", f"{text}: {event.message}".rstrip(": ")
        case NodeStateChanged(state=NodeState.STANDBY) | NodeStateChanged(took_over=True):
            return event.at, "info", f"{shown_name(event.node)}: {event.state.value}: {event.reason}"
        case ProjectReloaded():
            changed = len(event.changed)
            text = event.rejection or f"project reloaded, {changed} node{'s' * (changed != 1)} changed"
            return event.at, "error" if event.rejected else "info", text
        case MaintenanceFinished():
            level = "error" if event.failed else "info"
            return event.at, level, f"{shown_name(event.node)}: maintenance: {event.message or 'nothing to do'}"
        case SessionClosed():
            return event.at, "info", f"Spark JVM shut down: {event.reason}"
        case LiveStopped():
            return event.at, "info", f"stopped: {event.reason}"
        case Diagnosed():
            return now(), event.diagnostic.level.value, event.diagnostic.message
        case _:
            return None
