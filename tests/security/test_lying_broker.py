"""A server that a connection calls a Kafka broker need not be one: the client without Java gives up in time and in bounds.

What it cannot be told is left to Spark's client, whose errors `tests/kafka/test_failures.py` shows for a real session.
"""

from __future__ import annotations

import random
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.sources.kafka import native_client
from engine.sources.kafka.native_client import ask

pytestmark = pytest.mark.slow

pytest.importorskip("confluent_kafka")

Script = Callable[[socket.socket], None]
MOST = 150_000_000


def silent(line: socket.socket) -> None:
    line.recv(4096)
    time.sleep(30)


def closing(line: socket.socket) -> None:
    line.recv(4096)


def other_bytes(line: socket.socket) -> None:
    line.recv(4096)
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" * 10)
    time.sleep(30)


def huge(line: socket.socket) -> None:
    line.recv(4096)
    line.sendall(struct.pack("!I", 0x7FFFFFFF))
    while True:
        line.sendall(b"\0" * 65536)


def nearly_too_large(line: socket.socket) -> None:
    asked = line.recv(4096)
    line.sendall(struct.pack("!I", 99_000_000) + asked[8:12])
    while True:
        line.sendall(b"\xff" * 65536)


def dripping(line: socket.socket) -> None:
    asked = line.recv(4096)
    for byte in struct.pack("!I", 1000) + asked[8:12] + b"\0" * 1000:
        line.sendall(bytes([byte]))
        time.sleep(0.3)


def counts_that_lie(line: socket.socket) -> None:
    """Each answer has the length of its body, and a list of two billion."""
    while asked := line.recv(4096):
        body = asked[8:12] + b"\0\0" + b"\x7f\xff\xff\xff" * 20
        line.sendall(struct.pack("!I", len(body)) + body)


def noise(line: socket.socket) -> None:
    chance = random.Random(1)
    while asked := line.recv(4096):
        body = asked[8:12] + chance.randbytes(chance.randrange(400))
        line.sendall(struct.pack("!I", len(body)) + body)


SCRIPTS = (silent, closing, other_bytes, huge, nearly_too_large, dripping, counts_that_lie, noise)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_what_is_no_broker_is_not_known_this_way(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_client, "_PATIENCE_SECONDS", 1.0)
    reached = threading.Event()

    def served(line: socket.socket) -> None:
        with suppress(OSError), line:
            reached.set()
            script(line)

    def listen() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=served, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=listen, daemon=True).start()
        before, begin = resident(), time.monotonic()
        assert ask(f"127.0.0.1:{server.getsockname()[1]}", {}, {"read_committed": ["t"]}) is None
        assert reached.is_set()
        assert time.monotonic() - begin < 15
        assert resident() - before < MOST
        server.shutdown(socket.SHUT_RDWR)
