"""One line of JSON on a socket: a request, or the answer to it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

LONGEST = 1024 * 1024
_CHUNK = 64 * 1024


class MalformedError(Exception):
    """What came is not a line of JSON with an object, or it is too long."""


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a line.

    Raises:
        OSError: the other end has left, or does not read (TimeoutError).
    """
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def receive(connection: socket.socket, seconds: float) -> dict[str, Any]:
    """Receive a line.

    Raises:
        OSError: the other end has left, or it did not come in time (TimeoutError).
        MalformedError: it is too long, or not a JSON object.
    """
    until = time.monotonic() + seconds
    received = bytearray()
    while (end := received.find(b"\n")) < 0:
        if len(received) > LONGEST:
            raise MalformedError(f"a line is longer than {LONGEST} bytes")
        connection.settimeout(max(0.001, until - time.monotonic()))
        chunk = connection.recv(_CHUNK)
        if not chunk:
            raise ConnectionResetError("the other end has left")
        received += chunk
    try:
        value = json.loads(received[:end])
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON") from error
    if not isinstance(value, dict):
        raise MalformedError("not a JSON object")
    return value
