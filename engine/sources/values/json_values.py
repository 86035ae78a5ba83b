"""JSON objects as columns: the one reader of values in Kafka and of lines in files, whichever columns are used.

Spark's own readers let pass (all measured): text after the object, an array, as several rows; `null`; an object with no
value for any declared column. So a reader of our own (`JsonRecords.java`) has Spark's options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import near
from engine.schema import ValueForm
from engine.schema.format_keys import JSON_VALUE
from engine.sources.spec import BAD, ORIGIN, RAW, Place, SourceSpec, SpecFault
from engine.spark.internals.handles import column_of, java_column, jvm_of
from engine.spark_options import JSON, expected_form
from engine.spark_options import Form as OptionForm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

KEYS: Mapping[str, ValueForm] = JSON_VALUE.forms
# Spark's options of JSON that change how one object is read.
OPTIONS = (
    "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers", "allowNumericLeadingZeros",
    "allowSingleQuotes", "allowUnquotedControlChars", "allowUnquotedFieldNames", "dateFormat",
    "enableDateTimeParsingFallback", "locale", "prefersDecimal", "primitivesAsString", "timestampFormat",
    "timestampNTZFormat",
)  # fmt: skip
_OURS = {"mode", "columnnameofcorruptrecord", "timezone"}


def faults(spec: SourceSpec, value: Mapping[str, Any]) -> Iterator[SpecFault]:
    """Options of `value:` that Spark's JSON reader does not have, or that are set here."""
    names_by_key = {name.lower(): name for name in OPTIONS}
    for key, option_value in (value.get("options") or {}).items():
        message = f"reading JSON has no option '{key}'"
        hint = near(key, OPTIONS)
        if key.lower() in _OURS:
            message = f"the option '{key}' is set by Headrace"
            hint = "Write 'timezone:' next to 'format:'." if key.lower() == "timezone" else "Remove it."
        elif key.lower() in names_by_key:
            yield from _value_faults(key, option_value, JSON[names_by_key[key.lower()]])
            continue
        yield SpecFault(("value", "options", key), message, hint, at_key=True)
    if not spec.schema:
        hint = 'Declare the columns: schema: "id string, time timestamp".'
        yield SpecFault(("schema",), f"source '{spec.name}' has no 'schema'", hint, "missing-key")


def _value_faults(key: str, value: Any, form: OptionForm) -> Iterator[SpecFault]:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if expected := expected_form(text, form):
        yield SpecFault(("value", "options", key), f"the option '{key}' must be {expected}, not '{text}'", "")


def columns(_: Mapping[str, Any]) -> str | None:
    return None


def jars() -> tuple[str, ...]:
    """None: PySpark reads JSON."""
    return ()


def decode(frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], _: Place) -> DataFrame:
    return objects(frame, spec, value.get("options") or {})


def objects(
    frame: DataFrame, spec: SourceSpec, options: Mapping[str, str], folders: tuple[int, int] | None = None
) -> DataFrame:
    """Return columns, `_metadata` and `__bad` from `__raw` and `_metadata`; options are of Spark's JSON reader."""
    from pyspark.sql import functions as f

    session: Any = frame.sparkSession
    zone = spec.timezone or session.conf.get("spark.sql.session.timeZone")
    file_path = java_column(f.col(f"{ORIGIN}.file_path")) if folders is not None else None
    read = jvm_of(session).headrace.JsonRecords.column(
        java_column(f.col(RAW)), file_path, columns_of(spec.schema).json(), dict(options), zone, *(folders or (0, 0))
    )
    bad = f"case when __w.reason is not null then struct(__w.reason as reason, {RAW} as raw) end as {BAD}"
    return frame.select(RAW, ORIGIN, column_of(read).alias("__w")).selectExpr("__w.r.*", ORIGIN, bad)


def columns_of(ddl: str) -> StructType:
    from pyspark.sql.types import StructType as Struct

    struct = Struct.fromDDL(ddl)
    if not isinstance(struct, Struct):
        raise TypeError(ddl)
    return struct
