"""Giving memory that is no longer used back to the system, as a program that runs for days should."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache

# Large blocks are always of their own, so that they go back when they are free: by default the limit rises with them.
_SETTINGS = {"MALLOC_ARENA_MAX": (-8, 2), "MALLOC_MMAP_THRESHOLD_": (-3, 128 * 1024)}


def release_unused_memory() -> None:
    """Collect what refers to itself, and return free pages; where the C library cannot, they stay with the process."""
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


def limit_malloc_arenas() -> None:
    """Have the C library keep free memory in few pieces; call it before the threads of a program that runs for days.

    By default each thread may have an arena (measured with 16: 31 MB free between 43 MB in use, and 10 MB more with
    each 1,000 turns). Source: mallopt(3); MALLOC_ARENA_MAX of the environment stays.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, (parameter, value) in _SETTINGS.items():
            if name not in os.environ:
                mallopt(parameter, value)


@cache
def _trim() -> Callable[[int], int] | None:
    with suppress(OSError, AttributeError):
        malloc_trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return malloc_trim
    return None
