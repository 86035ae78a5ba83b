"""Avro values as columns of a frame, each decoded by the schema that it was written with.

from_avro knows one writer schema, so known ids are cases of one expression; others, which are rare, go through a Python
worker that rewrites them into the reader's schema. PERMISSIVE from_avro makes a row of NULLs of what it cannot decode:
a field with a default that no writer has distinguishes that from such a row.

A worker keeps its facts of a registry as long as it lives. A registry that does not respond fails the batch.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Final

from engine.errors import SetupError
from engine.sources.avro.reader_schema import AvroReading, Framing, Writer, fitted, incompatible
from engine.sources.avro.schema_resolution import Resolution, UnsuitableError, resolve
from engine.sources.avro_schema.avro_types import Field, Primitive, to_json
from engine.sources.avro_schema.binary_encoding import CorruptError
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry import MissingSchemaError, Registry, RegistrySettings
from engine.sources.spec import BAD, ORIGIN, RAW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


HEADER_BYTES: Final = 5
# A schema that is missing may be registered at any time.
_MISSING_SECONDS: Final = 5.0
_MARK: Final = "headrace-worker: "


class WorkerError(RuntimeError):
    """What a worker shows the driver through Spark: a code, a message and a hint as JSON."""


@dataclass(slots=True)
class Translator:
    registry: Registry
    reader: str
    _resolutions: dict[int, Resolution | str] = field(default_factory=dict)
    _missing: dict[int, tuple[float, str]] = field(default_factory=dict)

    def translate(self, value: bytes) -> tuple[bytes | None, str | None]:
        """The value in the reader's schema, or why there is none. Raises SetupError: the registry cannot be asked."""
        schema_id = int.from_bytes(value[1:HEADER_BYTES])
        how = self._resolutions.get(schema_id) or self._ask(schema_id)
        if isinstance(how, str):
            return None, how
        try:
            return how.transcode(value, HEADER_BYTES), None
        except UnsuitableError as error:
            return None, incompatible(schema_id, error)
        except CorruptError:
            return None, corrupt(schema_id)

    def _ask(self, schema_id: int) -> Resolution | str:
        since, reason = self._missing.get(schema_id, (-_MISSING_SECONDS, ""))
        if time.monotonic() - since < _MISSING_SECONDS:
            return reason
        try:
            registered = self.registry.schema(schema_id)
            self._resolutions[schema_id] = resolve(parse(registered.text), parse(self.reader))
        except MissingSchemaError as error:
            unknown = f"unknown schema id {schema_id}"
            reason = unknown if error.diagnostic.code == "registry-id" else error.diagnostic.message
            self._missing[schema_id] = (time.monotonic(), reason)
            return reason
        except UnsuitableError as error:
            self._resolutions[schema_id] = incompatible(schema_id, error)
        return self._resolutions[schema_id]


def corrupt(schema_id: int) -> str:
    return f"truncated or corrupt: the value does not follow schema id {schema_id}"


@cache
def _translator(settings: RegistrySettings, reader: str) -> Translator:
    return Translator(Registry(settings), reader)


def translate(
    settings: RegistrySettings, reader: str, values: Iterable[bytes | None]
) -> tuple[list[bytes | None], list[str | None]]:
    """Values in the reader's schema, and why there is none where there is none; None stays None.

    Raises WorkerError: the registry cannot be asked.
    """
    translator = _translator(settings, reader)
    payloads: list[bytes | None] = []
    reasons: list[str | None] = []
    try:
        for value in values:
            payload, reason = (None, None) if value is None else translator.translate(value)
            payloads.append(payload)
            reasons.append(reason)
    except SetupError as error:
        diagnostic = error.diagnostic
        raise WorkerError(_MARK + json.dumps([diagnostic.code, diagnostic.message, diagnostic.hint])) from None
    return payloads, reasons


def told_by_worker(text: str) -> SetupError | None:
    for line in re.findall(rf"{_MARK}(\[(?:(?!{_MARK}).)*\])", text):
        try:
            code, message, hint = json.loads(line)
        except ValueError:
            continue
        return SetupError(code, message, hint)
    return None


_DECODED: Final = "__decoded"
_OTHER: Final = "__other"
_MARKER: Final = Field("__good", Primitive("boolean"), (True,))
_TRANSLATED: Final = "struct<payload: binary, reason: string>"


def decoded(frame: DataFrame, reading: AvroReading) -> DataFrame:
    """Return the columns, `_metadata`, and `__bad`, which is NULL in good rows.

    Raises SetupError: `avro-columns`, the declared columns are not those of the schema.
    """
    from pyspark.sql import functions as f

    decoded_frame, fault = _unframed(frame, reading) if reading.framing is Framing.NONE else _framed(frame, reading)
    col = f.col
    bad = f.when(col(_DECODED)[_MARKER.name].isNotNull(), f.lit(None)).otherwise(
        f.struct(fault.alias("reason"), col(RAW).alias("raw"))
    )
    return decoded_frame.select(*_columns(decoded_frame, reading), col(ORIGIN), bad.alias(BAD))


def _unframed(frame: DataFrame, reading: AvroReading) -> tuple[DataFrame, Column]:
    from pyspark.sql import functions as f

    fault = f.when(f.col(RAW).isNull(), f.lit("it has no value")).otherwise(
        f.lit("truncated or corrupt: the value does not match the schema")
    )
    return frame.withColumn(_DECODED, _once(_from_avro(f.col(RAW), reading.reader, reading))), fault


def _framed(frame: DataFrame, reading: AvroReading) -> tuple[DataFrame, Column]:
    from pyspark.sql import functions as f

    value, lit = f.col(RAW), f.lit
    head, first = f.substring(value, 1, HEADER_BYTES), f.substring(value, 1, 1)
    payload = f.substring(value, HEADER_BYTES + 1, 2**31 - 1)
    known_headers = [lit(_header(schema_id)) for schema_id in (*reading.writers, *reading.refused)]
    framed = (first == lit(b"\0")) & (f.length(value) >= HEADER_BYTES)
    unknown = f.when(framed & ~head.isin(known_headers) if known_headers else framed, value)
    frame = frame.select(value, ORIGIN, _translated(unknown, reading).alias(_OTHER))
    cases = [
        (head == lit(_header(schema_id)), _from_avro(payload, writer.text, reading))
        for schema_id, writer in reading.writers.items()
    ]
    other = f.col(_OTHER)
    translated = (other["payload"].isNotNull(), _from_avro(other["payload"], reading.reader, reading))
    return frame.withColumn(_DECODED, _once(_case([*cases, translated]))), _fault(reading)


def _fault(reading: AvroReading) -> Column:
    from pyspark.sql import functions as f

    value, lit = f.col(RAW), f.lit
    head, first = f.substring(value, 1, HEADER_BYTES), f.substring(value, 1, 1)
    length = f.length(value)
    magic = f.concat(lit("wrong magic byte 0x"), f.hex(first), lit(": the wire format begins with 0x00"))
    short = f.concat(lit("truncated: "), length, lit(f" of the {HEADER_BYTES} bytes before a value"))
    schema_id = f.conv(f.hex(f.substring(value, 2, 4)), 16, 10)
    refused = [(head == lit(_header(number)), lit(reason)) for number, reason in reading.refused.items()]
    spoilt = [(head == lit(_header(number)), lit(_spoilt(number, w))) for number, w in reading.writers.items()]
    return _case(
        [
            (value.isNull(), lit("it has no value")),
            ((length > 0) & (first != lit(b"\0")), magic),
            (length < HEADER_BYTES, short),
            *refused,
            *spoilt,
            (f.col(_OTHER)["reason"].isNotNull(), f.col(_OTHER)["reason"]),
            (f.col(_OTHER)["payload"].isNotNull(), f.concat(lit(_spoilt(0)[:-1]), schema_id)),
        ],
        f.concat(lit("unknown schema id "), schema_id),
    )


def _spoilt(schema_id: int, writer: Writer | None = None) -> str:
    doubts = (
        f"; or it holds a value that cannot be read: {'; '.join(writer.doubts)}" if writer and writer.doubts else ""
    )
    return corrupt(schema_id) + doubts


def _header(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(HEADER_BYTES - 1)


def _case(cases: list[tuple[Column, Column]], otherwise: Column | None = None) -> Column:
    from pyspark.sql import functions as f

    chain: Any = reduce(lambda chain_so_far, case: chain_so_far.when(*case), cases, f)
    result: Column = chain.otherwise(otherwise) if otherwise is not None else chain
    return result


def _from_avro(payload: Column, writer: str, reading: AvroReading) -> Column:
    from pyspark.sql.avro.functions import from_avro

    marked = to_json(parse(reading.reader), (_MARKER,))
    # Spark would take dates before 1582 for those of another calendar.
    options = {"mode": "PERMISSIVE", "avroSchema": marked, "datetimeRebaseMode": "CORRECTED"}
    return from_avro(payload, writer, options)


def _once(decoded: Column) -> Column:
    """What is decoded, in a form that no filter is moved below of: it would decode each record twice."""
    from pyspark.sql import functions as f

    return f.when(f.spark_partition_id() >= 0, decoded)


def _translated(value: Column, reading: AvroReading) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    if reading.registry is None:
        return f.lit(None).cast(_TRANSLATED)
    make: Any = arrow_udf
    result: Column = make(_column_function(reading.registry, reading.reader), _TRANSLATED)(value)
    return result


def _column_function(settings: RegistrySettings, reader: str) -> Callable[[Any], Any]:
    import pyarrow as pa

    def translate_column(values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Spark evaluates them
        fields = {"payload": pa.binary(), "reason": pa.string()}
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.struct(list(fields.items())))
        payloads_and_reasons = translate(settings, reader, values.to_pylist())
        arrays = [pa.array(column, type_) for column, type_ in zip(payloads_and_reasons, fields.values(), strict=True)]
        return pa.StructArray.from_arrays(arrays, names=list(fields))

    translate_column.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return translate_column


def _columns(frame: DataFrame, reading: AvroReading) -> list[Column]:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    decoded = f.col(_DECODED)
    have = frame.schema[_DECODED].dataType
    if not isinstance(have, StructType):
        raise TypeError(have)
    have = StructType([field for field in have.fields if field.name != _MARKER.name])
    want: Any = StructType.fromDDL(reading.declared) if reading.declared else have
    return fitted(decoded, have, want)
