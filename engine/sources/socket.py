"""Lines of text from a TCP server: for development.

Spark's own socket source cannot continue from a checkpoint (measured) and looks before the first line can have come.
This one counts its lines through builds, and its first look lasts `read_for`, or until the server closes. Lines that
were under way when a build was killed are lost.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.schema import ValueForm
from engine.schema.format_keys import SOCKET_KEYS
from engine.sources.spec import ORIGIN, RAW, Place, Resumption, SourceSpec, SpecFault
from engine.sources.traits import SourceTraits
from engine.sources.values import plain_values
from engine.times import duration_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

    Line = tuple[bytes, datetime]

FORMATS: tuple[str, ...] = ("socket",)
KEYS: Mapping[str, ValueForm] = SOCKET_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = ()
MEANING: tuple[str, ...] = ()
REPLAYABLE = False
LISTED = True
_READ_FOR = "5 seconds"
_PORTS = 65535
_PLAIN = {"format": "string"}
_CONNECT_SECONDS = 5.0
_COLUMNS = "value binary, received_at timestamp"
# How the error begins when there is no server; it comes as text from a worker of Spark.
_RAISED = "headrace: socket: "


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    for key, example in (("host", "localhost"), ("port", "9999")):
        if key not in spec.settings:
            yield SpecFault((key,), f"source '{spec.name}' has no '{key}'", f"Add '{key}: {example}'.", "missing-key")
    if spec.settings.get("port", 1) > _PORTS:
        yield SpecFault(("port",), f"{spec.settings['port']} is not a port", f"Use a port up to {_PORTS}.")
    if spec.schema:
        message = "a socket source has one column, value string"
        yield SpecFault(("schema",), message, "Remove the schema.", "setting-conflict", at_key=True)
    for key in spec.options:
        yield SpecFault(("options", key), "a socket has no options", "Remove them.", at_key=True)


def jars(_: SourceSpec) -> tuple[str, ...]:
    return ()


def columns(_: SourceSpec) -> str:
    return "value string"


def origin(_: SourceSpec) -> str:
    return "struct<host: string, port: int, received_at: timestamp>"


def location(spec: SourceSpec) -> str:
    return f"{spec.settings.get('host', '')}:{spec.settings.get('port', '')}"


def check(_: SourceSpec, __: Place) -> None:
    """Nothing is asked: a server may serve one connection only."""


def position(_: SparkSession, __: SourceSpec, ___: Place) -> dict[str, Any]:
    return {"at": time.time_ns()}


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    host, port = json.dumps(str(spec.settings.get("host", ""))), spec.settings.get("port", 0)
    return [
        f'spark.{"readStream" if stream else "read"}.format("socket")',
        f'.option("host", {host})',
        f'.option("port", {port})',
        ".load()",
    ]


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """The lines that come within `read_for`. Raises RunError: `socket-unreachable`."""
    lines = _Lines(_settings(spec))
    try:
        rows = lines.first()
    except RuntimeError as error:
        raise told_by_worker(str(error)) or error from error
    finally:
        lines.close()
    return _decoded(session.createDataFrame(rows, _COLUMNS), spec, place)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    source = _data_source()
    session.dataSource.register(source)
    return _decoded(session.readStream.format(source.name()).options(**_settings(spec)).load(), spec, place)


class _Lines:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self._server = (settings["host"], int(settings["port"]))
        self._read_for = float(settings["read_for"])
        self._socket: socket.socket | None = None
        self._rest = b""

    def first(self) -> list[Line]:
        """Return the lines within `read_for`, or until the server closes; raise RuntimeError if there is no server."""
        try:
            self._socket = socket.create_connection(self._server, timeout=_CONNECT_SECONDS)
        except OSError as error:
            host, port = self._server
            raise RuntimeError(f"{_RAISED}no server at {host}:{port} ({error.strerror or error})") from None
        return self.more(self._read_for)

    def more(self, seconds: float = 0.0) -> list[Line]:
        end = time.monotonic() + seconds
        lines: list[Line] = []
        while self._socket is not None:
            self._socket.settimeout(max(0.0, end - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except (BlockingIOError, TimeoutError):
                break
            except ConnectionError:
                data = b""
            # The last line may have no end.
            *whole, self._rest = (self._rest + (data or b"\n" * bool(self._rest))).split(b"\n")
            lines += ((line.removesuffix(b"\r"), datetime.now(UTC)) for line in whole)
            if not data:
                self.close()
        return lines

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None


def _data_source() -> type[DataSource]:
    """Spark's side: it runs in a Python process of its own beside the driver."""
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
    from pyspark.sql.types import StructType

    class SocketStream(SimpleDataSourceStreamReader):
        """The lines as a stream; an offset is the number of lines so far, through all builds."""

        def __init__(self, options: Mapping[str, str]) -> None:
            self._options = options
            self._lines: _Lines | None = None

        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"lines": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[Line], dict[str, int]]:
            if self._lines is None:
                lines = _Lines(self._options)
                rows, self._lines = lines.first(), lines
            else:
                rows = self._lines.more()
            return iter(rows), {"lines": start["lines"] + len(rows)}

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Line]:  # noqa: N802
            del start, end  # Lines of a batch that was not finished are gone.
            return iter(())

    class SocketSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "headrace_socket"

        def schema(self) -> str:
            return _COLUMNS

        def simpleStreamReader(self, schema: StructType) -> SocketStream:  # noqa: N802, ARG002 - Spark's name
            return SocketStream(dict(self.options))

    return SocketSource


def _settings(spec: SourceSpec) -> dict[str, str]:
    seconds = duration_seconds(str(spec.settings.get("read_for", _READ_FOR)))
    return {"host": str(spec.settings["host"]), "port": str(spec.settings["port"]), "read_for": str(seconds)}


def _decoded(rows: DataFrame, spec: SourceSpec, place: Place) -> DataFrame:
    from pyspark.sql import functions as f

    host, port = f.lit(str(spec.settings["host"])), f.lit(int(spec.settings["port"]))
    came = f.struct(host.alias("host"), port.alias("port"), f.col("received_at"))
    return plain_values.decode(rows.select(f.col("value").alias(RAW), came.alias(ORIGIN)), spec, _PLAIN, place)


def told_by_worker(text: str) -> RunError | None:
    """The error that a worker of Spark ended with, from Spark's text of it; None if it is another one."""
    begin = text.find(_RAISED)
    if begin < 0:
        return None
    reason = text[begin + len(_RAISED) :].splitlines()[0]
    hint = "Start the server first (to try it out: nc -lk 9999), or correct 'host' and 'port' of the source."
    return RunError("socket-unreachable", reason.strip(), hint)


def resume(*_: object) -> Resumption:
    return Resumption()


TRAITS: Mapping[str, SourceTraits] = {
    "socket": SourceTraits(closed_options=True, rows_wait=False, caseless=True, told_by_worker=told_by_worker)
}
