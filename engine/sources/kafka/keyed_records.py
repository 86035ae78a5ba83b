"""Records of a topic as changes of rows: a record's key names the row, and a record without a value deletes it.

The columns of the key are taken from the record's key: a JSON object with them, or the text of one column. Offsets
order the changes of a key, whose records are all in one partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.relations import quoted
from engine.sources.spec import BAD, ORIGIN, SourceSpec
from engine.sources.traits import ChangeFeed
from engine.sources.values.declared_value import value_of
from engine.spark.internals.handles import column_of, java_column, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPERATION, POSITION, CHANGED_AT = "_op", "_position", "_changed_at"
_KEY: Final = "__key"


# The formats of values that have columns.
VALUES: Final = ("json", "avro")


def is_keyed(spec: SourceSpec) -> bool:
    """Whether records are changes of rows; not of a source that is read as bytes, for a sample of it."""
    return spec.settings.get("on_tombstone") == "delete" and value_of(spec)["format"] in VALUES


def key_of(spec: SourceSpec) -> tuple[str, ...]:
    key = spec.settings.get("key")
    return (key,) if isinstance(key, str) else tuple(map(str, key)) if isinstance(key, (list, tuple)) else ()


def change_feed(spec: SourceSpec) -> ChangeFeed:
    return ChangeFeed(
        columns=f"{OPERATION} string, {POSITION} string, {CHANGED_AT} timestamp",
        key=key_of(spec),
        sequence_by=(POSITION,),
        changed_at=CHANGED_AT,
        delete_when=f"{OPERATION} = 'd'",
        exclude=(OPERATION,),
    )


def with_keys(frame: DataFrame, spec: SourceSpec) -> DataFrame:
    """Decoded records with the columns of their keys, and those of a change; a record without a value is a delete."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    names = {name.lower(): name for name in key_of(spec)}
    fields = [field for field in frame.schema.fields if field.name.lower() in names]
    key = f.col(ORIGIN)["key"]
    session: Any = frame.sparkSession
    zone = spec.timezone or session.conf.get("spark.sql.session.timeZone")
    schema = StructType(fields).json()
    objects = jvm_of(session).headrace.JsonRecords.column(java_column(key), None, schema, {}, zone, 0, 0)
    frame = frame.withColumn(_KEY, column_of(objects))
    text, lacks = key.cast("string"), " or ".join(f"{_KEY}.r.{quoted(field.name)} is null" for field in fields)
    columns = {field.name: f.col(f"{_KEY}.r.{quoted(field.name)}") for field in fields}
    fault = f.when(key.isNull(), "it has no key").when(
        f.coalesce(f.col(f"{_KEY}.reason").isNotNull() | f.expr(lacks), f.lit(False)),
        f"the key of the record is not an object with {', '.join(columns)}",
    )
    if len(fields) == 1 and not isinstance(fields[0].dataType, StructType):
        (field,) = fields
        is_object = f.ltrim(text).startswith("{")
        key_text = text.try_cast(field.dataType)
        columns = {field.name: f.when(is_object, columns[field.name]).otherwise(key_text)}
        unfit = f.when(key_text.isNull(), f"the key of the record is not of type {field.dataType.simpleString()}")
        fault = f.when(is_object | key.isNull(), fault).otherwise(unfit)
    is_tombstone = f.coalesce(f.col(BAD)["raw"].isNull() & f.col(BAD).isNotNull() & key.isNotNull(), f.lit(False))
    bad_type = frame.schema[BAD].dataType
    bad_key = f.struct(fault.alias("reason"), f.col(f"{ORIGIN}.key").alias("raw")).cast(bad_type)
    bad = f.when(~is_tombstone & f.col(BAD).isNotNull(), f.col(BAD)).when(fault.isNotNull(), bad_key)
    changed = {
        OPERATION: f.when(is_tombstone, "d").otherwise("u"),
        POSITION: f.lpad(f.col(ORIGIN)["offset"].cast("string"), 19, "0"),
        CHANGED_AT: f.col(ORIGIN)["timestamp"],
        BAD: bad,
    }
    return frame.withColumns({**columns, **changed}).drop(_KEY)
