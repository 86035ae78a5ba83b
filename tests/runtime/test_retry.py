"""`engine retry`, and the options of dbt that decide on tests: --store-failures, --warn-error, --fail-fast."""

from __future__ import annotations

import json

import pytest

from engine import Project
from engine.compile.artifacts.dbt_manifest import own_id
from engine.node_ids import shown_name
from tests.lab import Lab

pytestmark = pytest.mark.spark

BROKEN = "select id, 1 / (id - id) as x from {{ ref('good') }}"
PARTS = "{{ var('least', 1) }} as least"


def project(lab: Lab) -> None:
    lab.model("good", f"select 1 as id, {PARTS}")
    lab.model("bad", BROKEN)
    lab.model("below", f"select id, {PARTS} from {{{{ ref('bad') }}}}")


def statuses(lab: Lab) -> dict[str, str]:
    known = json.loads((lab.root / "target/run_results.json").read_text())
    return {shown_name(own_id(result["unique_id"])): result["status"] for result in known["results"]}


def test_what_failed_is_run_again_with_the_options_of_the_command(lab: Lab) -> None:
    project(lab)
    assert lab.run("build", "--vars", "{least: 7}", "--threads", "1").code == 1
    assert statuses(lab) == {"good": "success", "bad": "error", "below": "skipped"}
    before = lab.snapshot("good")

    assert lab.run("retry").code == 1
    assert statuses(lab) == {"bad": "error", "below": "skipped"}
    lab.model("bad", BROKEN.replace("1 / (id - id)", "0"))
    assert lab.run("retry").code == 0
    assert statuses(lab) == {"bad": "success", "below": "success"}
    assert lab.rows("below") == [{"id": 1, "least": 7}]
    assert lab.snapshot("good") == before
    kept = json.loads((lab.root / "target/run_results.json").read_text())["args"]
    assert (kept["which"], kept["vars"], kept["threads"]) == ("build", {"least": 7}, 1)

    assert lab.run("retry").code == 0
    assert statuses(lab) == {"bad": "success", "below": "success"}
    assert not Project(lab.root).retry().results


def test_failing_rows_are_kept_on_request(lab: Lab) -> None:
    header = "/*---\ncolumns: {id: {tests: [not_null: {name: known}]}}\n---*/\n"
    lab.model("good", f"{header}select explode(array(1, null, null)) as id")
    assert lab.run("build").code == 1
    tables = f"{lab.schema}_test_failures"
    assert lab._lake().rows(tables, "known", None) is None
    ended = lab.run("test", "--store-failures")
    assert ended.code == 1
    assert f"stored in lake.{tables}.known" in ended.out
    _, rows = lab._lake().rows(tables, "known", None) or ((), ())
    assert len(rows) == 2


def test_with_warn_error_a_test_that_warns_fails_and_what_reads_its_model_is_skipped(lab: Lab) -> None:
    header = "/*---\ncolumns: {id: {tests: [not_null: {name: known, severity: warn}]}}\n---*/\n"
    lab.model("good", f"{header}select cast(null as int) as id")
    lab.model("below", "select id from {{ ref('good') }}")
    lab.build()
    assert statuses(lab) == {"good": "success", "known": "warn", "below": "success"}
    assert lab.run("build", "-f", "--warn-error").code == 1
    assert statuses(lab) == {"good": "success", "known": "fail", "below": "skipped"}
    assert lab.run("retry").code == 1
    assert statuses(lab) == {"known": "fail", "below": "skipped"}
    assert lab.run("retry", "--no-warn-error").code == 0


def test_a_project_stops_at_the_first_failure_if_its_flags_say_so(lab: Lab) -> None:
    project(lab)
    lab.model("other", "select id from {{ ref('good') }}")
    lab.model("last", "select id from {{ ref('other') }}")
    text = (lab.root / "project.yml").read_text()
    lab.write("project.yml", f"{text}\nflags: {{fail_fast: true}}\n")
    assert lab.run("build", "--threads", "1").code == 1
    assert statuses(lab)["last"] == "skipped"
    assert lab.run("retry", "--no-fail-fast").code == 1
    assert statuses(lab)["last"] == "success"


STAGED = """/*---
publish: on_tests_pass
columns:
  id:
    tests:
      - not_null
      - accepted_values: {values: [1], quote: false}
---*/
select explode(array(1, 2)) as id
"""
CORRECTED = {
    "the values of the test": STAGED.replace("[1]", "[1, 2]"),
    "another test": STAGED.replace("accepted_values: {values: [1], quote: false}", "unique"),
    "its severity": STAGED.replace("quote: false", "quote: false, severity: warn"),
    "no test is left": STAGED.replace("publish", "title: x\npublish")
    .replace("columns:", "meta:")
    .replace("tests:", "x:"),
}


@pytest.mark.nightly_except("build-the values of the test", "build-no test is left", "test-another test")
@pytest.mark.parametrize("text", CORRECTED.values(), ids=CORRECTED)
@pytest.mark.parametrize("command", ["build", "test"])
def test_a_retry_after_a_corrected_test_publishes_what_is_staged(lab: Lab, command: str, text: str) -> None:
    """All tests that decide run again, not only the one that failed, and what was skipped reads the published rows."""
    lab.model("paid", STAGED)
    lab.model("copy", "select id from {{ ref('paid') }}")
    assert lab.run("build").code == 1
    assert command == "build" or lab.run("test").code == 1
    lab.model("paid", text)
    again = lab.run("retry")
    assert (again.code, "not-published" in again.codes()) == (0, False), again.out
    # Without a test that decides, only a build publishes.
    assert lab.ids("paid") == ([1, 2] if command == "build" or "tests:" in text else [])
    lab.build()
    assert lab.ids("paid") == [1, 2]
    assert lab.ids("copy") == [1, 2]


def test_a_retry_does_not_build_again_to_publish(lab: Lab) -> None:
    lab.model("paid", STAGED)
    assert lab.run("build").code == 1
    lab.model("paid", CORRECTED["the values of the test"])
    assert lab.run("retry").code == 0
    assert not any(name == "paid" for name in statuses(lab))
    assert lab.ids("paid") == [1, 2]
    assert lab.run("retry").code == 0
    assert not Project(lab.root).retry().results
