"""The end of `engine start` in bounded time, whatever its threads wait for.

Runs are asked to end, and a moment later Java is killed: a micro-batch that is cut off is repeated by the next run,
exactly once. What still waits then (a broker, a lock, a full compile) is left, and the process ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.spark.jvm import kill_all

# Runs end by themselves in this time, and Spark closes.
GRACE_SECONDS = 1.5
# Then the process ends, counted from the request too.
LEAVE_SECONDS = 3.0
_EACH_SECONDS = 0.2


@contextmanager
def bounded_end(stop: threading.Event, leave: Callable[[], None]) -> Iterator[None]:
    """Bound the time from a request to stop to the end of the process; `leave` ends it, from a thread."""
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(stop, ended, leave), name="bounded-end", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        # The process has to report it.
        ended.set()
        raise
    # Not the end of the process yet: Python's own, such as that of clients of a broker, may take its time.
    if not stop.is_set():
        ended.set()


def _watch(stop: threading.Event, ended: threading.Event, leave: Callable[[], None]) -> None:
    stop.wait()
    begin = time.monotonic()
    if ended.wait(GRACE_SECONDS):
        return
    while time.monotonic() - begin < LEAVE_SECONDS:
        # Again and again: a run may have been about to start it.
        kill_all()
        if ended.wait(_EACH_SECONDS):
            return
    leave()
