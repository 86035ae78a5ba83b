"""Which JSON is a row and which is a bad record: on real Spark, whatever columns the query uses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.sources.spec import Place, SourceSpec
from engine.sources.values import json_values
from tests.lab import LabSession

pytestmark = pytest.mark.spark

SCHEMA = "id int, a string, d struct<o: string, n: int>, t timestamp, l array<int>"
OBJECT = "not a JSON object; write one per line or message"
NOTHING = "it has no value for any declared column"


def unfit(*misfits: tuple[str, str, str]) -> str:
    return "; ".join(f"'{name}' is not of type {kind}: {text}" for name, kind, text in misfits)


def at(*parts: int) -> datetime:
    """A time as Spark hands it over: without a zone, in this machine's."""
    return datetime(*parts, tzinfo=UTC).astimezone().replace(tzinfo=None)  # type: ignore[arg-type,misc]


GOOD: list[tuple[Any, dict[str, Any]]] = [
    ('{"id":1,"a":"x","d":{"o":"JFK","n":3},"t":"2024-05-01T10:00:00+02:00","l":[1,2]}',
     {"id": 1, "a": "x", "d": {"o": "JFK", "n": 3}, "t": at(2024, 5, 1, 8), "l": [1, 2]}),
    ('{"id":1,"other":{"x":[1]}}', {"id": 1}),
    ('{"a":{"x":1}}', {"a": '{"x":1}'}), ('{"a": { "x" : [1.10,\t1e5] } ,"id":1}', {"a": '{ "x" : [1.10,\t1e5] }', "id": 1}),
    ('{"a":1.10}', {"a": "1.10"}), ('{"a":-0.0}', {"a": "-0.0"}), ('{"a":1E400,"id":1}', {"a": "1E400", "id": 1}),
    ('{"a":12345678901234567890.10 }', {"a": "12345678901234567890.10"}), ('{"a":[1, 2] }', {"a": "[1, 2]"}),
    ('{"a":true}', {"a": "true"}), ('{"a":"\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}), ('{"é":1,"a": "ü"}', {"a": "ü"}),
    ('\ufeff{"a": 1.10 }', {"a": "1.10"}), ('{"d":{"o":1.10}}', {"d": {"o": "1.10", "n": None}}), ('{"a":NaN}', {"a": "NaN"}),
    ('{"a":"}{","id":2}', {"a": "}{", "id": 2}),
    ('\t{"id":1}\r', {"id": 1}),
    ('\ufeff{"id":1}', {"id": 1}),
    ('{"id":null,"a":""}', {"a": ""}),
    ('{"d":{}}', {"d": {"o": None, "n": None}}),
    ('{"id":1,"id":2}', {"id": 2}),
    ('{"l":[null]}', {"l": [None]}),
]  # fmt: skip
BAD: list[tuple[Any, str]] = [
    (None, "it has no value"),
    ("", OBJECT), ("  ", OBJECT), ("garbage", OBJECT), ("null", OBJECT), ("17", OBJECT), ('"text"', OBJECT),
    ("[]", OBJECT), ('[{"id":1}]', OBJECT), ('{"id":1', OBJECT), ('{"id":1}}', OBJECT), ('{"id":1},', OBJECT),
    ('{"id":1} trailing', OBJECT), ('{"id":1}{"id":2}', OBJECT), ('{"id":1}],[{"id":2}', OBJECT),
    ('{"id":1} // note', OBJECT), ('{"r":{"id":1}}', NOTHING),
    ("{}", NOTHING), ('{"id":null}', NOTHING), ('{"ID":1}', NOTHING),
    ('{"id":"x"}', unfit(("id", "int", '"x"'))), ('{"id":"1"}', unfit(("id", "int", '"1"'))),
    ('{"id":1.5}', unfit(("id", "int", "1.5"))), ('{"id":3000000000}', unfit(("id", "int", "3000000000"))),
    ('{"id":1,"t":"soon"}', unfit(("t", "timestamp", '"soon"'))), ('{"id":1,"d":{"n":"x"}}', unfit(("d.n", "int", '"x"'))),
    ('{"id":1,"d":[1, 2]}', unfit(("d", "struct<o:string,n:int>", "[1, 2]"))),
    ('{"id":1,"l":[1,"x",{"id":7}]}', unfit(("l[1]", "int", '"x"'), ("l[2]", "int", '{"id":7}'))),
    ('{"id":"x","t":"soon"}', unfit(("id", "int", '"x"'), ("t", "timestamp", '"soon"'))),
    ('{"id":NaN}', unfit(("id", "int", "NaN"))),
    ('{"l":["a","b","c","d","e","f","g"]}', unfit(*((f"l[{i}]", "int", f'"{c}"') for i, c in enumerate("abcde"))) + "; and 2 more"),
    ('{"id":"' + "x" * 60 + '"}', unfit(("id", "int", '"' + "x" * 49 + "..."))),
    ("\0{\0", OBJECT), ('{"id":1}\0', OBJECT), ("[" * 2000, OBJECT),
    (b'{"id":1,"a":"\xff\xfe"}', "it is not UTF-8"),
]  # fmt: skip


def read(
    session: LabSession, records: list[Any], *, schema: str = SCHEMA, zone: str | None = None, **value: Any
) -> Any:
    raw = [(number, r.encode() if isinstance(r, str) else r) for number, r in enumerate(records)]
    frame = session.spark.createDataFrame(raw, "number int, __raw binary")
    frame = frame.selectExpr("__raw", "named_struct('number', number) as _metadata")
    spec = SourceSpec("s.t", "kafka", schema, timezone=zone)
    return json_values.decode(frame, spec, {"format": "json", **value}, Place(Path()))


def test_good_records_become_rows(lab_session: LabSession) -> None:
    rows = read(lab_session, [record for record, _ in GOOD]).orderBy("_metadata.number").collect()
    for row, (record, expected) in zip(rows, GOOD, strict=True):
        found = {key: value for key, value in row.asDict(recursive=True).items() if key in {"id", "a", "d", "t", "l"}}
        assert row["__bad"] is None, record
        assert found == dict.fromkeys(("id", "a", "d", "t", "l")) | expected, record


def test_bad_records_are_told_with_their_bytes(lab_session: LabSession) -> None:
    rows = read(lab_session, [record for record, _ in BAD]).orderBy("_metadata.number").collect()
    for row, (record, reason) in zip(rows, BAD, strict=True):
        assert row["__bad"] is not None, record
        assert row["__bad"]["reason"] == reason, record
        assert row["__bad"]["raw"] == (record.encode() if isinstance(record, str) else record)


@pytest.mark.nightly_except("used0")
@pytest.mark.parametrize("used", [["a"], ["d.o"], []])
def test_a_misfit_in_a_column_that_is_not_used_is_still_one(lab_session: LabSession, used: list[str]) -> None:
    frame = read(lab_session, ['{"a":"x","id":"no"}', '{"a":"y","d":{"n":"no"}}', '{"a":"z","id":1}'])
    counted = frame.where("__bad is null").select(*used)
    assert counted.count() == 1
    assert frame.selectExpr("__bad is not null as bad").where("bad").count() == 2


def test_each_record_is_read_once_whatever_is_asked_of_it(lab_session: LabSession) -> None:
    frame = read(lab_session, ['{"a":"x"}']).where("__bad is null").where("a = 'x'").where("d.o is null")
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("JsonRecords") == 1, plan


def test_zoneless_times_are_read_in_the_zone_of_the_source(lab_session: LabSession) -> None:
    record = '{"t":"2024-07-01 10:00:00"}'
    assert read(lab_session, [record]).first()["t"] == at(2024, 7, 1, 10)
    assert read(lab_session, [record], zone="America/New_York").first()["t"] == at(2024, 7, 1, 14)


def test_options_change_what_is_json(lab_session: LabSession) -> None:
    record = '{"id":1, /* one */ "t":"01.07.2024 10:00"} // end'
    assert read(lab_session, [record]).first()["__bad"] is not None
    options = {"allowComments": "true", "timestampFormat": "dd.MM.yyyy HH:mm"}
    row = read(lab_session, [record], options=options).first()
    assert (row["__bad"], row["id"], row["t"]) == (None, 1, at(2024, 7, 1, 10))


def test_odd_names_of_columns(lab_session: LabSession) -> None:
    schema = "`a b` int, `it's` int, `x.y` struct<`z``z`: int>"
    good, bad = '{"a b":1,"it\'s":2,"x.y":{"z`z":3}}', '{"a b":"no"}'
    rows = read(lab_session, [good, bad], schema=schema).orderBy("_metadata.number").collect()
    assert rows[0].asDict(recursive=True)["x.y"] == {"z`z": 3}
    assert rows[1]["__bad"]["reason"] == unfit(("a b", "int", '"no"'))
