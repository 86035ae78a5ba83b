"""A server that a target calls PostgreSQL need not be one: it ends in a diagnostic, whatever it sends or does not send."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.compile import Catalog
from engine.errors import SetupError
from engine.lake.clients import postgres_catalog
from engine.lake.clients.postgres_catalog import PostgresCatalog

pytestmark = pytest.mark.slow

pytest.importorskip("psycopg")

Script = Callable[[socket.socket], None]
SECONDS = 2.0


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of PostgreSQL's protocol, version 3."""
    return kind + struct.pack("!I", len(body) + 4) + body


def status(name: str, value: str) -> bytes:
    return message(b"S", f"{name}\0{value}\0".encode())


WELCOME = (
    message(b"R", struct.pack("!I", 0)) + status("server_version", "16.1") + status("client_encoding", "UTF8")
    + status("standard_conforming_strings", "on") + message(b"K", struct.pack("!II", 1, 2)) + message(b"Z", b"I")
)  # fmt: skip
COLUMNS = b"".join(name + b"\0" + struct.pack("!IHIhiH", 0, 0, 25, -1, -1, 0) for name in (b"s", b"n", b"m", b"k"))
DESCRIBED = message(b"1") + message(b"2") + message(b"T", struct.pack("!H", 4) + COLUMNS)


def row(*values: bytes) -> bytes:
    return message(b"D", struct.pack("!H", len(values)) + b"".join(struct.pack("!I", len(v)) + v for v in values))


def welcomed(line: socket.socket) -> None:
    """Take the login, and wait for the first question."""
    begin = line.recv(4096)
    while begin[4:8] in {struct.pack("!I", 80877103), struct.pack("!I", 80877104)}:
        line.sendall(b"N")
        begin = line.recv(4096)
    line.sendall(WELCOME)
    line.recv(65536)


def silent(line: socket.socket) -> None:
    welcomed(line)
    time.sleep(60)


def dripping(line: socket.socket) -> None:
    welcomed(line)
    line.sendall(DESCRIBED)
    for byte in row(b"s", b"x" * 1000, b"m", b"TABLE"):
        line.sendall(bytes([byte]))
        time.sleep(0.3)


def endless_rows(line: socket.socket) -> None:
    welcomed(line)
    line.sendall(DESCRIBED)
    while True:
        line.sendall(row(b"s", b"x" * 1000, b"file:///x", b"TABLE") * 100)


def endless_notices(line: socket.socket) -> None:
    welcomed(line)
    while True:
        line.sendall(message(b"N", b"SNOTICE\0Mhello\0\0") * 100)


def other_bytes(line: socket.socket) -> None:
    line.recv(4096)
    line.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 10)


def other_bytes_later(line: socket.socket) -> None:
    welcomed(line)
    line.sendall(b"\xff" * 100)


def few_columns(line: socket.socket) -> None:
    welcomed(line)
    described = message(b"T", struct.pack("!H", 1) + b"s\0" + struct.pack("!IHIhiH", 0, 0, 25, -1, -1, 0))
    end = message(b"C", b"SELECT 1\0") + message(b"Z", b"I")
    line.sendall(message(b"1") + message(b"2") + described + row(b"s") + end)
    time.sleep(60)


def no_text(line: socket.socket) -> None:
    welcomed(line)
    end = message(b"C", b"SELECT 1\0") + message(b"Z", b"I")
    line.sendall(DESCRIBED + row(b"s", b"\xff\xfe", b"file:///x", b"TABLE") + end)
    time.sleep(60)


def no_rows_at_all(line: socket.socket) -> None:
    welcomed(line)
    line.sendall(message(b"1") + message(b"2") + message(b"n") + message(b"C", b"SET\0") + message(b"Z", b"I"))
    time.sleep(60)


def login_without_end(line: socket.socket) -> None:
    line.recv(4096)
    while True:
        line.sendall(status("a", "b"))
        time.sleep(0.05)


SCRIPTS = (silent, dripping, endless_rows, endless_notices, other_bytes, other_bytes_later, few_columns, no_text,
           no_rows_at_all, login_without_end)  # fmt: skip


@contextmanager
def lying(script: Script) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        lines: list[socket.socket] = []

        def served(line: socket.socket) -> None:
            with suppress(OSError):
                script(line)
                line.close()

        def listen() -> None:
            with suppress(OSError):
                while True:
                    line, _ = server.accept()
                    lines.append(line)
                    threading.Thread(target=served, args=(line,), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1]
        for line in lines:
            line.close()


@pytest.mark.nightly_cases("endless_notices", "endless_rows")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_what_is_no_catalog_is_a_diagnostic(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_catalog, "SECONDS", SECONDS)
    monkeypatch.setattr(postgres_catalog, "_CONNECT_SECONDS", "2")
    monkeypatch.setattr(postgres_catalog, "_MAX_ROWS", 20_000)
    with lying(script) as port:
        uri = f"jdbc:postgresql://127.0.0.1:{port}/lake"
        config = Catalog(
            "jdbc", "lake", Path("/dev/null/nowhere"), {"uri": uri, "jdbc.user": "u", "jdbc.password": "p"}
        )
        begin = time.monotonic()
        with pytest.raises(SetupError) as found:
            PostgresCatalog(config).names("s")
        assert time.monotonic() - begin < 15
    assert found.value.diagnostic.code in {"catalog-unreachable", "catalog-unusable"}
