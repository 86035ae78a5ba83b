"""The socket's side of Spark: a Python data source, run in a Python process of its own beside the driver."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

# How the error begins when there is no server; it comes as text from a worker of Spark.
RAISED = "headrace: socket: "

NAME = "headrace_socket"
_CONNECT_SECONDS = 5.0
_PAUSE = 0.02
_CHUNK = 65536
_COUNT = "lines"


class UnreachableError(Exception):
    """There is no server."""


class Lines:
    """A connection whose bytes are cut into lines."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._socket: socket.socket | None = None
        self._rest = b""
        self._open = True

    def wait(self, seconds: float) -> list[tuple[bytes, datetime]]:
        """The lines that come within some time, each with that; fewer when the server closes the connection.

        Raises:
            UnreachableError: there is no server.
        """
        end = time.monotonic() + seconds
        found: list[tuple[bytes, datetime]] = []
        while self._open:
            if (data := self._receive()) is not None:
                found += self._cut(data)
            elif time.monotonic() >= end:
                break
            else:
                time.sleep(_PAUSE)
        return found

    def _receive(self) -> bytes | None:
        """What is there; None: nothing yet; empty: there will be nothing more."""
        if self._socket is None:
            self._socket = self._connected()
        try:
            return self._socket.recv(_CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def _connected(self) -> socket.socket:
        host, port = self._server
        try:
            found = socket.create_connection(self._server, timeout=_CONNECT_SECONDS)
        except OSError as error:
            raise UnreachableError(f"no server at {host}:{port} ({error.strerror or error})") from error
        found.setblocking(False)
        return found

    def _cut(self, data: bytes) -> Iterator[tuple[bytes, datetime]]:
        now = datetime.now(UTC)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            # The last line may have no end.
            self._open = False
            lines, self._rest = ([self._rest] if self._rest else []), b""
        yield from ((line.removesuffix(b"\r"), now) for line in lines)

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()


class SocketStream(SimpleDataSourceStreamReader):
    """The lines as a stream; an offset is the number of lines so far, through all builds."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._lines: Lines | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802, D102 - Spark's name
        return {_COUNT: 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[bytes, datetime]], dict[str, int]]:
        """The lines since the last look; the first look waits for them."""
        seconds = 0.0
        if self._lines is None:
            self._lines = Lines(self._options["host"], int(self._options["port"]))
            seconds = float(self._options["read_for"])
        try:
            rows = self._lines.wait(seconds)
        except UnreachableError as error:
            raise RuntimeError(f"{RAISED}{error}") from None
        return iter(rows), {_COUNT: start[_COUNT] + len(rows)}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[bytes, datetime]]:  # noqa: N802
        """Lines of a batch that was not finished: they are gone."""
        del start, end
        return iter(())


class SocketSource(DataSource):
    """What Spark gets of it."""

    @classmethod
    def name(cls) -> str:  # noqa: D102 - Spark's name
        return NAME

    def schema(self) -> str:  # noqa: D102 - Spark's name
        return "value binary, received_at timestamp"

    def simpleStreamReader(self, schema: StructType) -> SocketStream:  # noqa: N802, ARG002, D102 - Spark's name
        return SocketStream(dict(self.options))
