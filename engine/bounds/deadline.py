"""A socket's answers until a deadline: a timeout of a socket counts from one byte to the next, a deadline does not."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable
from typing import Any, Final

_LEAST_SECONDS: Final = 0.05


def seconds_left(timeout: float, deadline: float) -> float:
    """Return seconds to wait for the next bytes, by a silence `timeout` and a `deadline` of the monotonic clock.

    Raises:
        TimeoutError: the deadline has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("its answer takes too long")
    return max(_LEAST_SECONDS, min(timeout, left))


class TimedReader(io.RawIOBase):
    """What a socket receives; each read waits for the seconds that are left at most."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        super().__init__()
        self._sock, self._left = sock, left
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close it; the socket stays open."""
        self._raw.close()
        super().close()
