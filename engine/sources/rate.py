"""Rows made by a clock, so many a second: for development.

Spark's rate source starts its clock with the first build of a table: a build reads the rows of the time since the one
before. From its checkpoint the same rows come again (measured); a rebuilt table gets others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.schema import ValueForm
from engine.schema.format_keys import RATE_KEYS
from engine.sources.spec import ORIGIN, Place, Resumption, SourceSpec, SpecFault, reader_faults
from engine.sources.traits import SourceTraits
from engine.spark_options import RATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: tuple[str, ...] = ("rate",)
KEYS: Mapping[str, ValueForm] = RATE_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = ()
MEANING: tuple[str, ...] = ("rows_per_second", "ramp_up_time")
REPLAYABLE = False
LISTED = True
TRAITS: Mapping[str, SourceTraits] = {"rate": SourceTraits(rows_wait=False, caseless=True, marks_bad=False)}
# Of so many seconds are the rows of a batch read, which has no clock that ran.
_SECONDS = 10
_KEYS_OF = {"rowspersecond": "rows_per_second", "rampuptime": "ramp_up_time"}


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    if spec.schema:
        message = "the rate source has the columns timestamp timestamp, value bigint"
        yield SpecFault(("schema",), message, "Remove the schema.", "setting-conflict", at_key=True)
    for name in spec.options:
        if key := _KEYS_OF.get(name.lower()):
            message = f"the option '{name}' is set by Headrace"
            yield SpecFault(("options", name), message, f"Write '{key}:' next to 'format:'.", at_key=True)
    yield from reader_faults(spec, RATE, "the rate reader", reserved=_KEYS_OF)


def jars(_: SourceSpec) -> tuple[str, ...]:
    return ()


def columns(_: SourceSpec) -> str:
    return "timestamp timestamp, value bigint"


def origin(_: SourceSpec) -> str:
    return "struct<timestamp: timestamp, value: bigint>"


def location(spec: SourceSpec) -> str:
    number = _rows(spec)
    return f"{number:,} row{'' if number == 1 else 's'} a second"


def _rows(spec: SourceSpec) -> int:
    return int(spec.settings.get("rows_per_second", 1))


def check(_: SourceSpec, __: Place) -> None: ...


def position(_: SparkSession, __: SourceSpec, ___: Place) -> dict[str, Any]:
    return {"at": time.time_ns()}


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    if not stream:
        return [f"spark.range({_rows(spec) * _SECONDS})"]
    options = (f".option({json.dumps(key)}, {json.dumps(value)})" for key, value in _options(spec).items())
    return ['spark.readStream.format("rate")', *options, ".load()"]


def _options(spec: SourceSpec) -> dict[str, str]:
    options = {"rowsPerSecond": str(_rows(spec)), **spec.options}
    if ramp := spec.settings.get("ramp_up_time"):
        options["rampUpTime"] = str(ramp)
    return options


def read_batch(session: SparkSession, spec: SourceSpec, _: Place) -> DataFrame:
    from pyspark.sql import functions as f

    number = _rows(spec)
    rows = session.range(number * _SECONDS)
    due = f.current_timestamp() - f.expr(
        f"make_dt_interval(0, 0, 0, {_SECONDS} - cast(id as decimal(20, 6)) / {number})"
    )
    return _whole(rows.select(due.alias("timestamp"), f.col("id").alias("value")))


def read_stream(session: SparkSession, spec: SourceSpec, _: Place) -> DataFrame:
    return _whole(session.readStream.format("rate").options(**_options(spec)).load())


def _whole(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.select("timestamp", "value", f.struct("timestamp", "value").alias(ORIGIN))


def resume(*_: object) -> Resumption:
    return Resumption()
