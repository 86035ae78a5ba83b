"""`engine start` in place of `build` in a history: kept running until nothing is left to do, in the shared session."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.api import Project, Selection
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.api.one_session import alone
from engine.api.requests import runnable
from engine.cli.console.log_level import LogLevel
from engine.cli.console.printing import JsonPrinter
from engine.cli.log_output import logged
from engine.errors import EngineError
from engine.events import Diagnosed, NodeState
from tests.lab import Lab, LabSession, Result

_QUIET_SECONDS = 0.6
_SECONDS = 300.0


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


def keep_running(lab: Lab) -> Result:
    """Run `engine start` until nothing is due; the code is that of a build: 1 if something failed or was rejected."""
    assert lab.capsys is not None
    lab.capsys.readouterr()
    out = JsonPrinter()
    project = Project(lab.root)
    code = 0
    try:
        compiled = project.compile()
        out.diagnostics(compiled.manifest.diagnostics)
        if compiled.manifest.errors:
            return _result(lab, 1)
        nodes = runnable(compiled.manifest, project.select(compiled.manifest, Selection()).nodes, "build")
        live = LiveProject(project, Selection(), LiveOptions(threads=2, reload=False, maintain_after=3), (out.event,))
        assert lab.session is not None
        live._session = SharedSession(lab.session)  # type: ignore[assignment]
        failures: list[BaseException] = []

        def follow() -> None:
            try:
                live.follow(compiled, nodes)
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                failures.append(error)

        with alone(), logged(out, LogLevel.ERROR, (lab.root / "start.log").open("ab")):
            thread = threading.Thread(target=follow, name="start")
            thread.start()
            quiet = _wait_until_quiet(live, thread)
            live.stop("nothing is due")
            thread.join(60)
        assert quiet, [(e.node.id, e.state, e.reason) for e in live.queue.entries.values()]
        if failures:
            raise failures[0]
        ends = {entry.state for entry in live.queue.entries.values()}
        code = int(bool(ends & {NodeState.FAILED, NodeState.BACKING_OFF, NodeState.WAITING}))
    except EngineError as error:
        for found in error.diagnostics:
            out.event(Diagnosed(found))
        code = 1
    return _result(lab, code)


def _wait_until_quiet(live: LiveProject, thread: threading.Thread) -> bool:
    """Wait until no node runs or is due, for a while; one that backs off has had its turn."""
    deadline, since = time.monotonic() + _SECONDS, time.monotonic()
    while time.monotonic() < deadline and thread.is_alive():
        entries = list(live.queue.entries.values())
        busy = not entries or any(e.state in {NodeState.RUNNING, NodeState.QUEUED} for e in entries)
        busy = busy or not live.planned
        since = time.monotonic() if busy else since
        if time.monotonic() - since > _QUIET_SECONDS:
            return True
        time.sleep(0.05)
    return not thread.is_alive()


def _result(lab: Lab, code: int) -> Result:
    assert lab.capsys is not None
    captured = lab.capsys.readouterr()
    return Result(code, captured.out, captured.err)
