"""Which unit tests need not run again, decided from the project's files: what decides on a verdict makes another key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.api import Project
from engine.compile import UnitTest
from engine.plan.test_passes import test_keys
from engine.plan.test_passes.known_passes import KnownPasses
from tests.lab import EVENTS
from tests.projects import write_files

pytestmark = pytest.mark.slow

PROJECT = "name: shop\nvars: {least: 5}\n"
MACRO = "{% macro big(column) %}{{ column }} > {{ var('least') }}{% endmacro %}\n"
MODEL = """/*---
description: Big events.
streams: [shop.events]
columns: {id: Number of the event.}
---*/
select id, amount from {{ source('shop', 'events') }} where {{ big('amount') }}
"""
UNITS = """
unit_tests:
  - name: big_ones_pass
    model: big_events
    steps:
      - given: {shop.events: {fixture: events}}
        expect: {rows: [{id: 1}]}
"""
OVERRIDE = """
unit_tests:
  - name: big_ones_pass
    model: big_events
    overrides: {vars: {least: 7}}
    steps:
      - given: {shop.events: [{id: 1, amount: 10}]}
        expect: {rows: [{id: 1}]}
"""
FIXTURE = "id,amount\n1,10\n2,1\n"
TEST = "unit_test.big_events.big_ones_pass"
FILES = {
    "project.yml": PROJECT,
    "sources/shop.yml": EVENTS,
    "macros/big.sql": MACRO,
    "models/big_events.sql": MODEL,
    "models/other.sql": "select 1 as one",
    "tests/units.yml": UNITS,
    "tests/fixtures/events.csv": FIXTURE,
}


def write(root: Path, files: dict[str, str]) -> Path:
    write_files(root, files)
    return root


def passes(root: Path, target: str | None = None) -> KnownPasses:
    """What a command that starts now knows."""
    project = Project(root, target=target)
    compiled = project.compile()
    assert compiled.manifest.errors == ()
    kept = project._passes(compiled, project._versions(compiled))
    return KnownPasses(compiled.manifest, compiled.target, root, {}, kept)


def passed(root: Path, *tests: str) -> None:
    """What a run leaves in which some tests passed."""
    known = passes(root)
    for node in tests or (TEST,):
        test = known.manifest.nodes[node]
        assert isinstance(test, UnitTest)
        known.passed_at(test)
        known.ended(test, "2026-11-23T10:00:00+00:00", passed=True)
    known.save()


def counts(root: Path) -> bool:
    known = passes(root)
    return TEST in known.counting(known.manifest.order)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path, FILES)


def test_a_pass_counts_for_the_next_command_with_the_time_of_it(root: Path) -> None:
    assert not counts(root)
    passed(root)
    known = passes(root)
    assert known.counting(known.manifest.order) == {TEST: "2026-11-23T10:00:00+00:00"}


EDITS = {
    "the query": ("models/big_events.sql", "select id, amount", "select id, amount + 0 as amount"),
    "a macro": ("macros/big.sql", ">", ">="),
    "a variable": ("project.yml", "least: 5", "least: 6"),
    "a given value": ("tests/fixtures/events.csv", "2,1", "2,2"),
    "a new given row": ("tests/fixtures/events.csv", "2,1\n", "2,1\n3,1\n"),
    "what is expected": ("tests/units.yml", "{id: 1}", "{id: 1, amount: 10}"),
    "a step": ("tests/units.yml", "      - given", "      - restart\n      - given"),
    "a check": ("models/big_events.sql", "columns:", "expectations: [{name: positive, check: amount > 0, on_fail: drop}]\ncolumns:"),
    "how rows are written": ("models/big_events.sql", "columns:", "unique_key: id\nsequence_by: amount\ncolumns:"),
    "a column of the input": ("sources/shop.yml", "amount double", "amount decimal(9,2)"),
    "bad records of the input": ("sources/shop.yml", "format: json", "format: json\n        on_bad_record: drop"),
    "a setting of Spark": ("project.yml", "name: shop", "name: shop\ntargets: {dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: shop, spark: {conf: {spark.sql.ansi.enabled: 'false'}}}}"),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_what_decides_makes_the_test_run_again(root: Path, what: str) -> None:
    name, before, after = EDITS[what]
    if what == "a setting of Spark":
        write(root, {"project.yml": PROJECT.replace("name: shop", after[: after.index(", spark")] + "}}")})
    passed(root)
    assert counts(root)
    text = FILES[name]
    assert before in text
    write(root, {name: text.replace(before, after, 1)})
    assert not counts(root)
    write(root, {name: text})
    if what != "a setting of Spark":
        assert counts(root), "the text of the last pass is back"


SAME = {
    "a description": ("models/big_events.sql", "Big events.", "Events that are big."),
    "a line above": ("tests/units.yml", "unit_tests:", "# of big events\nunit_tests:"),
    "another model": ("models/other.sql", "1", "2"),
    "another test": ("tests/units.yml", "      - given: {shop.events: {fixture: events}}\n        expect: {rows: [{id: 1}]}\n", "      - given: {shop.events: {fixture: events}}\n        expect: {rows: [{id: 1}]}\n  - {name: none, model: other, expect: {rows: [{one: 1}]}}\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_an_edit_beside_it_changes_nothing(root: Path, what: str) -> None:
    name, before, after = SAME[what]
    passed(root)
    assert before in FILES[name]
    write(root, {name: FILES[name].replace(before, after, 1)})
    assert counts(root)


def test_another_version_of_the_engine_or_of_spark_runs_it_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed(root)
    versions = test_keys._versions()
    for number in range(len(versions)):
        other = [*versions]
        other[number] = "another"
        monkeypatch.setattr(test_keys, "_versions", lambda known=tuple(other): known)
        assert not counts(root)
    monkeypatch.setattr(test_keys, "_versions", lambda: versions)
    assert counts(root)


def test_each_target_has_passes_of_its_own(root: Path) -> None:
    block = "{{catalog: {{type: sqlite, name: {0}, path: .engine/{0}}}, schema: s}}"
    targets = f"name: shop\nvars: {{least: 5}}\ntarget: dev\ntargets:\n  dev: {block.format('one')}\n"
    write(root, {"project.yml": f"{targets}  prod: {block.format('two')}\n"})
    passed(root)
    assert counts(root)
    known = passes(root, "prod")
    assert known.counting(known.manifest.order) == {}


CLOCKS: dict[str, Callable[[str], str]] = {
    "the query reads the clock": lambda m: m.replace("amount from", "amount, current_timestamp() as seen from"),
    "it draws random numbers": lambda m: m.replace("amount from", "amount, rand() as x from"),
    "it makes ids": lambda m: m.replace("amount from", "amount, uuid() as x from"),
    "a function is not one of Spark's": lambda m: m.replace("amount from", "amount, our_score(id) as x from"),
    "a check reads the clock": lambda m: m.replace("columns:", "expectations: [{name: few, check: amount < day(now()), on_fail: drop}]\ncolumns:"),
    "deletes depend on the clock": lambda m: m.replace("columns:", "unique_key: id\nsequence_by: amount\ndelete_when: amount < day(now())\ncolumns:"),
    "the future is bounded": lambda m: m.replace("[shop.events]", "{shop.events: {watermark: {column: at, delay: 1 hour, max_future: 1 hour}}}"),
}  # fmt: skip


@pytest.mark.parametrize("what", CLOCKS)
def test_a_model_that_may_give_other_rows_each_time_is_tested_each_time(root: Path, what: str) -> None:
    write(root, {"models/big_events.sql": CLOCKS[what](MODEL)})
    if "not one of" in what:
        extended = "{conf: {spark.sql.extensions: com.example.Extensions}}"
        target = f"{{catalog: {{type: sqlite, name: lake, path: .engine/lake}}, schema: s, spark: {extended}}}"
        write(root, {"project.yml": f"{PROJECT}target: dev\ntargets:\n  dev: {target}\n"})
    passed(root)
    assert not counts(root)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("select 1 as id, 10.0 as amount", True),
        ("with t as (select 1 as id) select id, 10.0 as amount from t", True),
        ("select 1 as id, 10.0 as amount, now() as at", False),
        ("select id, amount from lake.shop.events", False),
        ("with events as (select 1) select id, amount from lake.shop.events", False),
    ],
)
def test_rows_of_a_query_are_the_same_if_it_reads_nothing(root: Path, query: str, same: bool) -> None:
    write(root, {"tests/units.yml": UNITS.replace("{fixture: events}", f"{{sql: '{query}'}}")})
    passed(root)
    assert counts(root) is same


def test_expected_rows_of_a_query_are_the_same_if_it_reads_nothing(root: Path) -> None:
    for query, same in {"select 1 as id": True, "select day(now()) as id": False}.items():
        write(root, {"tests/units.yml": UNITS.replace("{rows: [{id: 1}]}", f"{{format: sql, rows: '{query}'}}")})
        passed(root)
        assert counts(root) is same


def test_overrides_count_as_the_test_has_them(root: Path) -> None:
    write(root, {"tests/units.yml": OVERRIDE})
    passed(root)
    assert counts(root)
    # The variable that the test sets is not that of the project.
    write(root, {"project.yml": PROJECT.replace("5", "6")})
    assert counts(root)
    write(root, {"tests/units.yml": OVERRIDE.replace("least: 7", "least: 8")})
    assert not counts(root)
    # A branch that is taken with the override only.
    branch = MACRO.replace("{{ column }}", "{% if var('least') == 7 %}abs{% endif %}({{ column }})")
    write(root, {"macros/big.sql": branch, "tests/units.yml": OVERRIDE})
    assert not counts(root)
    passed(root)
    assert counts(root)


def test_an_override_that_brings_the_clock_is_tested_each_time(root: Path) -> None:
    write(root, {"tests/units.yml": OVERRIDE.replace("vars: {least: 7}", "macros: {big: 'at < now()'}")})
    passed(root)
    assert not counts(root)
    write(root, {"tests/units.yml": OVERRIDE.replace("vars: {least: 7}", "macros: {big: 'at is null'}")})
    passed(root)
    assert counts(root)


def test_a_variable_of_the_environment_counts_with_what_it_compiles_to(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"macros/big.sql": MACRO.replace("{{ var('least') }}", "{{ env_var('LEAST') }}")})
    monkeypatch.setenv("LEAST", "5")
    passed(root)
    assert counts(root)
    monkeypatch.setenv("LEAST", "6")
    assert not counts(root)


def test_text_with_the_time_of_the_run_is_another_each_time(root: Path) -> None:
    write(root, {"models/other.sql": "select '{{ run_started_at }}' as at"})
    write(root, {"tests/units.yml": "unit_tests: [{name: one, model: other, expect: {rows: [{at: x}]}}]"})
    passed(root, "unit_test.other.one")
    known = passes(root)
    assert known.counting(known.manifest.order) == {}
