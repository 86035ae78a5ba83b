"""Tests that passed do not run again: real builds, in which only what changed is tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree as ET

import pytest

from engine.cli.main import invoke
from engine.lake.commits import STAGED
from tests.lab import EVENTS, Lab, Result

pytestmark = pytest.mark.spark

PAID = """/*---
streams: [shop.events]
columns:
  id: {tests: [not_null, unique]}
  amount: {tests: [{expression: {expression: "> 0", name: positive, store_failures: true}}]}
---*/
select id, at, amount from {{ source('shop', 'events') }}
"""
TOTAL = "/*---\nmaterialized: view\ncolumns: {total: {tests: [not_null]}}\n---*/\nselect sum(amount) as total from {{ ref('paid') }}\n"
KINDS = "/*---\ncolumns: {kind: {tests: [unique]}}\n---*/\nselect * from values ('a'), ('b') as t(kind)\n"
SOURCE = f"{EVENTS}        columns: {{id: {{tests: [not_null]}}}}\n"
UNITS = """
unit_tests:
  - name: all_pass
    model: paid
    steps:
      - given: {shop.events: [{id: 1, amount: 2}]}
        expect: {rows: [{id: 1, amount: 2}]}
  - name: sums
    model: total
    given: {paid: [{amount: 1}, {amount: 2}]}
    expect: {rows: [{total: 3}]}
"""
OF_PAID = {
    "test.not_null_paid_id.9bebb71ca0",
    "test.unique_paid_id.dc0cce9190",
    "test.positive.7b4f14d10b",
    "test.not_null_total_total.5d7d937f7c",
}
OTHERS = {"test.unique_kinds_kind.97d26f70c2", "unit_test.paid.all_pass", "unit_test.total.sums"}
OF_SOURCE = {"test.source_not_null_shop_events_id.abc712c0bb"}


def event(number: int, amount: float = 1.0) -> dict[str, Any]:
    return {"id": number, "at": "2024-05-01T10:00:00Z", "kind": "paid", "amount": amount}


@pytest.fixture
def shop(lab: Lab) -> Lab:
    lab.write("sources/shop.yml", SOURCE)
    lab.model("paid", PAID)
    lab.model("total", TOTAL)
    lab.model("kinds", KINDS)
    lab.write("tests/units.yml", UNITS)
    lab.land("a", [event(1), event(2)])
    return lab


@contextmanager
def no_session() -> Iterator[None]:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a session was opened")

    with patch("engine.runtime.build.spark_session", opened):
        yield


def ended(result: Result) -> dict[str, tuple[str, bool]]:
    """How each test ended, and whether that is an earlier pass."""
    events = [e for e in result.events if e["event"] == "TestFinished"]
    return {e["node"]: (e["status"], bool(e["passed_at"])) for e in events}


def cached(result: Result) -> set[str]:
    found = ended(result)
    assert all(status == "pass" for status, early in found.values() if early)
    return {node for node, (_, early) in found.items() if early}


def test_a_build_with_nothing_new_ends_without_java(shop: Lab) -> None:
    first = shop.build()
    assert (cached(first), set(ended(first))) == (set(), OF_PAID | OTHERS | OF_SOURCE)
    with no_session():
        second = shop.build()
        assert cached(second) == OF_PAID | OTHERS | OF_SOURCE
        assert {e["status"] for e in second.events if e["event"] == "ModelFinished"} == {"unchanged"}
        assert cached(shop.run("test")) == cached(second)
        summary = second.events[-1]
        assert (summary["PASS"], summary["CACHED"], summary["TOTAL"]) == (11, 8, 11)
    times = {e["node"]: e["at"] for e in first.events if e["event"] == "TestFinished"}
    assert {e["node"]: e["passed_at"] for e in second.events if e["event"] == "TestFinished"} == times


def test_new_rows_are_tested_and_the_rest_is_cached(shop: Lab) -> None:
    shop.build()
    shop.land("b", [event(3)])
    second = shop.build()
    assert cached(second) == OTHERS
    assert set(ended(second)) == OF_PAID | OTHERS | OF_SOURCE
    with no_session():
        assert cached(shop.build()) == OF_PAID | OTHERS | OF_SOURCE
    # A row that fails: what failed before is not cached, nor what warns.
    shop.land("c", [event(3, -1.0)])
    failed = shop.run("build")
    assert failed.code == 1
    assert {node for node, (status, _) in ended(failed).items() if status == "fail"} == {
        "test.unique_paid_id.dc0cce9190", "test.positive.7b4f14d10b",
    }  # fmt: skip
    again = shop.run("test")
    # The view was not built, so that its test was skipped.
    assert cached(again) == {"test.not_null_paid_id.9bebb71ca0"} | OTHERS | OF_SOURCE
    # The test is corrected: it runs, and is cached from then on.
    shop.model("paid", PAID.replace("not_null, unique", "not_null, {unique: {severity: warn}}").replace("> 0", "< 9"))
    corrected = shop.run("test")
    assert (corrected.code, ended(corrected)["test.unique_paid_id.dc0cce9190"][0]) == (0, "warn")
    assert ended(corrected)["test.positive.7b4f14d10b"] == ("pass", False)
    last = shop.run("test")
    assert ended(last)["test.positive.7b4f14d10b"] == ("pass", True)
    assert ended(last)["test.unique_paid_id.dc0cce9190"] == ("warn", False)


def test_a_commit_by_somebody_else_is_tested(shop: Lab) -> None:
    shop.build()
    spark = shop.session.spark  # type: ignore[union-attr]
    spark.sql(f"insert into lake.{shop.schema}.kinds values ('b')")
    found = shop.run("test")
    assert ended(found)["test.unique_kinds_kind.97d26f70c2"] == ("fail", False)
    assert cached(found) == OF_PAID | OTHERS - {"test.unique_kinds_kind.97d26f70c2"} | OF_SOURCE
    # Dropped and recreated, with the rows that passed.
    spark.sql(f"drop table lake.{shop.schema}.kinds")
    spark.sql(f"create table lake.{shop.schema}.kinds using iceberg as select * from values ('a'), ('b') as t(kind)")
    assert ended(shop.run("test"))["test.unique_kinds_kind.97d26f70c2"] == ("pass", False)
    assert ended(shop.run("test"))["test.unique_kinds_kind.97d26f70c2"] == ("pass", True)


def test_a_table_that_is_written_while_its_test_runs_is_tested_again(shop: Lab) -> None:
    from engine.runtime.data_tests import run_data_test

    judged = run_data_test.judged

    def and_then(*arguments: Any) -> Any:
        shop.session.spark.sql(f"insert into lake.{shop.schema}.kinds values ('b')")  # type: ignore[union-attr]
        return judged(*arguments)

    shop.run("run")
    with patch.object(run_data_test, "judged", and_then):
        assert ended(shop.run("test", "-s", "kinds")) == {"test.unique_kinds_kind.97d26f70c2": ("pass", False)}
    assert ended(shop.run("test", "-s", "kinds")) == {"test.unique_kinds_kind.97d26f70c2": ("fail", False)}


@pytest.mark.nightly
def test_every_test_runs_when_asked_for_and_after_clean(shop: Lab) -> None:
    shop.build()
    assert cached(shop.run("build", "--no-cache")) == set()
    with no_session():
        assert cached(shop.run("build")) == OF_PAID | OTHERS | OF_SOURCE
    assert shop.run("clean").code == 0
    assert cached(shop.run("test")) == set()


@pytest.mark.nightly
def test_without_a_folder_of_the_user_every_test_runs(shop: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_CACHE", "relative")
    shop.build()
    assert cached(shop.build()) == set()


def test_people_and_ci_see_which_tests_did_not_run(shop: Lab) -> None:
    shop.build()
    assert shop.capsys is not None
    shop.capsys.readouterr()
    report = shop.root / "tests.xml"
    assert invoke(["test", "-s", "kinds", "--junit-xml", str(report), "--project-dir", str(shop.root)]) == 0
    out = shop.capsys.readouterr().out
    assert "PASS unique_kinds_kind" in out
    assert "[PASS (cached)]" in out
    assert "Done. PASS=1 (1 cached) WARN=0" in out
    (case,) = ET.parse(report).iter("testcase")
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties["cached"] == "true"
    results = json.loads((shop.root / "target/run_results.json").read_text())["results"]
    assert [(r["status"], r["adapter_response"]["cached"]) for r in results] == [("pass", True)]
    assert properties["passed_at"] == results[0]["adapter_response"]["passed_at"]
    assert invoke(["plan", "--project-dir", str(shop.root)]) == 0
    planned = shop.capsys.readouterr().out.splitlines()[-1]
    assert {"2 cached unit tests", "6 cached data tests"} <= set(planned.split(", "))


GATED = PAID.replace("streams", "publish: on_tests_pass\nstreams")


def test_cached_passes_publish_staged_rows_as_any_pass_does(shop: Lab) -> None:
    shop.model("paid", GATED)
    shop.build()
    with no_session():
        assert cached(shop.build()) == OF_PAID | OTHERS | OF_SOURCE
    shop.land("b", [event(2)])
    held = shop.run("build")
    assert (held.code, held.codes()) == (1, ["not-published"])
    assert ended(held)["test.not_null_paid_id.9bebb71ca0"] == ("pass", False)
    table = shop.table("paid")
    assert table is not None
    assert STAGED in table.branches
    # One test was too strict; of the other two the pass of just these rows counts, and they are published.
    shop.model("paid", GATED.replace("not_null, unique", "not_null, {unique: {error_if: '> 5', warn_if: '> 5'}}"))
    published = shop.run("test", "-s", "paid")
    assert (published.code, published.codes()) == (0, [])
    assert cached(published) == {
        "test.not_null_paid_id.9bebb71ca0",
        "test.positive.7b4f14d10b",
        "unit_test.paid.all_pass",
    }
    table = shop.table("paid")
    assert table is not None
    assert STAGED not in table.branches
    assert len(shop.rows("paid")) == 3
    # Three rows, one of them a duplicate that is allowed: not a pass without failing rows.
    assert "test.unique_paid_id.dc0cce9190" not in cached(shop.run("test", "-s", "paid"))


def test_a_staged_batch_table_is_tested_once_it_has_changed(shop: Lab) -> None:
    text = KINDS.replace("columns", "publish: on_tests_pass\ncolumns")
    shop.model("kinds", text)
    shop.build("-s", "kinds")
    shop.model("kinds", text.replace("('b') as t(kind)", "('c') as t(kind)"))
    assert cached(shop.run("build", "-s", "kinds")) == set()
    assert sorted(row["kind"] for row in shop.rows("kinds")) == ["a", "c"]
    second = shop.run("build", "-s", "kinds")
    assert ended(second)["test.unique_kinds_kind.97d26f70c2"][0] == "pass"
    with no_session():
        assert cached(shop.run("build", "-s", "kinds")) == {"test.unique_kinds_kind.97d26f70c2"}


def test_a_cached_test_lets_what_waits_for_it_be_built(shop: Lab) -> None:
    shop.model("paid", PAID)
    shop.model("copy", "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n")
    shop.build("--exclude", "copy")
    built = shop.build()
    assert built.model("copy")["status"] == "success"
    assert cached(built) == OF_PAID | OTHERS | OF_SOURCE
