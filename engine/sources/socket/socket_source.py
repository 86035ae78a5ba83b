"""Lines of text from a TCP server: for development.

Spark's own socket source cannot continue from a checkpoint (its second start fails with offsets out of order, measured)
and gives a bounded build nothing, because it looks before the first line can have come. This one counts its lines
through builds, and its first look lasts `read_for`, or until the server closes the connection. Lines that were under
way when a build was killed are lost: nobody can send them again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.schema import ValueForm
from engine.schema.format_keys import SOCKET_KEYS
from engine.sources.answers import Answers
from engine.sources.spec import ORIGIN, RAW, Place, Resumption, SourceSpec, SpecFault
from engine.sources.values import plain_values
from engine.times import duration_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: tuple[str, ...] = ("socket",)
KEYS: Mapping[str, ValueForm] = SOCKET_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = ()
MEANING: tuple[str, ...] = ()
REPLAYABLE = False
LISTED = True
ANSWERS: Mapping[str, Answers] = {"socket": Answers(closed_options=True, rows_wait=False, caseless=True)}
_READ_FOR = "5 seconds"
_PORTS = 65535
_PLAIN = {"format": "string"}


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    """What is wrong with the settings."""
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
    """None."""
    return ()


def columns(_: SourceSpec) -> str:
    """The line, without its end."""
    return "value string"


def origin(_: SourceSpec) -> str:
    """The type of `_metadata`."""
    return "struct<host: string, port: int, received_at: timestamp>"


def location(spec: SourceSpec) -> str:
    """The server."""
    return f"{spec.settings.get('host', '')}:{spec.settings.get('port', '')}"


def check(_: SourceSpec, __: Place) -> None:
    """Nothing is asked: a server may serve one connection only."""


def position(_: SparkSession, __: SourceSpec, ___: Place) -> dict[str, Any]:
    """Another one at each moment."""
    return {"at": time.time_ns()}


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    """Lines of PySpark that read it; as a batch Spark cannot."""
    host, port = json.dumps(str(spec.settings.get("host", ""))), spec.settings.get("port", 0)
    return [
        f'spark.{"readStream" if stream else "read"}.format("socket")',
        f'.option("host", {host})',
        f'.option("port", {port})',
        ".load()",
    ]


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """The lines that come within `read_for`.

    Raises:
        RunError: `socket-unreachable`.
    """
    from engine.sources.socket.socket_reader import Lines, UnreachableError

    settings = _settings(spec)
    lines = Lines(settings["host"], int(settings["port"]))
    try:
        rows = lines.wait(float(settings["read_for"]))
    except UnreachableError as error:
        raise _unreachable(str(error)) from error
    finally:
        lines.close()
    return _decoded(session.createDataFrame(rows, "value binary, received_at timestamp"), spec, place)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """Each line as it comes."""
    from engine.sources.socket.socket_reader import NAME, SocketSource

    session.dataSource.register(SocketSource)
    return _decoded(session.readStream.format(NAME).options(**_settings(spec)).load(), spec, place)


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
    from engine.sources.socket.socket_reader import RAISED

    begin = text.find(RAISED)
    return _unreachable(text[begin + len(RAISED) :].splitlines()[0]) if begin >= 0 else None


def _unreachable(reason: str) -> RunError:
    hint = "Start the server first (to try it out: nc -lk 9999), or correct 'host' and 'port' of the source."
    return RunError("socket-unreachable", reason.strip(), hint)


def resume(*_: object) -> Resumption:
    """What was not read is gone."""
    return Resumption()
