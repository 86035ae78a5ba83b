"""`engine start` in place of `build` in a history: it keeps running from step to step, in the shared session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from engine.api import Project, Selection
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.api.one_session import alone
from engine.api.requests import runnable
from engine.cli.console.log_level import LogLevel
from engine.cli.console.printing import JsonPrinter
from engine.cli.log_output import logged
from engine.errors import EngineError
from engine.events import Diagnosed, Event, NodeState, ProjectReloaded
from engine.runtime.queue import live_nodes
from tests.histories.difference import DifferenceError
from tests.histories.steps import LANDING
from tests.lab import Lab, LabSession, Result

# Longer than the pause between two polls of folders.
_QUIET_SECONDS = 0.6
_SECONDS = 300.0
# A turn that failed so often does not heal by itself.
_MOST_FAILURES = 3
# What happens to a project while it is kept running, and, in others, while it runs and begins no turn.
_WHILE_IT_RUNS = (*LANDING, "odd-name")
_WHILE_PAUSED = ("edit", "kill", "rollback-in-build", "compact-in-build", "rollback", "compact", "expire", "rename",
                 "foreign-column", "foreign-tag", "widen")  # fmt: skip
_ENDED_BADLY = {NodeState.FAILED, NodeState.BACKING_OFF, NodeState.WAITING}


class SharedSession:
    """The session of the tests, in the place of a `WarmSession`: each turn has one of its own in the same JVM."""

    is_open = False
    java_memory = 0

    def __init__(self, session: LabSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._running = 0

    @contextmanager
    def run(self, *_: object, **__: object) -> Iterator[Any]:
        from engine.spark.internals.run_sessions import release, run_session

        with self._lock:
            session, family = run_session(self._session.spark)
            self._running += 1
        yield session
        with self._lock:
            release(family, connections=self._running == 1)
            self._running -= 1

    def cancel_jobs(self) -> None:
        """Turns end by themselves."""

    def end_java(self) -> None:
        """Other tests use it."""

    def close(self) -> None:
        """Other tests use it."""


@dataclass(slots=True)
class KeptRunning:
    """One process after the other: what fails for good ends one, and so does each third step.

    Attributes:
        lab: the project, whose folder may move while nothing runs.
        processes: how many were started.
    """

    lab: Lab
    processes: int = 0
    steps: int = 0
    _live: LiveProject | None = None
    _thread: threading.Thread | None = None
    _open: ExitStack = field(default_factory=ExitStack)
    _out: JsonPrinter = field(default_factory=JsonPrinter)
    _failures: list[BaseException] = field(default_factory=list)
    _paused: bool = False
    _rejected: bool = False

    def prepare(self, operation: str) -> None:
        """Have the process be as a step needs it: running, running without turns, or ended."""
        self.steps += 1
        if self.steps % 3 == 0 or operation not in (*_WHILE_IT_RUNS, *_WHILE_PAUSED):
            self.stop()
        elif self._live is not None and operation in _WHILE_PAUSED:
            live = self._live
            self._ask(lambda: live.queue.pause(tuple(live.queue.entries)))
            self._until(lambda: not live.queue.running())
            self._paused = True

    def settle(self) -> Result:
        """Run until nothing is due; the code is that of a build: 1 if something failed or was rejected."""
        assert self.lab.capsys is not None
        if self._live is None:
            self.lab.capsys.readouterr()
        try:
            good = self._settled()
        except EngineError as error:
            for found in error.diagnostics:
                self._out.event(Diagnosed(found))
            good = False
        if not good:
            # Nothing is to move while tables are compared.
            self.stop()
        captured = self.lab.capsys.readouterr()
        return Result(0 if good else 1, captured.out, captured.err)

    def stop(self) -> None:
        if self._live is not None and self._thread is not None:
            self._live.stop("the step needs it")
            self._thread.join(60)
            assert not self._thread.is_alive()
        self._open.close()
        self._live = self._thread = None
        self._paused = False

    def _settled(self) -> bool:
        if self._live is None and not self._start():
            return False
        live = self._live
        assert live is not None
        if self._paused:
            self._paused, self._rejected = False, False
            self._ask(lambda: live._reload(()))
            if self._rejected:
                # As of a rejected build nothing has run.
                return False
            self._ask(lambda: live.queue.resume(tuple(live.queue.entries), time.time()))
        self._wait(_QUIET_SECONDS)
        # What only a plan sees, which comes once a minute otherwise.
        self._ask(live._plan)
        self._wait(_QUIET_SECONDS / 3)
        return not {entry.state for entry in live.queue.entries.values()} & _ENDED_BADLY

    def _start(self) -> bool:
        """Start a process; False: the project has errors."""
        project = Project(self.lab.root)
        compiled = project.compile()
        self._out.diagnostics(compiled.manifest.diagnostics)
        if compiled.manifest.errors:
            return False
        nodes = runnable(compiled.manifest, project.select(compiled.manifest, Selection()).nodes, "build")
        options = LiveOptions(threads=2, reload=False, maintain_after=3)
        live = LiveProject(project, Selection(), options, (self._out.event, self._hear))
        assert self.lab.session is not None
        live._session = SharedSession(self.lab.session)  # type: ignore[assignment]
        self._failures.clear()

        def follow() -> None:
            try:
                live.follow(compiled, nodes)
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                self._failures.append(error)

        self._open.enter_context(alone())
        self._open.enter_context(logged(self._out, LogLevel.ERROR, (self.lab.root / "start.log").open("ab")))
        # Tests run at most twice a minute otherwise.
        self._open.enter_context(patch.object(live_nodes, "_TESTS_EVERY", 0.0))
        self._live, self._thread = live, threading.Thread(target=follow, name="start")
        self.processes += 1
        self._thread.start()
        self._until(lambda: live.planned)
        return True

    def _hear(self, event: Event) -> None:
        if isinstance(event, ProjectReloaded):
            self._rejected = bool(event.rejected)

    def _ask(self, act: Callable[[], object]) -> None:
        """Have the thread that decides do something, and wait for it."""
        assert self._live is not None
        done = threading.Event()

        def acted() -> None:
            act()
            done.set()

        self._live._inbox.put(acted)
        self._until(done.is_set)

    def _wait(self, seconds: float) -> None:
        """Wait until no node runs, is due or is tried again, for some time."""
        since = time.monotonic()

        def quiet() -> bool:
            nonlocal since
            assert self._live is not None
            entries = list(self._live.queue.entries.values())
            busy = any(
                entry.state in {NodeState.RUNNING, NodeState.QUEUED}
                or (entry.state is NodeState.BACKING_OFF and entry.failures < _MOST_FAILURES)
                for entry in entries
            )
            since = time.monotonic() if busy else since
            return time.monotonic() - since > seconds

        self._until(quiet)

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not condition():
            if self._failures:
                raise self._failures[0]
            assert self._thread is not None
            entries = self._live.queue.entries.values() if self._live is not None else ()
            shown = [(entry.node.id, entry.state, entry.reason) for entry in entries]
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise DifferenceError(f"start does not come to rest: {shown}")
            time.sleep(0.02)
