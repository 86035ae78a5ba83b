"""Giving memory that is no longer used back to the system, as a program that runs for days should."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from functools import cache


def give_back() -> None:
    """Collect what refers to itself, and return free pages; where the C library cannot, they stay with the process."""
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """`malloc_trim` of glibc."""
    with suppress(OSError, AttributeError):
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return found
    return None
