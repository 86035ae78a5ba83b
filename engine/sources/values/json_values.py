"""JSON objects as columns: the one reader of values in Kafka and of lines in files.

Spark's own readers turn what they cannot read into NULLs, and they let pass (all measured): text after the object,
even a second object; an array, as several rows; `null`; an object with no value for any declared column. So a record
is read inside an object of our own, `{"r": <record>, "__end": 1}`, in which text that does not belong is an error;
and it is bad unless an object came out with a value for some declared column.

Reading does not depend on the columns that a query uses: from_json prunes its schema only if it has no options.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
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
# A text is one call to Java; an expression made of PySpark's functions is one for each of its parts (measured: 80 of
# the 400 ms of a small build). Names of other characters are never part of a text.
_IN_TEXT = re.compile(r"\w+", re.ASCII)
_TEXT = (
    f"case when startswith(cast({RAW} as string), '\ufeff') then substring(cast({RAW} as string), 2) "
    f"else cast({RAW} as string) end as __text"
)
# The line end closes a comment, should options allow them.
_WRAPPED = """concat('{"r":', __text, char(10), ',"__end":1}')"""
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
    # A condition on what was read would be moved below the reading and read each record twice (measured); it is not
    # moved over an expression that Spark takes for a random one.
    read = f.when(f.expr("spark_partition_id() >= 0"), f.from_json(f.expr(_WRAPPED), wrapper, settings))
    frame = frame.selectExpr(RAW, ORIGIN, _TEXT).select(RAW, ORIGIN, "__text", read.alias("__w"))
    return frame.select("__w.r.*", ORIGIN, _bad(declared).alias(BAD))


def columns_of(ddl: str) -> StructType:
    """The columns of a schema, as Spark has them."""
    from pyspark.sql.types import StructType as Struct

    found = Struct.fromDDL(ddl)
    if not isinstance(found, Struct):
        raise TypeError(ddl)
    return found


def _bad(declared: StructType) -> Column:
    from pyspark.sql import functions as f

    nothing = _all_null([field.name for field in declared.fields])
    misfits = f.array_join(f.array(*_misfits(declared)), ", ")
    unfit = f.when(misfits == "", "a value does not match its column").otherwise(
        f.concat(f.lit("values that do not match their columns: "), misfits)
    )
    reason = (
        f.when(f.expr(f"{RAW} is null"), "it has no value")
        .when(f.expr("not is_valid_utf8(__text)"), "it is not UTF-8")
        .when(f.expr("__w.r is null or __w.__end is null"), "not a JSON object; write one per line or message")
        .when(f.expr(f"__w.{_CORRUPT} is not null"), unfit)
        .when(nothing, "it has no value for any declared column")
    )
    whole = f.expr(f"__w.r is not null and __w.__end is not null and __w.{_CORRUPT} is null")
    fine = whole & ~nothing & f.expr("is_valid_utf8(__text)")
    return f.when(fine, None).otherwise(f.struct(reason.alias("reason"), f.expr(f"{RAW} as raw")))


def _all_null(names: Collection[str]) -> Column:
    """Whether all of these columns are NULL."""
    from pyspark.sql import functions as f

    plain = [name for name in names if _IN_TEXT.fullmatch(name)]
    nothing = f.expr(" and ".join(f"__w.r.`{name}` is null" for name in plain) or "true")
    for name in names:
        if not _IN_TEXT.fullmatch(name):
            nothing &= f.col("__w")["r"][name].isNull()
    return nothing


def _misfits(struct: StructType, path: tuple[str, ...] = ()) -> list[Column]:
    """For each column and field of a struct its name, if it has a value that was not read; at most some."""
    from pyspark.sql.types import StructType as Struct

    found: list[Column] = []
    for field in struct.fields:
        own = (*path, field.name)
        if len(found) < _NAMED and not any("'" in name or "\\" in name for name in own):
            found.append(_misfit(own))
            if isinstance(field.dataType, Struct):
                found += _misfits(field.dataType, own)
    return found


def _misfit(path: tuple[str, ...]) -> Column:
    """The name of a column or field that is NULL and has a value in the text."""
    from pyspark.sql import functions as f

    name = ".".join(path)
    if all(map(_IN_TEXT.fullmatch, path)):
        value = ".".join(f"`{part}`" for part in path)
        return f.expr(
            f"case when __w.r.{value} is null and get_json_object(__text, '$.{name}') is not null then '{name}' end"
        )
    column = f.col("__w")["r"]
    for part in path:
        column = column[part]
    there = f.get_json_object(f.col("__text"), "$" + "".join(f"['{part}']" for part in path)).isNotNull()
    return f.when(column.isNull() & there, f.lit(name))
