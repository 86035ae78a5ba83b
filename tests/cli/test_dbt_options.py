"""Options of dbt that exist here too, with what they do without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.api import Project
from engine.api.previous_command import run_arguments
from engine.api.project import with_adapted_tests
from engine.events import Status
from engine.runtime.data_tests.run_data_test import judged
from tests.cli.test_commands import PROJECT, run, small, write
from tests.test_layers import HEAVY

pytestmark = pytest.mark.slow

__all__ = ["small"]

# Held state grows without bound: a warning.
UNBOUNDED = (
    "/*---\nstreams: [shop.events]\noutput_mode: complete\n---*/\n"
    "select id, count(*) as n from {{ source('shop', 'events') }} group by id"
)


def test_output_keys_choose_the_keys_of_json(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--output", "json", "--output-keys", "name", "tags", "-s", "a") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records == [{"name": "a", "tags": ["hot"]}, {"name": "not_null_a_id", "tags": ["hot"]}]
    assert run(small, "ls", "--output", "json", "--output-keys", "name,severity") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"name": "not_null_a_id", "severity": "error"} in records
    assert {"name": "b"} in records


def test_keys_that_do_not_exist_are_named(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--output", "json", "--output-keys", "nam") == 2
    said = capsys.readouterr()
    assert "unknown key 'nam'" in said.err
    assert "Did you mean 'name'" in said.err
    assert run(small, "ls", "--output-keys", "name") == 2
    assert "Add --output json." in capsys.readouterr().err


def test_every_key_of_a_record_can_be_chosen(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "tests/u.yml", "unit_tests: [{name: u, model: b, given: {a: [{id: 1}]}, expect: [{n: 1}]}]")
    assert run(small, "ls", "--output", "json") == 0
    keys = {key for line in capsys.readouterr().out.splitlines() for key in json.loads(line)}
    assert run(small, "ls", "--output", "json", "--output-keys", *sorted(keys)) == 0


def test_compile_prints_the_sql_of_a_query(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select id from {{ ref('a') }} where id > {{ var('least', 3) }}"
    assert run(small, "compile", "--inline", query, "--vars", "{least: 7}") == 0
    assert capsys.readouterr().out == "select id from `lake`.`small`.`a` where id > 7\n"
    assert run(small, "compile", "--inline", query, "--log-format", "json") == 0
    assert json.loads(capsys.readouterr().out)["sql"].endswith("where id > 3")
    assert run(small, "compile", "--inline", query, "-s", "a") == 2
    assert run(small, "compile", "--inline", "select idd from {{ ref('a') }}") == 1
    assert "--inline:1:8: error: " in capsys.readouterr().err
    assert not (small / ".engine").exists()


def test_a_query_is_compiled_without_spark(small: Path) -> None:
    command = ["compile", "--inline", "select 1 as one", "--project-dir", str(small)]
    code = f"import sys\nfrom engine.cli.main import invoke\nassert invoke({command!r}) == 0\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in done.stdout.split()}.isdisjoint(HEAVY)


@pytest.mark.parametrize("command", ["parse", "compile", "ls", "build -s b", "test", "plan", "compile --inline select"])
def test_with_warn_error_warnings_are_errors(small: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    write(small, "models/one.sql", UNBOUNDED)
    assert run(small, *command.split(), "--warn-error") == 1
    said = capsys.readouterr()
    assert "models/one.sql:5:71: error: complete mode keeps every group in state" in said.err
    assert " warning: " not in said.err
    assert not (small / ".engine").exists()


def test_the_project_may_set_warn_error_and_the_command_line_wins(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(small, "models/one.sql", UNBOUNDED)
    assert run(small, "parse") == 0
    write(small, "project.yml", f"{PROJECT}\nflags: {{warn_error: true}}\n")
    assert run(small, "parse") == 1
    assert run(small, "--no-warn-error", "parse") == 0
    monkeypatch.setenv("ENGINE_WARN_ERROR", "0")
    assert run(small, "parse") == 0
    capsys.readouterr()


def test_flags_of_a_project_are_checked(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "project.yml", f"{PROJECT}\nflags: {{warn_eror: true, fail_fast: maybe}}\n")
    assert run(small, "parse") == 1
    said = capsys.readouterr().err
    assert "flags has no key 'warn_eror'" in said
    assert "Did you mean 'warn_error'" in said
    assert "'fail_fast' must be true or false, not 'maybe'" in said


def test_a_project_without_models_fails_with_warn_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "project.yml", PROJECT)
    assert run(tmp_path, "parse", "--warn-error") == 1
    assert "error: the project has no models" in capsys.readouterr().err


def test_artifacts_go_to_the_target_path(small: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert run(small, "--target-path", "build/artifacts", "compile") == 0
    assert (small / "build/artifacts/manifest.json").is_file()
    outside = tmp_path_factory.mktemp("outside") / "artifacts"
    assert run(small, "docs", "generate", "--target-path", str(outside)) == 0
    assert (outside / "docs/index.html").is_file()
    assert not (small / "target").exists()


@pytest.mark.parametrize("path", [".", "..", "models/.."])
def test_a_target_path_around_the_project_is_rejected(
    small: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    mode = small.stat().st_mode
    assert run(small, "compile", "--target-path", path) == 2
    assert "is not a folder of its own" in capsys.readouterr().err
    assert not (small / "manifest.json").exists()
    assert small.stat().st_mode == mode


def test_a_target_path_through_a_link_of_the_project_is_rejected(
    small: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (small / "build").symlink_to(elsewhere)
    assert run(small, "compile", "--target-path", "build/artifacts") == 1
    assert "[target-link]" in capsys.readouterr().err
    assert not list(elsewhere.iterdir())


def test_log_levels_choose_what_is_printed(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "models/one.sql", UNBOUNDED.replace("select id,", "{{ log('deep') }}{{ print('plain') }}select id,"))
    seen = {}
    for level in ("debug", "info", "warn", "error"):
        assert run(small, "compile", "--log-level", level) == 0
        said = capsys.readouterr()
        text = said.out + said.err
        seen[level] = ["deep" in text, "plain" in text, " warning: " in text, "Found 3 models" in text]
    assert seen == {
        "debug": [True, True, True, True],
        "info": [False, True, True, True],
        "warn": [False, False, True, False],
        "error": [False, False, False, False],
    }
    assert run(small, "-d", "compile") == 0
    assert "DEBUG engine" in capsys.readouterr().err
    assert run(small, "-q", "-d", "compile") == 0
    assert capsys.readouterr().out == ""


def test_shared_options_are_before_the_command_or_after_it(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--fail-fast", "-q", "--log-level", "warn", "build"], ["build", "--no-fail-fast", "-q"]):
        assert run(small, *arguments, "-s", "typo") == 2
        assert "'typo' matches nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [("test", "-f"), ("test", "--full-refresh"), ("test", "--accept=files-gone"), ("clean", "--vars={}"),
     ("clean", "--target-path=x"), ("explain", "--target=dev"), ("ls", "--fail-fast"), ("run", "--store-failures")],
)  # fmt: skip
def test_options_are_where_they_mean_something(
    small: Path, capsys: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    assert run(small, command, option) == 2
    assert "option" in capsys.readouterr().err


def results(small: Path, **arguments: object) -> None:
    ended = [{"unique_id": "model.small.a", "status": "success"}, {"unique_id": "model.small.b", "status": "error"}]
    known = {"metadata": {"invocation_started_at": "2024-01-01"}, "args": arguments, "results": ended}
    write(small, "target/run_results.json", json.dumps(known))


def test_nothing_to_retry(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "retry") == 0
    assert (
        "Nothing to retry: there is no earlier build, run or test in target/run_results.json" in capsys.readouterr().out
    )
    results(small, which="test")
    assert run(small, "retry") == 0
    assert "the last test of 2024-01-01 UTC succeeded" in capsys.readouterr().out
    write(small, "target/run_results.json", "{")
    assert run(small, "retry") == 0
    assert not (small / ".engine").exists()


def test_variables_with_a_secret_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET_TOKEN", "correct-horse-battery")
    assert run_arguments({"a": "x"}, None, {})["vars"] == {"a": "x"}
    assert run_arguments({"a": ["correct-horse-battery"]}, None, {})["vars"] is None


def test_what_cannot_be_repeated_is_not_retried(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results(small, which="build", reset_checkpoint="now")
    assert run(small, "retry") == 2
    assert "the last build had --reset-checkpoint now, which is not repeated" in capsys.readouterr().err
    results(small, which="build", vars=None)
    assert run(small, "retry") == 2
    assert "Pass the same --vars again" in capsys.readouterr().err
    assert not (small / ".engine").exists()


@pytest.mark.parametrize(
    ("config", "failures", "plain", "strict"),
    [
        ("severity: warn", 0, Status.PASS, Status.PASS),
        ("severity: warn", 1, Status.WARN, Status.FAIL),
        ("severity: warn, warn_if: '> 2'", 2, Status.PASS, Status.PASS),
        ("severity: warn, warn_if: '> 2', error_if: '> 1'", 2, Status.PASS, Status.PASS),
        ("warn_if: '> 2', error_if: '> 9'", 1, Status.PASS, Status.PASS),
        ("warn_if: '> 2', error_if: '> 9'", 3, Status.WARN, Status.FAIL),
        ("warn_if: '= 2', error_if: '> 9'", 10, Status.FAIL, Status.FAIL),
        ("severity: error", 1, Status.FAIL, Status.FAIL),
    ],
)
def test_with_warn_error_tests_that_warn_fail(
    small: Path, config: str, failures: int, plain: Status, strict: Status
) -> None:
    write(small, "models/b.sql", f"/*---\ncolumns: {{id: {{tests: [not_null: {{{config}}}]}}}}\n---*/\nselect 1 as id")
    (small / "models/marts/b.sql").unlink()
    result = Project(small).compile()
    assert not result.manifest.errors
    nodes = ["test.not_null_b_id.ff9bf2e6ee", "model.b"]
    as_is = with_adapted_tests(result.manifest, nodes, result.target, store_failures=False, warnings_fail=False)
    adapted = with_adapted_tests(result.manifest, nodes, result.target, store_failures=True, warnings_fail=True)
    (one,) = [test for test in as_is.tests if test.name == "not_null_b_id"]
    (other,) = [test for test in adapted.tests if test.name == "not_null_b_id"]
    assert (judged(one, failures), judged(other, failures)) == (plain, strict)
    assert (one.stored, str(other.stored)) == (None, "lake.small_test_failures.not_null_b_id")
    assert adapted.nodes.keys() == result.manifest.nodes.keys()
