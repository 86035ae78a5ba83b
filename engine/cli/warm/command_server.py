"""Carry out commands of other processes in this one, with their output, environment, folder and signals.

One command runs at a time, in the main thread: only there Python takes signals. The descriptors of the client's
standard streams come with its request, so what the command prints goes straight to the client's terminal or pipe.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from engine.cli.warm.same_process import difference, version
from engine.control import Request

_LOOK_SECONDS = 1.0
TERMINATED = 128 + signal.SIGTERM


@dataclass(slots=True, eq=False)
class _Job:
    request: Request
    done: threading.Event = field(default_factory=threading.Event)
    code: int = 2


class CommandServer:
    """Commands that wait for the main thread of this process.

    Args:
        carry_out: carries out a command line and returns its exit code.
    """

    def __init__(self, carry_out: Callable[[Sequence[str]], int]) -> None:
        self._carry_out = carry_out
        self._version = version()
        self._environment = dict(os.environ)
        self._waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        # Held by whoever's command waits or runs.
        self._turn = threading.Lock()
        # Held while a signal is passed on, and while the job that may get one changes.
        self._signalling = threading.RLock()
        self._running: _Job | None = None
        self._main = threading.main_thread().ident or 0
        self.ended = threading.Event()

    def handle(self, request: Request) -> Iterator[Mapping[str, Any]]:
        """Answer a request `command`; `declined` says why the client must carry it out itself."""
        why = self._declined(request)
        if why or not self._turn.acquire(blocking=False):
            yield {"end": True, "declined": why or "another command is running"}
            return
        try:
            job = _Job(request)
            yield {"begun": True}
            request.on_cancel(lambda number: self._pass_on(job, number))
            self._waiting.put(job)
            while not job.done.wait(_LOOK_SECONDS):
                if self.ended.is_set() and self._running is not job:
                    return
            yield {"end": True, "code": job.code}
        finally:
            self._turn.release()

    def serve(self, idle_seconds: float, rest: Callable[[], None]) -> None:
        """Carry out commands until there was none for some seconds, or `ended` is set.

        Args:
            idle_seconds: since the last command ended.
            rest: called after each command.
        """
        last = time.monotonic()
        while not self.ended.is_set() and time.monotonic() - last < idle_seconds:
            with suppress(queue.Empty):
                job = self._waiting.get(timeout=_LOOK_SECONDS)
                self._run(job)
                rest()
                last = time.monotonic()
                if version() != self._version:
                    # Headrace was updated: commands no longer fit.
                    return

    def stop(self, *_: object) -> None:
        """The handler of this process's own signals, and the request `stop`: end, with the command that runs."""
        self.ended.set()
        with self._signalling:
            if self._running is not None:
                self._pass_on(self._running, signal.SIGTERM)

    def _declined(self, request: Request) -> str:
        if self.ended.is_set():
            return "the warm process is ending"
        if request.get("version") != self._version or version() != self._version:
            return "it is another version of Headrace or Python"
        if len(request.files) != 3:  # noqa: PLR2004 - standard input, output and error
            return "standard streams are missing"
        differs = difference(self._environment, request["environment"])
        return f"its environment differs: {differs}" if differs else ""

    def _pass_on(self, job: _Job, number: int) -> None:
        with self._signalling:
            if self._running is job:
                came = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
                signal.pthread_kill(self._main, came)

    def _run(self, job: _Job) -> None:
        """Carry out a command in the main thread."""
        from engine.cli.exits import INTERRUPTED, Terminated

        request = job.request
        own = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with _streams(request.files), _surroundings(self._environment, request):
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGTERM, _terminated)
                with self._signalling:
                    self._running = job
                if request.cancelled.is_set():
                    self._pass_on(job, request.signal)
                job.code = self._carry_out(request["arguments"])
                with self._signalling:
                    self._running = None
        except Terminated:
            job.code = TERMINATED
        except KeyboardInterrupt:
            job.code = INTERRUPTED
        finally:
            with self._signalling:
                self._running = None
            for number, handler in own.items():
                signal.signal(number, handler)
            job.done.set()


def _terminated(*_: object) -> None:
    from engine.cli.exits import Terminated

    raise Terminated


@contextmanager
def _streams(files: Sequence[int]) -> Iterator[None]:
    """Have the client's standard streams as those of this process while the block runs."""
    from engine.cli.console.safe_output import reset_streams

    kept = [os.dup(number) for number in range(3)]
    before = sys.stdin, sys.stdout, sys.stderr
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = open(0, encoding=before[0].encoding, errors=before[0].errors, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        open(number, "w", buffering=1 if os.isatty(number) or number == 2 else -1, encoding=stream.encoding,  # noqa: PLR2004, SIM115
             errors=stream.errors, closefd=False)
        for number, stream in ((1, before[1]), (2, before[2]))
    )  # fmt: skip
    reset_streams()
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = before
        for number, file in enumerate(kept):
            os.dup2(file, number)
            os.close(file)


@contextmanager
def _surroundings(own: Mapping[str, str], request: Request) -> Iterator[None]:
    """Have the client's folder, umask and environment while the block runs; what Spark has set here stays."""
    theirs: dict[str, str] = request["environment"]
    folder, umask = os.getcwd(), os.umask(request["umask"])  # noqa: PTH109
    _set(own, theirs)
    try:
        os.chdir(request["folder"])
        yield
    finally:
        os.umask(umask)
        os.chdir(folder)
        _set(theirs, own)


def _set(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    for name in before.keys() | after.keys():
        if before.get(name) == after.get(name):
            continue
        if name in after:
            os.environ[name] = after[name]
        else:
            os.environ.pop(name, None)
