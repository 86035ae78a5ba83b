"""Masking secrets in spark.log while Java writes it.

Java writes to the file itself: through a pipe of ours it would wait for this process, and lose its output with it. So
secrets are overwritten where they are, with as many asterisks. What is appended meanwhile stays where it is.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.secrets import secret_spans, secret_values

_EACH: Final = 1.0
_CHUNK: Final = 1 << 22
# A secret may begin in what was looked at before: a key in PEM has some thousand characters.
_OVERLAP: Final = 1 << 16
# Keeping the newest part of a log moves its bytes.
MOVES: Final = threading.Lock()


class LogMask:
    """Masks secrets in a log once a second, beginning with what it holds already, until `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked_at = 0
        self._values: tuple[str, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="engine-log-mask", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.mask()

    def mask(self) -> None:
        """Mask what is new; all of the log where secrets have become known since."""
        values = secret_values()
        with MOVES, suppress(OSError):
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode):
                    if values != self._values or status.st_size < self._looked_at:
                        self._looked_at = 0
                    mask_secrets(descriptor, max(0, self._looked_at - _OVERLAP), status.st_size)
                    self._looked_at, self._values = status.st_size, values
            finally:
                os.close(descriptor)

    def _work(self) -> None:
        while not self._ended.wait(_EACH):
            self.mask()


def mask_secrets(descriptor: int, begin: int, end: int) -> None:
    """Overwrite the secrets in a part of a file; line ends in them stay.

    Raises:
        OSError: the file cannot be read or written.
    """
    at = begin
    while at < end:
        data = os.pread(descriptor, min(_CHUNK, end - at), at)
        if not data:
            return
        text = data.decode("utf-8", "surrogateescape")
        for first, last in secret_spans(text):
            offset = len(text[:first].encode("utf-8", "surrogateescape"))
            hidden = text[first:last].encode("utf-8", "surrogateescape")
            os.pwrite(descriptor, bytes(byte if byte in b"\r\n" else ord("*") for byte in hidden), at + offset)
        if at + len(data) >= end:
            return
        at += max(len(data) - _OVERLAP, 1)
