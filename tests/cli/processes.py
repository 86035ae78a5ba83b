"""Real processes of the command line: started, stopped, and what they leave behind."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.lab import REPOSITORY

_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2


def arguments(root: Path, *command: str) -> list[str]:
    """The arguments of a process that runs a command."""
    return [sys.executable, "-m", "engine", *command, "--project-dir", str(root)]


def engine(
    root: Path, *command: str, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    streams = {} if "stdout" in more else {"stdout": subprocess.PIPE}
    return subprocess.run(
        arguments(root, *command),
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
        check=False,
        timeout=300,
        **{**streams, **more},
    )


def obey_modes() -> None:
    """Let the modes of files count for the process that is started, also if it is root's."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def start(root: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command as a terminal does: with the processes that it starts in one group."""
    return subprocess.Popen(
        arguments(root, *command),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in its background lets them, and what they start, ignore Ctrl-C.
        preexec_fn=_hear,  # noqa: PLW1509 - no thread of the tests holds a lock that it needs
    )


def _hear() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they did; one that has just ended has none."""
    try:
        below = children(pid)
    except OSError:
        return []
    return [*below, *(other for child in below for other in descendants(child))]


def wait(until: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait until something is so, while a process runs."""
    for _ in range(3000):
        if until():
            return
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def read_until(terminal: int, word: bytes, seconds: float = 60) -> bytes:
    """Return what a terminal shows until there is a word, or for a while."""
    shown, end = b"", time.monotonic() + seconds
    while word not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown
