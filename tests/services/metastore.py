"""A Hive metastore of four methods over a real socket, in Thrift's binary protocol: databases, tables, a drop."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_TEXT, _STRUCT, _MAP, _LIST = 11, 12, 13, 15
# By schema and name: the parameters.
Tables = dict[tuple[str, str], dict[str, str]]


def text(value: str) -> bytes:
    """A text."""
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def texts(values: list[str]) -> bytes:
    """A list of texts."""
    return struct.pack(">bi", _TEXT, len(values)) + b"".join(map(text, values))


def table(schema: str, name: str, parameters: dict[str, str]) -> bytes:
    """A struct Table with its name, its schema and its parameters."""
    made = struct.pack(">bh", _TEXT, 1) + text(name) + struct.pack(">bh", _TEXT, 2) + text(schema)
    pairs = b"".join(text(key) + text(value) for key, value in parameters.items())
    return made + struct.pack(">bhbbi", _MAP, 9, _TEXT, _TEXT, len(parameters)) + pairs + b"\0"


def exception(number: int, message: str) -> bytes:
    """A field with an exception."""
    return struct.pack(">bh", _STRUCT, number) + struct.pack(">bh", _TEXT, 1) + text(message) + b"\0"


def reply(name: str, sequence: int, fields: bytes) -> bytes:
    """The answer to a call."""
    return struct.pack(">I", 0x80010002) + text(name) + struct.pack(">i", sequence) + fields + b"\0"


@dataclass(slots=True)
class Metastore:
    """A metastore.

    Attributes:
        tables: that it has.
        calls: the names of the methods that were called.
        answer: writes something else than an answer to a connection, if it is set.
    """

    tables: Tables = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    answer: Callable[[Any], None] | None = None
    _server: socketserver.ThreadingTCPServer | None = None

    @property
    def uri(self) -> str:
        """Its address."""
        assert self._server is not None
        return f"thrift://127.0.0.1:{self._server.server_address[1]}"

    def fields(self, name: str, arguments: dict[int, Any]) -> bytes:
        """The fields of a result."""
        if name == "get_all_databases":
            return struct.pack(">bh", _LIST, 0) + texts(sorted({schema for schema, _ in self.tables}))
        schema = arguments[1]
        if name == "get_all_tables":
            return struct.pack(">bh", _LIST, 0) + texts(sorted(n for s, n in self.tables if s == schema))
        if name == "get_table_objects_by_name":
            found = [table(schema, n, self.tables[schema, n]) for n in arguments[2] if (schema, n) in self.tables]
            return struct.pack(">bhbi", _LIST, 0, _STRUCT, len(found)) + b"".join(found)
        if name == "get_table":
            known = self.tables.get((schema, arguments[2]))
            if known is None:
                return exception(2, f"{schema}.{arguments[2]} table not found")
            return struct.pack(">bh", _STRUCT, 0) + table(schema, arguments[2], known)
        if name == "drop_table":
            return b"" if self.tables.pop((schema, arguments[2]), None) is not None else exception(1, "not found")
        raise ValueError(name)


def _arguments(stream: Any) -> dict[int, Any]:
    def string() -> str:
        (size,) = struct.unpack(">i", stream.read(4))
        return str(stream.read(size).decode())

    found: dict[int, Any] = {}
    while (kind := stream.read(1)[0]) != 0:
        (number,) = struct.unpack(">h", stream.read(2))
        if kind == _TEXT:
            found[number] = string()
        elif kind == _LIST:
            _, size = struct.unpack(">bi", stream.read(5))
            found[number] = [string() for _ in range(size)]
        else:
            found[number] = stream.read(1)[0] != 0
    return found


@contextlib.contextmanager
def running(tables: Tables | None = None) -> Iterator[Metastore]:
    """A metastore that ends with the block."""
    store = Metastore(tables if tables is not None else {})

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError, struct.error, IndexError):
                while True:
                    struct.unpack(">I", self.rfile.read(4))
                    (size,) = struct.unpack(">i", self.rfile.read(4))
                    name = self.rfile.read(size).decode()
                    (sequence,) = struct.unpack(">i", self.rfile.read(4))
                    arguments = _arguments(self.rfile)
                    store.calls.append(name)
                    if store.answer is not None:
                        store.answer(self.wfile)
                        return
                    self.wfile.write(reply(name, sequence, store.fields(name, arguments)))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        store._server = server
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
