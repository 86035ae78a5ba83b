"""A service in a process of its own, which ends when we do."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# Beside the process a shell waits for the end of its input, which comes when we are gone, however that was.
_BOUND_TO_US = ("sh", "-c", 'exec 3<&0; (cat <&3 >/dev/null; kill $$) & exec "$@" 3<&- </dev/null', "sh")
_STOP_SECONDS = 30.0


_given: set[int] = set()


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, another one at each call.

    It is below those that the system gives to connections: while a service restarts, one of them could take its port.
    """
    while True:
        port = secrets.choice(range(15_000, 32_000))
        if port in _given:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)
            return port


def start(command: Sequence[str], log: Path, folder: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a service, in this folder or another, and append what it writes to a log."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*_BOUND_TO_US, *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_until_ready(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path, seconds: float) -> None:
    """Wait for a service; one that does not start is ended, and the end of its log is in the error."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            stop(process, kill=True)
            raise RuntimeError(f"the service did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)


def stop(process: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    """End it: cleanly, or as a crash would."""
    process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()


def family(pid: int) -> list[int]:
    """A process and those that it started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found


@dataclass(slots=True)
class Service:
    """What runs in a process of its own, and can be stopped and started again."""

    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process, which runs."""
        assert self._process is not None
        return self._process.pid

    def stop(self, *, kill: bool = False) -> None:
        """End it: cleanly, or as a crash would."""
        if self._process is not None:
            stop(self._process, kill=kill)
            self._process = None
