"""Tables that are kept from change records, from end to end: a model of three lines over files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
import yaml

from tests.lab import Lab
from tests.sources.debezium_records import CUSTOMERS, RECORDED, change, decimal, digits, tombstone

pytestmark = pytest.mark.spark

SOURCE = """
sources:
  - name: crm
    tables:
      - name: customers
        format: json
        path: landing/customers
        value: {format: debezium, key: [id]}
        schema: "id int, name string, credit decimal(14,3)"
      - name: recorded
        format: json
        path: landing/recorded
        value: {format: debezium, key: [id]}
        schema: "id int, name string, credit decimal(14,3), note string, n int"
"""
ALL = "select * from {{ source('crm', 'customers') }}\n"
MODELS = {
    "customers": f"/*---\nstreams: [crm.customers]\n---*/\n{ALL}",
    "versions": f"/*---\nstreams: [crm.customers]\nhistory: true\n---*/\n{ALL}",
    "changes": f"/*---\nstreams: [crm.customers]\noutput_mode: append\n---*/\n{ALL}",
}
RECORD = "/*---\nstreams: [crm.recorded]\n---*/\nselect * from {{ source('crm', 'recorded') }}\n"
LATER = {"ts_ms": 1_714_550_460_000}


def row(number: int, name: str, credit: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"id": number}, {"id": number, "name": name, "credit": None if credit is None else digits(credit)}


FIRST = [
    change("r", *row(1, "Ada", 1250), snapshot="first", lsn=100), change("r", *row(2, "Alan", -5), snapshot="last", lsn=100),
    change("u", *row(2, "Alan T", 7), lsn=90), change("c", *row(4, "Grace", None), lsn=110),
    '{"key": {"serverName": "crm"}, "value": {"ts_ms": 1714550400000}}',
]  # fmt: skip
SECOND = [
    change("d", {"id": 1}, lsn=120, **LATER), tombstone({"id": 1}),
    # Another key, and another scale.
    change("d", {"id": 4}, lsn=130, **LATER), tombstone({"id": 4}),
    change("c", *row(40, "Grace", 1_234_567), fields={**CUSTOMERS, "credit": decimal(3)}, lsn=130, **LATER),
]  # fmt: skip
# What a connector sends again when it restarts.
REPEATED = [*FIRST[2:4], *SECOND[:1]]


def land(lab: Lab, name: str, lines: list[str]) -> None:
    lab.write(f"landing/customers/{name}.jsonl", "\n".join(lines) + "\n")


def as_recorded(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["id"], row["name"], row["credit"], row["note"], row["n"]


def table(lab: Lab, name: str = "customers") -> set[tuple[Any, ...]]:
    return {(r["id"], r["name"], r["credit"]) for r in lab.rows(name)}


def test_a_table_follows_its_changes(lab: Lab) -> None:
    lab.write("sources/crm.yml", SOURCE)
    for name, text in MODELS.items():
        lab.model(name, text)
    land(lab, "1", FIRST)
    lab.model("recorded", RECORD)
    landing = lab.root / "landing" / "recorded"
    landing.mkdir(parents=True)
    shutil.copy(RECORDED / "customers.jsonl.gz", landing)
    assert lab.build().codes() == []
    expected_rows = json.loads((RECORDED / "customers.json").read_text(encoding="utf-8"))
    assert sorted(map(as_recorded, lab.rows("recorded"))) == sorted(
        (int(number), name, credit and Decimal(credit), note, int(n)) for number, name, credit, note, n in expected_rows
    )
    assert table(lab) == {(1, "Ada", Decimal("12.500")), (2, "Alan T", Decimal("0.070")), (4, "Grace", None)}
    land(lab, "2", SECOND)
    assert lab.build().codes() == []
    expected = {(2, "Alan T", Decimal("0.070")), (40, "Grace", Decimal("1234.567"))}
    assert table(lab) == expected
    land(lab, "3", REPEATED)
    assert lab.build().codes() == []
    assert table(lab) == expected
    assert {(r["id"], r["is_current"]) for r in lab.rows("versions")} == {
        (1, False), (2, False), (2, True), (4, False), (40, True)
    }  # fmt: skip
    assert set(lab.rows("customers")[0]) == {"id", "name", "credit", "_position", "_changed_at"}
    # Every change, the tombstones and the heartbeat not among them.
    assert len(lab.rows("changes")) == 4 + 3 + 3


def test_inspect_prints_a_declaration_that_works(lab: Lab) -> None:
    # Neither the key nor the columns are declared yet.
    lab.write("sources/crm.yml", SOURCE.partition(", key: [id]}")[0] + "}\n")
    landing = lab.root / "landing" / "customers"
    landing.mkdir(parents=True)
    shutil.copy(RECORDED / "customers.jsonl.gz", landing)
    result = lab.run("source", "inspect", "crm.customers")
    assert result.code == 0, result.text
    assert result.out.startswith("# By default the connector does not send TRUNCATE.")
    lab.write("sources/crm.yml", result.out)
    lab.model("customers", MODELS["customers"])
    assert lab.run("compile").codes() == []
    (source,) = yaml.safe_load(result.out)["sources"]
    (declared,) = source["tables"]
    assert declared["value"] == {"format": "debezium", "key": ["id"]}
    assert declared["schema"].split(",\n")[:3] == ["id int", "name string", "credit decimal(14, 3)"]


def test_records_that_are_no_rows_are_no_bad_records(lab: Lab) -> None:
    policy = "format: json\n        on_bad_record: quarantine\n        max_bad_records: 1\n"
    lab.write("sources/crm.yml", SOURCE.replace("format: json\n", policy, 1))
    lab.model("customers", MODELS["customers"])
    land(lab, "1", [*FIRST, *[tombstone({"id": n}) for n in range(30)], change("t", None, lsn=140)])
    result = lab.build()
    assert result.codes() == ["bad-records"]
    assert result.model("customers")["skipped"] == 31
    assert [r["reason"] for r in lab.rows("customers__quarantine")] == [
        "the table was truncated, and 'on_truncate' is 'reject'"
    ]
    assert len(table(lab)) == 3
