"""Locks for a JVM that was started before they were taken.

A JVM inherits the locks of its run when it starts (`lock`). One that lives longer than a run cannot: for each run a
shell of two lines inherits them instead. It lets go when the run has ended; if the process that runs is killed, it
holds them until the JVM is gone, which may still commit.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

from engine.secrets import without_secrets

# Its input is the process that runs, its output a pipe of which the JVM holds the other end and into which nobody
# writes: reading it ends when the JVM has ended. (A shell has numbers for the descriptors 0 to 9 only.)
_SCRIPT: Final = "read -r line && exit\nread -r line <&1"
_SHELL: Final = "/bin/sh"


class LockKeeper:
    """Keeps the locks of the runs of one JVM, which inherits the descriptor `inherited`; `started` closes it here."""

    def __init__(self) -> None:
        self._alive, self.inherited = os.pipe()

    def started(self) -> None:
        """The JVM has its end of the pipe: from now on it alone has it."""
        os.close(self.inherited)
        self.inherited = -1

    def close(self) -> None:
        for descriptor in (self._alive, self.inherited):
            if descriptor >= 0:
                os.close(descriptor)
        self._alive = self.inherited = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def keeping(self, locks: Sequence[int]) -> Iterator[None]:
        """Keep locks during the block, and until the JVM ends if this process ends in it; the caller closes them."""
        with subprocess.Popen(
            [_SHELL, "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=self._alive,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(locks),
            cwd="/",
            env=without_secrets(),
            # Ctrl-C is for the process that runs.
            start_new_session=True,
        ) as shell:
            try:
                yield
            finally:
                # One that was killed has let go already.
                try:
                    shell.communicate(b"\n")
                except BrokenPipeError:
                    shell.wait()
