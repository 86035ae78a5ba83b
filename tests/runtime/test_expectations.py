"""Expectations on real streams: each policy in stateless and stateful models, counted, exactly once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.lab import EVENTS, Lab, event

pytestmark = pytest.mark.spark

EXPECTATION = """expectations:
  - name: positive
    check: {check}
    on_fail: {policy}
"""
STATELESS = """/*---
streams: {{shop.events: {{max_files_per_trigger: 1}}}}
{expectations}---*/
select id, amount from {{{{ source('shop', 'events') }}}}
"""
HOURLY = """/*---
streams:
  shop.events: {{watermark: at delay 10 minutes, max_files_per_trigger: 1}}
windows:
  hour: tumbling(at, 1 hour)
{expectations}---*/
select hour.start as hour, sum(amount) as amount from {{{{ source('shop', 'events') }}}} group by hour
"""
UNIQUE = """/*---
streams:
  shop.events: {{watermark: at delay 1 hour, dedup: [id], max_files_per_trigger: 1}}
{expectations}---*/
select id, amount from {{{{ source('shop', 'events') }}}}
"""
JOINED = """/*---
streams:
  shop.events: {{watermark: at delay 1 hour, max_files_per_trigger: 1}}
  shop.refunds: {{watermark: refunded_at delay 1 hour, max_files_per_trigger: 1}}
{expectations}---*/
select e.id, e.amount - r.amount as amount
from {{{{ source('shop', 'events') }}}} e
join {{{{ source('shop', 'refunds') }}}} r
  on e.id = r.id and r.refunded_at between e.at and e.at + interval 1 hour
"""
REFUNDS = """      - name: refunds
        format: json
        path: landing/refunds
        schema: "id int, refunded_at timestamp, amount double"
"""
KINDS = {"stateless": STATELESS, "window": HOURLY, "dedup": UNIQUE, "join": JOINED}


def shop(lab: Lab, kind: str, policy: str, check: str = "amount > 0") -> Lab:
    lab.write("sources/shop.yml", EVENTS + REFUNDS)
    lab.model("sales", KINDS[kind].format(expectations=EXPECTATION.format(check=f"{check!r}", policy=policy)))
    # Three rows come out of every kind of model: 5.0, -5.0 and NULL; and 7.0 in a batch of its own.
    lab.land("a", [event(1, "10:05", amount=5.0), event(2, "11:05", amount=-5.0), event(3, "12:05", amount=None)])
    lab.land("b", [event(4, "14:00", amount=7.0)])
    lab.land("c", [event(5, "16:00", amount=8.0)])
    refunds = [
        {"id": n, "refunded_at": f"2024-05-01T{h}:10:00Z", "amount": 0.0} for n, h in ((1, 10), (2, 11), (3, 12))
    ]
    lab.land("a", refunds, "landing/refunds")
    lab.land("b", [{"id": 4, "refunded_at": "2024-05-01T14:10:00Z", "amount": 0.0}], "landing/refunds")
    return lab


def amounts(lab: Lab) -> list[float | None]:
    return sorted((r["amount"] for r in lab.rows("sales") if r["amount"] != 8.0), key=lambda a: (a is None, a))


def quarantined(lab: Lab) -> list[tuple[Any, ...]]:
    rows = lab.rows("sales__quarantine") if lab.table("sales__quarantine") else []
    return sorted((json.loads(r["row"])["amount"] or 0.0, tuple(r["checks"])) for r in rows)


@pytest.mark.nightly_except("window")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_fail_are_counted_and_go_where_the_policy_says(lab: Lab, kind: str) -> None:
    kept = {"warn": [-5.0, 5.0, 7.0, None], "drop": [5.0, 7.0], "quarantine": [5.0, 7.0]}
    for policy, expected in kept.items():
        own = Lab(lab.root / policy, lab.session, lab.capsys)
        result = shop(own, kind, policy).build().model("sales")
        assert amounts(own) == expected, policy
        assert result["failed_checks"] == {"positive": 2}, policy
        assert quarantined(own) == ([(-5.0, ("positive",)), (0.0, ("positive",))] if policy == "quarantine" else [])
        assert result["quarantined"] == (2 if policy == "quarantine" else 0)
        assert result["rows_out"] == len(own.rows("sales"))
        before = own.snapshot("sales"), own.snapshot("sales__quarantine")
        again = own.build().model("sales")
        assert (again["status"], again["failed_checks"]) == ("unchanged", {})
        assert before == (own.snapshot("sales"), own.snapshot("sales__quarantine"))


@pytest.mark.nightly_except("stateless")
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_must_not_be_stops_the_model_and_nothing_of_its_batch_is_written(lab: Lab, kind: str) -> None:
    shop(lab, kind, "fail", "amount <> 7")
    lab.land("d", [event(6, "18:00")])
    failed = lab.run("build")
    assert failed.code == 1
    assert failed.codes() == ["expectation-failed"]
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed"]
    # NULL fails too: it is in the first batch that has rows.
    assert "'positive'" in found["message"]
    assert '"amount":null' in found["message"]
    assert "one row fails" in found["message"]
    assert found["file"] == "models/sales.sql"
    table = lab.table("sales")
    assert table is not None
    before = table.snapshot
    again = lab.run("build")
    assert again.codes() == ["expectation-failed"]
    assert lab.snapshot("sales") == before
    # The way on: the same batch is computed again, and its rows go elsewhere.
    lab.model("sales", (lab.root / "models/sales.sql").read_text().replace("on_fail: fail", "on_fail: quarantine"))
    lab.build()
    assert amounts(lab) == [-5.0, 1.0, 5.0] if kind == "stateless" else [-5.0, 5.0]
    assert quarantined(lab) == [(0.0, ("positive",)), (7.0, ("positive",))]


def test_up_to_three_rows_are_shown(lab: Lab) -> None:
    lab.model("sales", STATELESS.format(expectations=EXPECTATION.format(check="id < 100", policy="fail")))
    lab.land("a", [event(100 + n) for n in range(50)])
    failed = lab.run("build")
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed"]
    assert found["message"].startswith("50 rows fail the expectation 'positive' (id < 100): {")
    assert 1 <= found["message"].count('{"id":1') <= 3
    assert "Traceback" not in failed.text


def test_a_row_that_fails_several_checks_is_quarantined_with_all_their_names(lab: Lab) -> None:
    checks = [
        ("small", "amount < 10", "drop"),
        ("known", "kind in ('paid', 'open')", "quarantine"),
        ("early", "id < 3", "warn"),
    ]
    listed = "".join(f'  - {{name: {n}, check: "{c}", on_fail: {p}}}\n' for n, c, p in checks)
    text = STATELESS.replace("id, amount", "id, amount, kind, at")
    lab.model("sales", text.format(expectations=f"expectations:\n{listed}"))
    rows = [event(1), event(2, amount=50.0), event(3, amount=2.0), event(4, amount=70.0)]
    rows[3]["kind"] = "lost"
    lab.land("a", rows)
    result = lab.build().model("sales")
    assert result["failed_checks"] == {"small": 2, "known": 1, "early": 2}
    assert lab.ids("sales") == [1, 3]
    (row,) = lab.rows("sales__quarantine")
    assert row["checks"] == ["small", "known", "early"]
    assert json.loads(row["row"]) == {"id": 4, "amount": 70.0, "kind": "lost", "at": "2024-05-01T10:00:00.000000Z"}
    assert (row["reason"], row["raw"], row["origin"], row["batch_id"]) == ("it fails expectations", None, None, 0)
    assert abs((datetime.now(UTC) - row["quarantined_at"]).total_seconds()) < 3600


def test_a_check_that_cannot_be_computed_fails_its_row_not_the_model(lab: Lab) -> None:
    check = EXPECTATION.format(check="cast(kind as int) > 0", policy="quarantine")
    lab.model("sales", STATELESS.replace("id, amount", "id, kind").format(expectations=check))
    lab.land("a", [event(1, kind="12"), event(2)])
    assert lab.build().model("sales")["failed_checks"] == {"positive": 1}
    assert [r["id"] for r in lab.rows("sales")] == [1]


def test_a_batch_table_and_its_quarantine_are_those_of_the_last_build(lab: Lab) -> None:
    text = (
        "/*---\n"
        + EXPECTATION.format(check="amount > 0", policy="{policy}")
        + "---*/\nselect id, amount from {{{{ source('shop', 'events') }}}}\n"
    )
    lab.model("sales", text.format(policy="quarantine"))
    lab.land("a", [event(1), event(2, amount=-1.0)])
    first = lab.build().model("sales")
    assert (first["failed_checks"], first["quarantined"], first["rows_out"]) == ({"positive": 1}, 1, 1)
    assert quarantined(lab) == [(-1.0, ("positive",))]
    lab.land("a", [event(1), event(2, amount=2.0)])
    again = lab.build().model("sales")
    assert (again["failed_checks"], again["quarantined"], again["rows_out"]) == ({}, 0, 2)
    assert quarantined(lab) == []
    lab.land("b", [event(3, amount=-3.0)])
    for policy, code, rows in (("fail", 1, [1, 2]), ("warn", 0, [1, 2, 3]), ("drop", 0, [1, 2])):
        lab.model("sales", text.format(policy=policy))
        result = lab.run("build")
        assert result.code == code, result.text
        assert lab.ids("sales") == rows
        assert result.codes() == (["expectation-failed"] if policy == "fail" else [])
        if code == 0:
            assert result.model("sales")["failed_checks"] == {"positive": 1}


def test_a_table_of_the_name_that_is_somebody_elses_is_left_alone(lab: Lab) -> None:
    shop(lab, "stateless", "quarantine")
    assert lab.session is not None
    spark = lab.session.spark
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.sales__quarantine (mine int) using iceberg")
    refused = lab.run("build")
    assert refused.codes() == ["name-taken"]
    assert "sales__quarantine was not made by 'sales'" in refused.text
    assert lab.table("sales") is None
