"""MessageReader of JSON on a socket, and the descriptors that come with the first bytes of a line."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

# A request is a command line with its environment; an answer a record of status.
LONGEST = 4 * 1024 * 1024
_MOST_FILES = 4
_CHUNK = 64 * 1024


class MalformedError(Exception):
    """What came is not a line of JSON with an object, or it is too long."""


class MessageReader:
    """What has been received of a socket, as lines.

    Attributes:
        files: descriptors that came and were not taken.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()
        self.files: list[int] = []

    @property
    def partial(self) -> bool:
        """Whether the beginning of a line was received."""
        return bool(self._received)

    def receive(self, flags: int = 0) -> bool:
        """Receive what is there; False: the other end has closed it.

        Raises:
            OSError: the connection is broken, or has nothing (BlockingIOError), or not in time (TimeoutError).
            MalformedError: a line is too long, or too many descriptors came.
        """
        # Received descriptors are close-on-exec (PEP 446, and MSG_CMSG_CLOEXEC in CPython's recv_fds).
        data, files, message_flags, _ = socket.recv_fds(self._connection, _CHUNK, _MOST_FILES, flags)
        self.files += files
        if len(self.files) > _MOST_FILES or message_flags & socket.MSG_CTRUNC:
            raise MalformedError("too many descriptors")
        self._received += data
        if len(self._received) > LONGEST and b"\n" not in self._received:
            raise MalformedError(f"a line is longer than {LONGEST} bytes")
        return bool(data)

    def next(self) -> dict[str, Any] | None:
        """Return the next complete line; None: there is none yet.

        Raises:
            MalformedError: it is not a JSON object.
        """
        end = self._received.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MalformedError("not JSON") from error
        if not isinstance(value, dict):
            raise MalformedError("not a JSON object")
        return value

    def take_files(self) -> tuple[int, ...]:
        """Take the descriptors that came: who takes them closes them."""
        taken, self.files = tuple(self.files), []
        return taken

    def close_files(self) -> None:
        """Close the descriptors that nobody took."""
        for descriptor in self.take_files():
            os.close(descriptor)


def send(connection: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send a line.

    Raises:
        OSError: the other end has left, or does not read (TimeoutError).
    """
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if files:
        sent = socket.send_fds(connection, [data], list(files))
        data = data[sent:]
    connection.sendall(data)
