"""What the C library does with memory that is free, in a process with many threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import ctypes, threading
from engine.api.unused_memory import limit_malloc_arenas
{0}
kept, ready = [], threading.Barrier(9)
def hold():
    ready.wait()
    kept.append([bytes(5000) for _ in range(100)])
    ready.wait()
threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads:
    thread.start()
ready.wait()
ready.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


def arenas(code: str, **environment: str) -> int:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(code)], capture_output=True, check=True, env={**os.environ, **environment}
    ).stdout
    return len(re.findall(rb"<heap nr=", said))


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_threads_share_two_arenas_unless_the_environment_says_otherwise() -> None:
    assert arenas("") > 2
    assert arenas("limit_malloc_arenas()") == 2
    assert arenas("limit_malloc_arenas()", MALLOC_ARENA_MAX="4") == 4
