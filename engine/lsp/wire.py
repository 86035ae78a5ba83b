"""The editor's end of stdin and stdout, kept away from everything else in the process."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO


def taken() -> tuple[BinaryIO, BinaryIO]:
    """Return streams of stdin and stdout, and point these elsewhere: at nothing, and at stderr.

    A thread waits in a read of stdin while compilations fork. A child of `multiprocessing` closes its `sys.stdin`, and
    would wait for the lock of that thread without end. What anything prints must not be between two messages.
    """
    reads, writes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return reads, writes
