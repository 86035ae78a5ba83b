"""A request as a handler sees it: its arguments, what came with it, and whether its client still wants an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any


class Request(dict[str, Any]):
    """The arguments of a request.

    Attributes:
        pid: of the client's process.
        files: descriptors that came with it; they are closed when the request has ended.
        cancelled: set when the client has left, or asks the handler to end.
        signal: the signal with which it asks; 0 if it has left.
    """

    def __init__(self, arguments: Mapping[str, Any], pid: int, files: tuple[int, ...] = ()) -> None:
        super().__init__(arguments)
        self.pid = pid
        self.files = files
        self.cancelled = threading.Event()
        self.signal = 0
        self._callbacks: list[Callable[[int], None]] = []
        self._lock = threading.Lock()

    def on_cancel(self, callback: Callable[[int], None]) -> None:
        """Call a function with the signal each time that the client asks the handler to end, from another thread."""
        with self._lock:
            self._callbacks.append(callback)
            late = self.cancelled.is_set()
        if late:
            callback(self.signal)

    def cancel(self, signal: int) -> None:
        """Ask the handler to end."""
        with self._lock:
            self.signal = signal
            self.cancelled.set()
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback(signal)
