"""A process of its own for what renders a project's templates: one that takes too much ends, and this one does not.

The limits are those of `engine.jinja.template_limits`. It is forked, also from programs with several threads: it runs
Python code of this package, Jinja and sqlglot alone, writes to no stream and no log (its records come here), and ends
without cleaning up. Where fork is not safe (not Linux) the work is done in this process, with limits only on what a
template prints, its calls and its rounds of loops.
"""

from __future__ import annotations

import gc
import logging
import mmap
import os
import pickle
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn, TypeVar

from engine.errors import Location, ProjectError, SetupError
from engine.jinja import template_limits
from engine.jinja.template_limits import NAME_BYTES, confine

T = TypeVar("T")
STOPS = (signal.SIGINT, signal.SIGTERM)
# A record of the log goes as one datagram; longer ones are cut.
_LONGEST_RECORD = 50_000


def run_confined(work: Callable[..., T], *arguments: Any) -> T:
    """Return, or raise, what some work does in a process with limits.

    Raises:
        ProjectError: `template-too-large`: a template took all time that there is for one.
        SetupError: `process-ended`: the process ended before it was done.
    """
    if sys.platform != "linux":
        return work(*arguments)
    ours, theirs = Pipe(duplex=False)
    records, of_child = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with mmap.mmap(-1, NAME_BYTES) as page, ours, records:
        with theirs, of_child, blocked_signals(), warnings.catch_warnings():
            # Python 3.12 warns of threads; the head of this file says what is done about them.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
            if not pid:
                # While it holds these too, its answer waits for a reader even when the process that asked is gone.
                ours.close()
                records.close()
                _serve(theirs, of_child, page, work, arguments)
        status = None
        try:
            succeeded, value = _receive_answer(ours, records)
        except (EOFError, OSError):
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        finally:
            if status is None:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if status is not None:
            raise process_ended_error(status, page)
    if not succeeded:
        raise value
    result: T = value
    return result


def process_ended_error(status: int, page: mmap.mmap, node: str | None = None) -> ProjectError | SetupError:
    """The error of a process that ended early; `status` is its exit code, of a signal the negative number."""
    file = page[:].rstrip(b"\0").decode("utf-8", "replace")
    if status == -signal.SIGXCPU:
        return ProjectError.from_diagnostics(d.at(Location(file), node) for d in template_limits.too_long().diagnostics)
    ending = f"signal {-status}" if status < 0 else f"exit code {status}"
    at = f" at the model '{node}'" if node else f" at the file '{file}'" if file else ""
    hint = "Run the command again; a machine that runs out of memory kills processes with signal 9."
    return SetupError("process-ended", f"a process that compiled models ended{at} ({ending})", hint, node=node)


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Let no signal reach a new process before it has handlers of its own; what came meanwhile comes after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive_answer(ours: Connection, records: socket.socket) -> tuple[bool, Any]:
    """What the process sends; its log records go where those of this process go."""
    records.setblocking(False)
    while True:
        ready = wait([ours, records])
        with suppress(BlockingIOError):
            while data := records.recv(2 * _LONGEST_RECORD):
                record = logging.makeLogRecord(pickle.loads(data))  # noqa: S301 - from our own process
                logging.getLogger(record.name).handle(record)
        if ours in ready:
            result: tuple[bool, Any] = ours.recv()
            return result


def _serve(
    line: Connection, records: socket.socket, page: mmap.mmap, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> NoReturn:
    """Do the work, send what it gives, and end; an interrupt is for the process that waits."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        confine(page)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        # What came with the fork stays as it is: what has a destructor belongs to the other process.
        gc.freeze()
        _log_to(records)
        try:
            result = (True, work(*arguments))
        except Exception as error:  # noqa: BLE001 - raised again in the process that waits
            error.add_note(traceback.format_exc())
            result = (False, error)
        with suppress(OSError):
            line.send(result)
    finally:
        os._exit(0)


class _Records(logging.Handler):
    def __init__(self, line: socket.socket) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        level_fields = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname}
        place = {"pathname": record.pathname, "lineno": record.lineno, "created": record.created}
        with suppress(OSError):
            self._line.send(pickle.dumps({**level_fields, **place, "msg": record.getMessage()[:_LONGEST_RECORD]}))


def _log_to(records: socket.socket) -> None:
    """Send all records of this process to the other: the locks of its handlers may be held by threads of the other."""
    root = logging.getLogger()
    root.handlers = [_Records(records)]
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.handlers = []
            logger.propagate = True
