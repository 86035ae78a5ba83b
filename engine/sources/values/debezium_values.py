"""Change records of Debezium as rows of their table, each with its operation, position and time.

`ChangeRecords.java` takes the row out of a record, by the schema that the record carries; `json_values` reads it like
any other. Tombstones, heartbeats, transactions, schema changes and messages are not rows, and are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.schema import ValueForm
from engine.schema.format_keys import DEBEZIUM_VALUE
from engine.sources.spec import BAD, ORIGIN, RAW, SKIPPED, Place, SourceSpec, SpecFault
from engine.sources.traits import ChangeFeed
from engine.sources.values.json_values import columns_of
from engine.spark.internals.handles import column_of, java_column, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS: Mapping[str, ValueForm] = DEBEZIUM_VALUE.forms
ON_TRUNCATE = next(key.choices for key in DEBEZIUM_VALUE.keys if key.name == "on_truncate")
OPERATION, POSITION, CHANGED_AT, UNAVAILABLE = "_op", "_position", "_changed_at", "_unavailable"
COLUMNS = f"{OPERATION} string, {POSITION} string, {CHANGED_AT} timestamp, {UNAVAILABLE} array<string>"
_CHANGE, _ROW = "__change", "__row"


def faults(spec: SourceSpec, value: Mapping[str, Any]) -> Iterator[SpecFault]:
    if "key" not in value:
        hint = "Add the columns of the primary key: value: {format: debezium, key: [id]}; of a table without one: []."
        yield SpecFault(("value", "key"), "a value of format 'debezium' needs 'key'", hint, "missing-key")
    policy = value.get("on_truncate", ON_TRUNCATE[0])
    if policy not in ON_TRUNCATE:
        message = f"'on_truncate' cannot be '{policy}'"
        yield SpecFault(("value", "on_truncate"), message, f"Allowed: {', '.join(ON_TRUNCATE)}.")
    elif policy == "apply" and "key" in value and not key_of(value):
        message = "'on_truncate: apply' needs the columns of a key, because it deletes rows of the merged table"
        yield SpecFault(("value", "on_truncate"), message, "Remove it.", "setting-conflict")
    if value.get("flattened"):
        yield from _flattened_faults(spec, value, policy)
    if not spec.schema:
        hint = 'Declare the columns of the table: schema: "id int, name string".'
        yield SpecFault(("schema",), f"source '{spec.name}' has no 'schema'", hint, "missing-key")


def _flattened_faults(spec: SourceSpec, value: Mapping[str, Any], policy: str) -> Iterator[SpecFault]:
    if "topic" not in spec.settings:
        message = "'flattened' needs one 'topic', because offsets order the changes of a key"
        hint = "Remove it, and take ExtractNewRecordState out of the connector; or declare a source per topic."
        yield SpecFault(("value", "flattened"), message, hint, "setting-needs")
    elif policy == "apply":
        message = "'on_truncate: apply' cannot be combined with 'flattened', as flattened records have no TRUNCATE"
        yield SpecFault(("value", "on_truncate"), message, "Remove it.", "setting-conflict")
    elif "key" in value and not key_of(value):
        message = "'flattened' needs the columns of a key: its records do not show which row they change"
        yield SpecFault(("value", "key"), message, "Write key: [id].", "setting-needs")


def columns(_: Mapping[str, Any]) -> str | None:
    return None


def jars() -> tuple[str, ...]:
    return ()


def change_feed(value: Mapping[str, Any]) -> ChangeFeed:
    return ChangeFeed(
        columns=COLUMNS,
        key=key_of(value),
        sequence_by=(POSITION,),
        changed_at=CHANGED_AT,
        delete_when=f"{OPERATION} = 'd'",
        exclude=(OPERATION,),
        unavailable=UNAVAILABLE,
        insert_when=f"{OPERATION} IN ('c', 'r')",
        shows_declaration=True,
        truncate_when=f"{OPERATION} = 't'" if _applies_truncate(value) else "",
    )


def _applies_truncate(value: Mapping[str, Any]) -> bool:
    return value.get("on_truncate") == "apply"


def key_of(value: Mapping[str, Any]) -> tuple[str, ...]:
    key = value.get("key")
    # Another form is reported where the declaration is read.
    return (key,) if isinstance(key, str) else tuple(map(str, key)) if isinstance(key, (list, tuple)) else ()


def decode(frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], _: Place) -> DataFrame:
    return changes(frame, spec, value, key=f"{ORIGIN}.key")


def changes(frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], key: str | None) -> DataFrame:
    """Columns, `_metadata`, `__bad` and `__skipped` from `__raw` and `_metadata`.

    A record that lacks values that did not change is bad, and has their columns in `_unavailable`. So is a TRUNCATE,
    with `t` in `_op`. Only a query whose table applies them may clear the mark (`mark_bad_records.without_marks`).

    `key`: the column with the record's key; None: the record is an object of `key` and `value`.
    """
    from pyspark.sql import functions as f

    session: Any = frame.sparkSession
    schema, zone = columns_of(spec.schema).json(), spec.timezone or session.conf.get("spark.sql.session.timeZone")
    readers = jvm_of(session).headrace
    keys = f.lit(None).cast("binary") if key is None else f.col(key)
    applies_truncate, flattened = _applies_truncate(value), bool(value.get("flattened"))
    change = readers.ChangeRecords.column(
        java_column(keys),
        java_column(f.col(RAW)),
        schema,
        list(key_of(value)),
        applies_truncate,
        flattened,
        key is None,
    )
    frame = frame.select(RAW, ORIGIN, column_of(change).alias(_CHANGE))
    row = readers.JsonRecords.column(java_column(f.col(f"{_CHANGE}.r.row")), None, schema, {}, zone, 0, 0)
    # A TRUNCATE has no values.
    fault = f"coalesce({_CHANGE}.reason, case when {_CHANGE}.r.op <> 't' then {_ROW}.reason end)"
    unapplied = f"""case when {_CHANGE}.r.op = 't' then 'the table was truncated, and the query does not apply it'
        when {_CHANGE}.r.unavailable is not null
        then concat("'", {_CHANGE}.r.unavailable[0], "' was not sent because it did not change") end"""
    reason = f"case when {_CHANGE}.r.skipped is null then coalesce({fault}, {unapplied}) end"
    position, changed_at = f"{_CHANGE}.r.position", f"timestamp_micros({_CHANGE}.r.changed)"
    if flattened:
        position, changed_at = f"lpad(cast({ORIGIN}.offset as string), 19, '0')", f"{ORIGIN}.timestamp"
    return (
        frame.select(RAW, ORIGIN, _CHANGE, column_of(row).alias(_ROW))
        .withColumn("__reason", f.expr(reason))
        .selectExpr(
            f"{_ROW}.r.*",
            f"case when {_CHANGE}.reason is null then {_CHANGE}.r.op end as {OPERATION}",
            f"{position} as {POSITION}",
            f"{changed_at} as {CHANGED_AT}",
            f"case when {fault} is null then {_CHANGE}.r.unavailable end as {UNAVAILABLE}",
            ORIGIN,
            f"case when __reason is not null then struct(__reason as reason, {RAW} as raw) end as {BAD}",
            f"{_CHANGE}.r.skipped as {SKIPPED}",
        )
    )
