"""Values that are taken as they are: text (`string`) and binary (`bytes`), in one column called `value`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.schema import ValueForm
from engine.schema.format_keys import PLAIN_VALUE
from engine.sources.spec import BAD, ORIGIN, RAW, Place, SourceSpec, SpecFault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS: Mapping[str, ValueForm] = PLAIN_VALUE.forms
_TYPES = {"string": "string", "bytes": "binary"}


def faults(spec: SourceSpec, value: Mapping[str, Any]) -> list[SpecFault]:
    if not spec.schema:
        return []
    message = f"a value of format '{value['format']}' has one column, value {_TYPES[value['format']]}"
    return [SpecFault(("schema",), message, "Remove the schema.", "setting-conflict", at_key=True)]


def columns(value: Mapping[str, Any]) -> str:
    return f"value {_TYPES[value['format']]}"


def jars() -> tuple[str, ...]:
    return ()


def decode(frame: DataFrame, _: SourceSpec, value: Mapping[str, Any], __: Place) -> DataFrame:
    """The bytes as they are; a record without a value is bad, and so is text that is not UTF-8."""
    from pyspark.sql import functions as f

    empty = f.when(f.col(RAW).isNull(), "it has no value")
    text = f.col(RAW).cast("string")
    reason = empty if value["format"] == "bytes" else empty.when(~f.is_valid_utf8(text), "it is not UTF-8")
    value_column = f.col(RAW) if value["format"] == "bytes" else text
    bad_record = f.struct(reason.alias("reason"), f.col(RAW).alias("raw"))
    return frame.select(value_column.alias("value"), ORIGIN, f.when(reason.isNotNull(), bad_record).alias(BAD))
