"""Large values that PostgreSQL does not send again when they did not change: tables keep what they have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab import Lab
from tests.sources.debezium_records import UNAVAILABLE, change, of

pytestmark = pytest.mark.spark

SOURCE = """
sources:
  - name: crm
    tables:
      - name: notes
        format: json
        path: landing/notes
        value: {format: debezium, key: [id]}
        schema: "id int, name string, body string, tags array<int>"
"""
FROM = "from {{ source('crm', 'notes') }}\n"
COMPUTED = "select id, name, upper(body) as loud, concat(name, body) as label, _op, _position, _unavailable"
MODELS = {
    "notes": f"/*---\nstreams: [crm.notes]\nexpectations: [{{name: has_body, check: body is not null}}]\n---*/\nselect * {FROM}",
    "versions": f"/*---\nstreams: [crm.notes]\nhistory: true\n---*/\nselect * {FROM}",
    "labels": f"/*---\nstreams: [crm.notes]\n---*/\n{COMPUTED} {FROM}",
    "changes": f"/*---\nstreams: [crm.notes]\noutput_mode: append\n---*/\nselect * {FROM}",
}
FIELDS = {"id": of("int32"), "name": of("string"), "body": of("string"), "tags": of("array", items=of("int32"))}
NOT_SENT = {"body": UNAVAILABLE, "tags": list(UNAVAILABLE.encode())}
ABSENT = "'body' was not sent because it did not change, and the table does not have its row"
MIXED = "'label' is computed from a value that was sent and one that was not because it did not change"


def note(op: str, number: int, name: str, lsn: int, **values: Any) -> str:
    row = {"id": number, "name": name, **(values or NOT_SENT)}
    return change(op, {"id": number}, row, fields=FIELDS, lsn=lsn, ts_ms=1_714_550_400_000 + lsn)


def land(lab: Lab, name: str, *lines: str) -> None:
    lab.write(f"landing/notes/{name}.jsonl", "\n".join(lines) + "\n")


def rows(lab: Lab, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(list(v) if isinstance(v := r[column], list) else v for column in columns) for r in lab.rows(name)),
        key=str,
    )


def test_a_table_keeps_values_that_were_not_sent(lab: Lab) -> None:
    lab.write("sources/crm.yml", SOURCE)
    for name in ("notes", "versions", "labels", "changes"):
        lab.model(name, MODELS[name])
    first, second = {"body": "b1", "tags": [1]}, {"body": "b2", "tags": [2, 3]}
    # Two changes in the micro-batch of the insert, and one of the next.
    land(lab, "1", note("c", 1, "Ada", 100, **first), note("u", 1, "Ada L", 110), note("c", 2, "Alan", 120, **second))
    result = lab.build()
    assert result.codes() == []
    delete = change("d", {"id": 2}, fields=FIELDS, lsn=140, ts_ms=1_714_550_400_140)
    land(lab, "2", note("u", 1, "Countess", 130), delete, note("u", 3, "Nobody", 150), note("c", 40, "Moved", 160),
         # Sent again, of a row that is deleted by now.
         note("u", 2, "Alan T", 130))  # fmt: skip
    result = lab.build()
    assert result.codes() == []
    assert rows(lab, "notes", "id", "name", "body", "tags") == [(1, "Countess", "b1", [1])]
    assert result.model("notes")["quarantined"] == 2
    assert result.model("notes")["failed_checks"] == {}
    assert rows(lab, "notes__quarantine", "reason") == [(ABSENT,), (ABSENT,)]
    assert rows(lab, "versions", "id", "name", "body", "is_current") == [
        (1, "Ada L", "b1", False), (1, "Ada", "b1", False), (1, "Countess", "b1", True), (2, "Alan T", "b2", False),
        (2, "Alan", "b2", False),
    ]  # fmt: skip
    # A name that changed, and a body that is not there: the table keeps the earlier row.
    assert rows(lab, "labels", "id", "name", "loud", "label") == [(1, "Ada", "B1", "Adab1")]
    assert {row[0] for row in rows(lab, "labels__quarantine", "reason")} == {MIXED, ABSENT.replace("body", "loud")}
    assert [(r["id"], r["body"], r["_unavailable"]) for r in lab.rows("changes") if r["id"] == 3] == [
        (3, None, ["body", "tags"])
    ]
    # Sent again, older than the row, and then a change that follows on it.
    land(lab, "3", note("u", 1, "Ada L", 110), note("u", 1, "Lovelace", 170))
    assert lab.build().codes() == []
    assert rows(lab, "notes", "id", "name", "body", "tags") == [(1, "Lovelace", "b1", [1])]
    assert len(lab.rows("notes__quarantine")) == 2


def test_a_query_that_does_not_name_them_stops(lab: Lab) -> None:
    lab.write("sources/crm.yml", SOURCE)
    lab.model("notes", f"/*---\nstreams: [crm.notes]\n---*/\nselect id, name, body, _op, _position {FROM}")
    land(lab, "1", note("u", 1, "Ada", 100))
    result = lab.run("build")
    assert result.codes() == ["bad-record"]
    assert "'body' was not sent because it did not change" in result.text
