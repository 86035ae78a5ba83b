"""Which change records are rows, which are none and which are bad: on real Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.sources.spec import BAD, SKIPPED, SourceSpec
from engine.sources.values import debezium_values
from tests.lab import LabSession
from tests.sources.debezium_records import UNAVAILABLE, change, decimal, digits, of, recorded, struct, tombstone

pytestmark = pytest.mark.spark

TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "id": (of("int32"), "int"),
    "n": (decimal(2), "decimal(12,3)"),
    "nt": (decimal(2), "string"),
    "v": (of("struct", "io.debezium.data.VariableScaleDecimal"), "decimal(20,5)"),
    "d": (of("int32", "io.debezium.time.Date"), "date"),
    "di": (of("int32", "io.debezium.time.Date"), "int"),
    "ms": (of("int64", "io.debezium.time.Timestamp"), "timestamp_ntz"),
    "us": (of("int64", "io.debezium.time.MicroTimestamp"), "timestamp_ntz"),
    "z": (of("string", "io.debezium.time.ZonedTimestamp"), "timestamp"),
    "t3": (of("int32", "io.debezium.time.Time"), "string"),
    "t6": (of("int64", "io.debezium.time.MicroTime"), "string"),
    "j": (of("string", "io.debezium.data.Json"), "struct<a: int>"),
    "jt": (of("string", "io.debezium.data.Json"), "string"),
    "b": (of("bytes"), "binary"),
    "f": (of("double"), "double"),
    "l": (of("array", items=of("int32", "io.debezium.time.Date")), "array<date>"),
    "p": (struct({"x": of("double"), "y": of("double"), "wkb": of("bytes")}), "struct<x: double, y: double>"),
    "o": (of("boolean"), "boolean"),
}
FIELDS = {name: kind for name, (kind, _) in TYPES.items()}
SCHEMA = ", ".join(f"{name} {kind}" for name, (_, kind) in TYPES.items())


def ntz(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001 - a time without a zone


def at(*parts: int) -> datetime:
    """A time as Spark hands it over: without a zone, in this machine's."""
    return datetime(*parts, tzinfo=UTC).astimezone().replace(tzinfo=None)  # type: ignore[arg-type,misc]


# (name, value on the topic, value in the row)
VALUES: list[tuple[str, Any, Any]] = [
    ("n", digits(1250), Decimal("12.500")), ("n", digits(-1), Decimal("-0.010")), ("n", digits(0), Decimal("0.000")),
    ("nt", digits(1250), "12.50"), ("nt", digits(-128), "-1.28"), ("nt", digits(10**20), "1000000000000000000.00"),
    ("v", {"scale": 5, "value": digits(123456789)}, Decimal("1234.56789")), ("v", {"scale": 0, "value": digits(7)}, Decimal("7.00000")),
    ("d", 19844, date(2024, 5, 1)), ("d", -1, date(1969, 12, 31)), ("di", 19844, 19844),
    ("ms", 1_714_550_400_123, ntz(2024, 5, 1, 8, 0, 0, 123000)), ("ms", -1, ntz(1969, 12, 31, 23, 59, 59, 999000)),
    ("us", 1_714_550_400_123_456, ntz(2024, 5, 1, 8, 0, 0, 123456)), ("us", 0, ntz(1970, 1, 1)),
    ("z", "2024-05-01T10:00:00.5+02:00", at(2024, 5, 1, 8, 0, 0, 500000)), ("z", "2024-05-01T08:00:00Z", at(2024, 5, 1, 8)),
    ("t3", 36_000_001, "10:00:00.001"), ("t6", 36_000_000_001, "10:00:00.000001"),
    ("j", '{"a": 1}', {"a": 1}), ("jt", '{"a": 1.10}', '{"a": 1.10}'),
    ("b", "AAEC", b"\0\1\2"), ("f", 1.25, 1.25), ("f", "Infinity", float("inf")), ("f", 1e300, 1e300),
    ("l", [19844, None], [date(2024, 5, 1), None]),
    ("p", {"x": 1.5, "y": 2.0, "wkb": "AAEC", "srid": None}, {"x": 1.5, "y": 2.0}), ("o", True, True),
]  # fmt: skip
# (name, value on the topic, how the reason begins)
MISFITS: list[tuple[str, Any, str]] = [
    ("n", "!", "'n' is not a decimal as Connect writes it: "), ("n", digits(10**15), "'n' is not of type decimal(12,3): "),
    ("d", -622191234, "'d' is not a date of the years 1 to 9999, or is infinite: "),
    ("us", 9223372036825200000, "'us' is not a timestamp of the years 1 to 9999, or is infinite: "),
    ("z", "-infinity", "'z' is not of type timestamp: "),
    ("o", "x", "'o' is not of type boolean: "),
    ("nt", UNAVAILABLE, "'nt' was not sent because it did not change"),
    ("b", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "'b' was not sent because it did not change"),
    ("l", list(UNAVAILABLE.encode()), "'l' was not sent because it did not change"),
    ("l", [UNAVAILABLE], "'l' was not sent because it did not change"),
]  # fmt: skip
MYSQL = {"connector": "mysql", "lsn": None, "file": "mysql-bin.000003", "pos": 154, "row": 1}
DDL = {"source": {}, "ts_ms": 1, "databaseName": "crm", "ddl": "CREATE TABLE t (a int)", "tableChanges": []}
TRANSACTION = {"status": "BEGIN", "id": "571:53195829", "ts_ms": 1, "event_count": None, "data_collections": None}
SKIPPED_RECORDS = {
    tombstone({"id": 1}): "tombstone",
    '{"key": {"id": 1}, "value": {"schema": null, "payload": null}}': "tombstone",
    '{"key": {"serverName": "crm"}, "value": {"ts_ms": 1714550400000}}': "heartbeat",
    json.dumps({"key": {"databaseName": "crm"}, "value": DDL}): "schema change",
    json.dumps({"key": {"id": "571:53195829"}, "value": TRANSACTION}): "transaction",
    change("m", None): "message",
}
BAD_RECORDS = {
    "no json": "not a JSON object",
    '{"id": 1}': "a line must be an object with 'key' and 'value'",
    '{"key": null, "value": null}': "it has neither a key nor a value",
    '{"key": {"id": 1}, "value": []}': "not a JSON object",
    '{"key": {"id": 1}, "value": {"id": 1, "name": "flat"}}': "it is not a change record of Debezium: it has no 'op' and 'source'",
    change("t", None): "the table was truncated, and 'on_truncate' is 'reject'",
    change("x", {"id": 1}, {"id": 1}): "unknown operation: x",
    change("c", None, {"id": 1}): "it has no key",
    change("c", {"id": 1}): "it has no 'after'",
    change("c", {"id": 1, "name": "a"}, {"id": 1}): "the key of the record has the columns id, name and not id",
    change("c", {"no": 1}, {"id": 1}): "the key of the record has the columns no and not id",
    change("c", {"id": 1}, {"id": 1}, lsn=None): "its 'source' has no 'lsn', which orders the changes of a key",
    change("c", {"id": 1}, {"id": 1}, connector="sqlserver"): "its 'source' has no 'change_lsn', which orders the changes of a key",
    change("c", {"id": 1}, {"id": 1}, connector="oracle", scn="7"): "its 'source' has no 'rs_id', which orders the changes of a key",
    change("c", {"id": 1}, {"id": 1}, connector="informix"): "change records of this connector are not supported in this version: informix",
}  # fmt: skip
WITHOUT_SCHEMA: list[tuple[str, Any, Any]] = [
    ("id", 7, 7), ("n", 1.5, Decimal("1.500")), ("v", {"scale": 1, "value": digits(15)}, Decimal("1.50000")), ("jt", "x", "x"),
    ("z", "2024-05-01T08:00:00Z", at(2024, 5, 1, 8)), ("f", "NaN", "nan"), ("o", False, False),
    ("n", digits(1250), "'n' is declared as decimal(12,3), and the record has no schema, which would have its scale; set schemas.enable=true on the converters, or decimal.handling.mode=double on the connector"),
    ("n", "12.50", "'n' is declared as decimal(12,3), and the record has no schema"),
    ("us", 1_714_550_400_123, "'us' is declared as timestamp_ntz, and the record has no schema, which would have its unit"),
    ("d", 19844, "'d' is declared as date, and the record has no schema"),
]  # fmt: skip


def decoded(session: LabSession, lines: list[str], schema: str = SCHEMA, key: tuple[str, ...] = ("id",)) -> list[Any]:
    raw = [(number, line.encode()) for number, line in enumerate(lines)]
    frame = session.spark.createDataFrame(raw, "number int, __raw binary")
    frame = frame.selectExpr("__raw", "named_struct('number', number) as _metadata")
    spec = SourceSpec("s.t", "json", schema)
    value = {"format": "debezium", "key": list(key)}
    rows: list[Any] = debezium_values.changes(frame, spec, value, None).orderBy("_metadata.number").collect()
    return rows


def test_values_by_the_schema_of_the_record(lab_session: LabSession) -> None:
    lines = [change("c", {"id": 1}, {"id": 1, name: given}, fields=FIELDS) for name, given, _ in (*VALUES, *MISFITS)]
    rows = [row.asDict(recursive=True) for row in decoded(lab_session, lines)]
    good, bad = rows[: len(VALUES)], rows[len(VALUES) :]
    assert [row[BAD] for row in good] == [None] * len(VALUES)
    assert [row[name] for row, (name, _, _) in zip(good, VALUES, strict=True)] == [value for _, _, value in VALUES]
    assert [row["id"] for row in good] == [1] * len(VALUES)
    for row, (_, given, reason) in zip(bad, MISFITS, strict=True):
        assert row[BAD]["reason"].startswith(reason), (given, row[BAD])


def test_without_a_schema_nothing_is_guessed(lab_session: LabSession) -> None:
    given = [(name, value) for name, value, _ in WITHOUT_SCHEMA]
    lines = [change("c", {"id": 7}, {"id": 7, name: v}, fields=FIELDS, schemas=False) for name, v in given]
    for row, (name, _, expected) in zip(decoded(lab_session, lines), WITHOUT_SCHEMA, strict=True):
        if row[BAD] is not None:
            assert row[BAD]["reason"].startswith(expected)
        else:
            assert (str(row[name]) if expected == "nan" else row[name]) == expected


def test_records_that_are_no_rows(lab_session: LabSession) -> None:
    rows = decoded(lab_session, [*SKIPPED_RECORDS, *BAD_RECORDS])
    skipped, bad = rows[: len(SKIPPED_RECORDS)], rows[len(SKIPPED_RECORDS) :]
    assert [(row[SKIPPED], row[BAD]) for row in skipped] == [(kind, None) for kind in SKIPPED_RECORDS.values()]
    assert [(row[SKIPPED], row[BAD]["reason"]) for row in bad] == [(None, reason) for reason in BAD_RECORDS.values()]


RECORDED_TYPES = """
    id int, n decimal(12,2), m decimal(19,2), v decimal(20,5), d date, t string, t3 string, ts timestamp_ntz,
    ts3 timestamp_ntz, tz timestamp, ttz string, iv bigint, j struct<a: decimal(3,2)>, jb string, x string, u string,
    ip string, `by` binary, b1 boolean, b3 binary, p struct<x: double, y: double>, r float, l array<string>,
    li array<int>, ld array<date>, ln array<decimal(6,2)>, o boolean, s smallint, b bigint, rg string
"""
RECORDED_ROW = {
    "id": 1, "n": Decimal("-12.50"), "m": Decimal("3.50"), "v": Decimal("12.34560"), "d": date(2024, 5, 1),
    "t": "10:11:12.123456", "t3": "10:11:12.123", "ts": ntz(2024, 5, 1, 10, 11, 12, 123456), "rg": "[1,5)",
    "ts3": ntz(2024, 5, 1, 10, 11, 12, 123000), "tz": at(2024, 5, 1, 8, 11, 12, 123456), "ttz": "08:11:12Z",
    "iv": 93_600_000_000, "j": {"a": Decimal("1.10")}, "jb": '{"a": 1.10}', "x": "<a/>", "ip": "127.0.0.1",
    "u": "00000000-0000-0000-0000-000000000001", "by": b"\0\1\2", "b1": True, "b3": b"\5", "p": {"x": 1.5, "y": 2.0},
    "r": 1.5, "l": ["a", "b"], "li": [1, 2], "ld": [date(2024, 5, 1)], "ln": [Decimal("1.25")], "o": True, "s": 7,
    "b": 2**63 - 1,
}  # fmt: skip


def test_recorded_values(lab_session: LabSession) -> None:
    first, infinite, second = (
        r.asDict(recursive=True) for r in decoded(lab_session, recorded("types"), RECORDED_TYPES)
    )
    assert {name: first[name] for name in RECORDED_ROW} == RECORDED_ROW
    assert infinite[BAD]["reason"].startswith("'d' is not a date of the years 1 to 9999, or is infinite: ")
    assert (second["s"], second["_op"], second[BAD]) == (8, "u", None)
    assert first["_position"] < second["_position"]


def test_recorded_values_that_were_not_sent(lab_session: LabSession) -> None:
    columns = {
        "body": "string",
        "bytes": "binary",
        "li": "array<int>",
        "lt": "array<string>",
        "j": "string",
        "x": "string",
    }
    for name, kind in columns.items():
        (row,) = decoded(lab_session, recorded("unavailable"), f"id int, {name} {kind}")
        assert row[BAD]["reason"] == f"'{name}' was not sent because it did not change"
        assert row["_unavailable"] == [name]
    (row,) = decoded(lab_session, recorded("unavailable"), "id int, k int")
    assert (row["id"], row["k"], row[BAD]) == (1, 1, None)


def test_recorded_records_of_other_kinds(lab_session: LabSession) -> None:
    rows = decoded(lab_session, recorded("others"), "a int, b string", ())
    assert [row[SKIPPED] for row in rows[:4]] == ["transaction", "transaction", "message", "heartbeat"]
    assert [(row["a"], row["_op"]) for row in (rows[4], rows[6])] == [(1, "r"), (2, "c")]
    assert rows[5][BAD]["reason"] == "the table was truncated, and 'on_truncate' is 'reject'"


def test_a_delete_has_the_key_and_nothing_else(lab_session: LabSession) -> None:
    (row,) = decoded(lab_session, [change("d", {"id": 3})], "id int, name string, credit decimal(12,2)")
    assert (row["id"], row["name"], row["credit"], row["_op"], row[BAD]) == (3, None, None, "d", None)
    assert row["_changed_at"] == at(2024, 5, 1, 8)


def test_a_table_without_a_key_is_only_added_to(lab_session: LabSession) -> None:
    rows = decoded(lab_session, [change("c", None, {"id": 1}), change("d", {"id": 1})], key=())
    assert [row[BAD] and row[BAD]["reason"] for row in rows] == [
        None,
        "a row of a table without a key was changed or deleted",
    ]


# Each later than the one before, for one key.
ORDER: list[dict[str, Any]] = [
    {"snapshot": "first", "lsn": 500}, {"snapshot": "last", "lsn": 501},
    # Of a transaction that was open while the snapshot was taken.
    {"snapshot": "false", "lsn": 9}, {"snapshot": None, "lsn": 10}, {"snapshot": "incremental", "lsn": 99}, {"lsn": 100},
    {"lsn": 2**62},
]  # fmt: skip
MYSQL_ORDER: list[dict[str, Any]] = [
    {"snapshot": "true", "pos": 900, "row": 0}, {"file": "mysql-bin.000002", "pos": 4, "row": 0}, {"pos": 154, "row": 0},
    {"pos": 154, "row": 1}, {"pos": 154, "row": 10}, {"pos": 1000, "row": 0}, {"file": "mysql-bin.999999", "pos": 4, "row": 0},
    {"file": "mysql-bin.1000000", "pos": 4, "row": 0},
]  # fmt: skip


# By the examples in the documentation of Debezium 3.5; neither database was run.
SQLSERVER = {"connector": "sqlserver", "lsn": None, "event_serial_no": 1}
SQLSERVER_ORDER: list[dict[str, Any]] = [
    {"snapshot": "true", "change_lsn": None, "commit_lsn": "00000195:000010a0:0003", "event_serial_no": None},
    {"change_lsn": "00000027:00000758:0003"}, {"change_lsn": "00000027:00000758:0005"},
    {"change_lsn": "00000027:00000758:0005", "event_serial_no": 2}, {"change_lsn": "00000027:00000758:000a"},
    {"change_lsn": "00000027:00000ac0:0002"}, {"change_lsn": "0000002a:000003a8:0002"},
]  # fmt: skip
ORACLE = {"connector": "oracle", "lsn": None, "rs_id": "001234.00012345.0124", "ssn": 1}
ORACLE_ORDER: list[dict[str, Any]] = [
    {"snapshot": "true", "scn": "9999999", "rs_id": None, "ssn": None}, {"scn": "999999"}, {"scn": "2122185"},
    # Changes of one transaction.
    {"scn": "2122185", "ssn": 2}, {"scn": "2122185", "rs_id": "001234.00012345.0130"}, {"scn": "18446744073709551615"},
]  # fmt: skip
ORDERS = {
    "postgresql": ORDER,
    "mysql": [{**MYSQL, **one} for one in MYSQL_ORDER],
    "sqlserver": [{**SQLSERVER, **one} for one in SQLSERVER_ORDER],
    "oracle": [{**ORACLE, **one} for one in ORACLE_ORDER],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_position_orders_the_changes_of_a_key(lab_session: LabSession, order: list[dict[str, Any]]) -> None:
    rows = decoded(lab_session, [change("u", {"id": 1}, {"id": 1}, **source) for source in order])
    assert [row[BAD] for row in rows] == [None] * len(order)
    positions = [row["_position"] for row in rows]
    assert positions == sorted(set(positions))
