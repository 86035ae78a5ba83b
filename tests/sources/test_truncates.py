"""A TRUNCATE of the source's table: the merged table loses the rows that are older than it."""

from __future__ import annotations

import pytest

from tests.lab import Lab
from tests.sources.debezium_records import change, digits

pytestmark = pytest.mark.spark

SOURCE = """
sources:
  - name: crm
    tables:
      - name: customers
        format: json
        path: landing/customers
        value: {format: debezium, key: [id], on_truncate: apply}
        schema: "id int, name string, credit decimal(12,2)"
"""
ALL = "select * from {{ source('crm', 'customers') }}\n"
NAMED = "expectations: [{name: named, check: name is not null, on_fail: fail}]\n"
MODELS = {
    "customers": f"/*---\nstreams: [crm.customers]\n{NAMED}---*/\n{ALL}",
    "versions": f"/*---\nstreams: [crm.customers]\nhistory: true\n---*/\n{ALL}",
    "changes": f"/*---\nstreams: [crm.customers]\noutput_mode: append\n---*/\n{ALL}",
}


def row(op: str, number: int, name: str, lsn: int) -> str:
    values = {"id": number, "name": name, "credit": digits(number)}
    return change(op, {"id": number}, values, lsn=lsn, ts_ms=1_714_550_400_000 + lsn)


def truncate(lsn: int) -> str:
    return change("t", None, lsn=lsn, ts_ms=1_714_550_400_000 + lsn)


def land(lab: Lab, name: str, *lines: str) -> None:
    lab.write(f"landing/customers/{name}.jsonl", "\n".join(lines) + "\n")


def names(lab: Lab, table: str = "customers") -> list[str]:
    return sorted(r["name"] for r in lab.rows(table))


def test_a_truncate_deletes_older_rows(lab: Lab) -> None:
    lab.write("sources/crm.yml", SOURCE)
    for name, text in MODELS.items():
        lab.model(name, text)
    land(lab, "1", row("r", 1, "Ada", 100), row("c", 2, "Alan", 110), row("c", 3, "Grace", 120))
    assert lab.build().codes() == []
    # Before and after it, of a key that the table has, and of ones that it does not have.
    land(lab, "2", row("u", 1, "Ada L", 130), row("c", 4, "Kurt", 135), truncate(140), row("c", 2, "Alan T", 150))
    assert lab.build().codes() == []
    assert names(lab) == ["Alan T"]
    # Sent again; the last one had not arrived before.
    land(lab, "3", row("u", 1, "Ada L", 130), row("c", 4, "Kurt", 135), row("c", 5, "Emmy", 136))
    result = lab.build()
    assert result.codes() == []
    assert names(lab) == ["Alan T"]
    ends = {(r["name"], r["_position"]): (r["is_current"], r["valid_to"]) for r in lab.rows("versions")}
    assert [name for (name, _), (is_current, _) in ends.items() if is_current] == ["Alan T"]
    truncated_at = {r["_changed_at"] for r in lab.rows("changes") if r["_op"] == "t"}
    assert len(truncated_at) == 1
    assert {
        name: end for (name, _), (_, end) in ends.items() if name in {"Ada L", "Alan", "Grace", "Kurt", "Emmy"}
    } == (dict.fromkeys(("Ada L", "Alan", "Grace", "Kurt", "Emmy"), *truncated_at))
    # Twice in one micro-batch.
    land(lab, "4", truncate(160), row("c", 6, "Ada", 170), truncate(180))
    assert lab.build().codes() == []
    assert lab.rows("customers") == []
    assert not any(r["is_current"] for r in lab.rows("versions"))
    assert len(lab.rows("versions")) == 8


def test_a_model_that_does_not_merge_by_its_source_stops(lab: Lab) -> None:
    lab.write("sources/crm.yml", SOURCE)
    header = "streams: [crm.customers]\nunique_key: id\nsequence_by: _position\ndelete_when: _op = 'd'\n"
    lab.model("customers", f"/*---\n{header}---*/\n{ALL}")
    land(lab, "1", row("r", 1, "Ada", 100), truncate(140))
    result = lab.run("build")
    assert result.codes() == ["bad-record"]
    assert "the table was truncated, and the query does not apply it" in result.text
