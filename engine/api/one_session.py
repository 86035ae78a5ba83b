"""What a run has for itself: the process's one session, its target, and listeners that hear one event at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.events import Emit, Event

if TYPE_CHECKING:
    from engine.compile import Compiled, Target

_running = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """Hold the process's one session. Raises SetupError: `spark-session`: somebody has it."""
    if not _running.acquire(blocking=False):
        message = "this process already runs a build or tests, and has one Spark session at a time"
        raise SetupError("spark-session", message, "Wait until that has ended, or use another process.")
    try:
        yield
    finally:
        _running.release()


def session_target(compiled: Compiled, nodes: Sequence[str]) -> Target:
    """The target as a session for some nodes takes it: unit tests alone run on this machine."""
    if not all(node.startswith("unit_test.") for node in nodes):
        return compiled.target
    from engine.runtime.data_tests.unit_tests_first import local_target

    return local_target(compiled.target)


def one_at_a_time(*listeners: Emit) -> Emit:
    """All listeners, which never get two events at a time."""
    lock = threading.Lock()

    def emit(event: Event) -> None:
        with lock:
            for listener in listeners:
                listener(event)

    return emit


def ignore_event(_: Event) -> None: ...
