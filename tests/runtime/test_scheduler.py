"""How a run of nodes ends when a handler of signals raises."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from engine.events import Status
from engine.runtime.scheduler import execute

pytestmark = pytest.mark.slow


class EndedError(Exception):
    """What an orchestrator's handler raises."""


def test_a_query_that_starts_after_the_interruption_is_ended_too():
    """As a Spark job that was not there yet when all jobs were cancelled."""
    interrupted, cancelled = threading.Event(), threading.Event()
    calls: list[int] = []

    def work(node: str, failed: str | None) -> Status:
        assert failed is None
        time.sleep(0.2)  # the run waits for its nodes by then
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        assert interrupted.wait(60)
        # The job starts only now; it ends when jobs are cancelled from here on.
        before = len(calls)
        while len(calls) == before and not cancelled.wait(0.01):
            pass
        return Status.ERROR

    def interrupt() -> None:
        calls.append(1)
        interrupted.set()

    def end(*_: object) -> None:
        raise EndedError

    previous = signal.signal(signal.SIGUSR1, end)
    spare = threading.Timer(5, cancelled.set)
    spare.start()
    try:
        with pytest.raises(EndedError):
            execute(["a"], {"a": set()}, work, threads=1, fail_fast=False, interrupt=interrupt)
        assert not cancelled.is_set()
    finally:
        spare.cancel()
        signal.signal(signal.SIGUSR1, previous)
