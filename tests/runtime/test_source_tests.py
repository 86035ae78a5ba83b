"""Tests of sources on Spark: files and Iceberg tables, before the models that read them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.node_ids import shown_name
from tests.lab import Lab, event

pytestmark = pytest.mark.spark

SHOP = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: landing/events
        schema: "id int, at timestamp, kind string, amount double"
        on_bad_record: {policy}
        data_tests:
          - expression: {{expression: amount > 0, severity: warn}}
        columns:
          id:
            tests:
              - not_null
              - unique: {{store_failures: true}}
          kind:
            tests:
              - accepted_values: {{values: [paid], where: id > 0}}
              - relationships: {{to: "source('lake', 'kinds')", field: kind, name: known_kind}}
  - name: lake
    tables:
      - name: kinds
        format: iceberg
        table: {schema}.kinds
        columns:
          kind:
            tests: [unique]
"""
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, kind from {{ source('shop', 'events') }}\n"
COUNTED = "/*---\nmaterialized: table\n---*/\nselect count(*) as n from {{ ref('paid') }}\n"


def ended(result: Any) -> dict[str, tuple[str, int]]:
    tests = [e for e in result.events if e["event"] == "TestFinished"]
    return {shown_name(e["node"]): (e["status"], e["failures"]) for e in tests}


def prepare(lab: Lab, policy: str = "drop") -> Lab:
    assert lab.session is not None
    lab.session.spark.sql(f"create namespace if not exists lake.{lab.schema}")
    lab.session.spark.sql(f"create or replace table lake.{lab.schema}.kinds using iceberg as select 'paid' as kind")
    lab.write("sources/shop.yml", SHOP.format(schema=lab.schema, policy=policy))
    lab.model("paid", PAID)
    lab.model("counted", COUNTED)
    lab.land("a", [event(1), event(2)])
    return lab


def test_sources_are_tested_before_what_reads_them(lab: Lab) -> None:
    prepare(lab)
    built = lab.build()
    assert set(ended(built).values()) == {("pass", 0)}
    names = [e["node"] for e in built.events if e["event"] in {"TestFinished", "ModelFinished"}]
    assert names.index("test.source_unique_shop_events_id.3fff477b8b") < names.index("model.paid")

    # Rows that fail: the stream does not read them, and nothing below it is built.
    lab.land("b", [event(2), event(None, kind="lost", amount=-1.0), event(3, kind="lost")])
    failed = lab.run("build")
    assert failed.code == 1
    assert ended(failed) == {
        "source_expression_shop_events": ("warn", 1),
        "source_not_null_shop_events_id": ("fail", 1),
        "source_unique_shop_events_id": ("fail", 1),
        "source_accepted_values_shop_events_kind": ("fail", 1),
        "known_kind": ("fail", 2),
        "source_unique_lake_kinds_kind": ("pass", 0),
    }
    assert [failed.model(name)["status"] for name in ("paid", "counted")] == ["skipped", "skipped"]
    assert len(lab.rows("paid")) == 2
    assert lab.session is not None
    stored = lab.session.spark.table(f"lake.{lab.schema}_test_failures.source_unique_shop_events_id")
    assert [r[0] for r in stored.collect()] == [2]

    # The model alone is built as in dbt; a source alone is tested.
    tested = lab.run("test", "-s", "source:lake.kinds")
    assert (tested.code, set(ended(tested))) == (0, {"source_unique_lake_kinds_kind"})
    lab.build("-s", "paid")
    assert len(lab.rows("paid")) == 5
    # The table as it is now.
    lab.session.spark.sql(f"insert into lake.{lab.schema}.kinds values ('lost'), ('lost')")
    again = lab.run("test", "-s", "known_kind source:lake")
    assert ended(again) == {"known_kind": ("pass", 0), "source_unique_lake_kinds_kind": ("fail", 1)}


def test_what_cannot_be_read_is_told_at_the_test(lab: Lab) -> None:
    prepare(lab, "fail")
    assert lab.session is not None
    lab.write("landing/events/bad.json", "{\n")
    lab.session.spark.sql(f"drop table lake.{lab.schema}.kinds")
    gone = lab.run("test", "-s", "source:lake")
    errors = [(e["code"], e["file"]) for e in gone.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert (gone.code, errors) == (1, [("source-table", "sources/shop.yml")]), gone.text
    result = lab.run("test", "-s", "source_not_null_shop_events_id")
    (told,) = [e for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert (result.code, told["code"]) == (1, "bad-record"), result.out
    assert (told["file"], told["line"]) == ("sources/shop.yml", 15)
    # With `drop` a bad record is no row; the tests look at the others.
    lab.write("sources/shop.yml", SHOP.format(schema=lab.schema, policy="drop"))
    assert lab.run("test", "-s", "source_not_null_shop_events_id").code == 0
