"""Any other reader of Spark: `format: spark.<its name>`, with a declared schema and `options`.

Its bad records, position and whether it can be re-read are not known. Its jars come with the target (`spark: {conf:
{spark.jars: ..}}`). Also: the newest part of any source, and its columns from a registry, files or a sample.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.relations import quoted
from engine.schema import ValueForm
from engine.schema.format_keys import READER_KEYS
from engine.sources.credentials import identified, masked, masked_options
from engine.sources.listing import for_spark
from engine.sources.spec import (
    ORIGIN,
    SPARK_READER,
    Place,
    Resumption,
    SourceSpec,
    SpecFault,
    connection_leads,
    connection_line,
    reader_faults,
    with_connection_options,
)  # fmt: skip
from engine.sources.traits import SourceTraits
from engine.spark.exceptions import spark_exceptions
from engine.spark_options import OF_FILES, RATE_MICRO_BATCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FORMATS: tuple[str, ...] = ()
KEYS: Mapping[str, ValueForm] = READER_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = ()
MEANING: tuple[str, ...] = ("path",)
REPLAYABLE = False
LISTED = False
# Readers of formats that bring their columns reject to be told.
_BRINGS_ITS_OWN = ("USER_SPECIFIED_SCHEMA", "user-specified schema", "schema is not supported")


def _name(spec: SourceSpec) -> str:
    return spec.format.removeprefix(SPARK_READER)


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    from engine.sources import BUILT_IN

    if not _name(spec):
        yield SpecFault(("format",), "the format does not name a reader", "Write 'format: spark.xml'.")
    yield from _option_faults(spec)
    if _name(spec) in BUILT_IN:
        message = f"'{_name(spec)}' is a built-in format"
        yield SpecFault(("format",), message, f"Write 'format: {_name(spec)}'.")


def _option_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    name = _name(spec).lower()
    if name == "xml":
        yield from reader_faults(spec, OF_FILES[name], "the xml reader", hadoop=True)
    elif name == "rate-micro-batch":
        yield from reader_faults(spec, RATE_MICRO_BATCH, "the rate-micro-batch reader")


def jars(_: SourceSpec) -> tuple[str, ...]:
    return ()


def columns(_: SourceSpec) -> str | None:
    return None


def origin(_: SourceSpec) -> str:
    return "struct<format: string>"


def location(spec: SourceSpec) -> str:
    return str(spec.settings.get("path") or _name(spec))


def check(spec: SourceSpec, place: Place) -> None:
    """Make sure that its connection can be used; the rest only the reader knows.

    Raises ProjectError: `unknown-connection`, `connection-settings`.
    """
    with_connection_options(spec, place)


def position(_: SparkSession, __: SourceSpec, ___: Place) -> dict[str, Any]:
    """Never the same twice: what reads it is always built."""
    return {"unknown": str(uuid.uuid4())}


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    path = spec.settings.get("path")
    return [
        f"spark.{'readStream' if stream else 'read'}.format({json.dumps(_name(spec))})",
        f".schema({json.dumps(spec.schema, ensure_ascii=False)})",
        *(
            f".option({json.dumps(key)}, {json.dumps(value, ensure_ascii=False)})"
            for key, value in masked_options(spec.options).items()
        ),
        *connection_line(spec),
        f".load({json.dumps(masked(str(path), 'path'), ensure_ascii=False) if path else ''})",
    ]


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    return _read(lambda: session.read, spec, place)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    return _read(lambda: session.readStream, spec, place)


def _read(reader: Callable[[], Any], spec: SourceSpec, place: Place) -> DataFrame:
    from pyspark.sql import functions as f

    path = (for_spark(spec, place),) if "path" in spec.settings else ()
    spec = with_connection_options(spec, place)
    try:
        frame = reader().format(_name(spec)).options(**spec.options).schema(spec.schema).load(*path)
    except spark_exceptions() as error:
        if not any(text in str(error) for text in _BRINGS_ITS_OWN):
            raise
        frame = _declared(reader().format(_name(spec)).options(**spec.options).load(*path), spec)
    columns = [f.col(quoted(name)) for name in frame.columns]
    result: DataFrame = frame.select(*columns, f.struct(f.lit(_name(spec)).alias("format")).alias(ORIGIN))
    return result


def _declared(frame: DataFrame, spec: SourceSpec) -> DataFrame:
    """Return the declared columns; raise RunError, `source-unreadable`, if one is missing or has another type."""
    from pyspark.sql.types import StructType

    declared: Any = StructType.fromDDL(spec.schema)
    have = {field.name.lower(): field.dataType for field in frame.schema.fields}
    for field in declared.fields:
        read_type = have.get(field.name.lower())
        if read_type != field.dataType:
            difference = f"has it as {read_type.simpleString()}" if read_type else "does not have it"
            message = (
                f"'{spec.name}' declares {field.name} {field.dataType.simpleString()}, and the reader {difference}"
            )
            raise RunError("source-unreadable", message, f"The reader gives: {frame.schema.simpleString()}.")
    return frame.select(*(field.name for field in declared.fields))


def resume(*_: object) -> Resumption:
    return Resumption()


def _placed(spec: SourceSpec, place: Place) -> dict[str, Any]:
    return {"location": identified(location(spec), "location"), **connection_leads(spec, place)}


TRAITS: Mapping[str, SourceTraits] = {SPARK_READER: SourceTraits(placed=_placed)}
