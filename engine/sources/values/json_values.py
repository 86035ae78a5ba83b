"""JSON objects as columns: the one reader of values in Kafka and of lines in files.

Spark's own readers turn what they cannot read into NULLs, and they let pass (all measured): text after the object,
even a second object; an array, as several rows; `null`; an object with no value for any declared column. So a record
is read inside an object of our own, `{"r": <record>, "__end": 1}`, in which text that does not belong is an error;
and it is bad unless an object came out with a value for some declared column.

Reading does not depend on the columns that a query uses: from_json prunes its schema only if it has no options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import near
from engine.schema import ValueForm
from engine.schema.format_keys import JSON_VALUE
from engine.sources.spec import BAD, ORIGIN, RAW, Place, SourceSpec, SpecFault
from engine.spark_options import JSON, expected_form
from engine.spark_options import Form as OptionForm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
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
_CORRUPT = "__corrupt"
# Columns whose misfit is looked for by name; a record of more of them says that some column does not fit.
_NAMED = 100


def faults(spec: SourceSpec, value: Mapping[str, Any]) -> Iterator[SpecFault]:
    """Options of `value:` that Spark's JSON reader does not have, or that are set here."""
    known = {name.lower(): name for name in OPTIONS}
    for key, given in (value.get("options") or {}).items():
        message = f"reading JSON has no option '{key}'"
        hint = near(key, OPTIONS)
        if key.lower() in _OURS:
            message = f"the option '{key}' is set by the engine"
            hint = "Write 'timezone:' beside 'format:'." if key.lower() == "timezone" else "Remove it."
        elif key.lower() in known:
            yield from _value_faults(key, given, JSON[known[key.lower()]])
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
    """Those of the schema."""
    return None


def jars() -> tuple[str, ...]:
    """None: PySpark reads JSON."""
    return ()


def decode(frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], _: Place) -> DataFrame:
    """The declared columns of one JSON object a record."""
    return objects(frame, spec, value.get("options") or {})


def objects(frame: DataFrame, spec: SourceSpec, options: Mapping[str, str]) -> DataFrame:
    """Columns, `_metadata` and `__bad` from `__raw` and `_metadata`."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    declared = columns_of(spec.schema)
    wrapper = StructType(
        [StructField("r", declared), StructField("__end", IntegerType()), StructField(_CORRUPT, StringType())]
    )
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if spec.timezone:
        settings["timeZone"] = spec.timezone
    text = _without_mark(f.col(RAW).cast("string"))
    # The line end closes a comment, should options allow them.
    wrapped = f.concat(f.lit('{"r":'), f.col("__text"), f.lit('\n,"__end":1}'))
    # A condition on what was read would be moved below the reading and read each record twice (measured); it is not
    # moved over an expression that Spark takes for a random one.
    read = f.when(f.spark_partition_id() >= 0, f.from_json(wrapped, wrapper, settings))
    frame = frame.select(RAW, ORIGIN, text.alias("__text")).select(RAW, ORIGIN, "__text", read.alias("__w"))
    return frame.select(
        *(f.col("__w")["r"][field.name].alias(field.name) for field in declared.fields),
        ORIGIN,
        _bad(declared).alias(BAD),
    )


def columns_of(ddl: str) -> StructType:
    """The columns of a schema, as Spark has them."""
    from pyspark.sql.types import StructType as Struct

    found = Struct.fromDDL(ddl)
    if not isinstance(found, Struct):
        raise TypeError(ddl)
    return found


def _without_mark(text: Column) -> Column:
    """Without the byte order mark that some programs begin a text with."""
    from pyspark.sql import functions as f

    mark = f.lit("\ufeff")
    return f.when(text.startswith(mark), f.substring(text, f.lit(2), f.length(text))).otherwise(text)


def _bad(declared: StructType) -> Column:
    from pyspark.sql import functions as f

    record, text = f.col("__w")["r"], f.col("__text")
    nothing = f.lit(True)
    for field in declared.fields:
        nothing &= record[field.name].isNull()
    misfits = f.array_join(f.array(*_misfits(declared, record)), ", ")
    unfit = f.when(misfits == "", "a value does not match its column").otherwise(
        f.concat(f.lit("values that do not match their columns: "), misfits)
    )
    reason = (
        f.when(f.col(RAW).isNull(), "it has no value")
        .when(~f.is_valid_utf8(text), "it is not UTF-8")
        .when(record.isNull() | f.col("__w")["__end"].isNull(), "it is not one JSON object")
        .when(f.col("__w")[_CORRUPT].isNotNull(), unfit)
        .when(nothing, "it has no value for any declared column")
    )
    fine = (
        record.isNotNull()
        & f.col("__w")["__end"].isNotNull()
        & f.col("__w")[_CORRUPT].isNull()
        & ~nothing
        & f.is_valid_utf8(text)
    )
    return f.when(fine, None).otherwise(f.struct(reason.alias("reason"), f.col(RAW).alias("raw")))


def _misfits(struct: StructType, value: Column, path: tuple[str, ...] = ()) -> list[Column]:
    """For each column and field of a struct its name, if it has a value that was not read; at most some."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType as Struct

    found: list[Column] = []
    for field in struct.fields:
        own = (*path, field.name)
        if len(found) < _NAMED and not any("'" in name or "\\" in name for name in own):
            place = "$" + "".join(f"['{name}']" for name in own)
            there = f.get_json_object(f.col("__text"), place).isNotNull()
            found.append(f.when(value[field.name].isNull() & there, f.lit(".".join(own))))
            if isinstance(field.dataType, Struct):
                found += _misfits(field.dataType, value[field.name], own)
    return found
