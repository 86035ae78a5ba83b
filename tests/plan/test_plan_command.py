"""`engine plan` and a build that is rejected: told from files alone, with no Java to be had and nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from engine.api.plan_report.plan_markdown import plan_markdown
from engine.api.plan_report.plan_output import plan_details
from engine.cli.main import invoke
from engine.compile import compile_project
from engine.plan import Action, ActionKind, Plan
from engine.plan.comparison import Change, Comparison
from engine.project import load_project
from engine.state import Phase, TableState
from tests.lab import EVENTS, REPOSITORY
from tests.plan.lake_by_hand import built
from tests.plan.test_plan import PLAIN, WINDOWED, header

pytestmark = pytest.mark.slow

PROJECT = """
name: shop
target: dev
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: s
"""
EDITED = header(size="2 hours") + WINDOWED


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A project whose model `hours` was built with another window, beside models that were never built."""
    write(tmp_path, "project.yml", PROJECT)
    write(tmp_path, "sources/shop.yml", EVENTS)
    write(tmp_path, "landing/events/a.json", '{"id": 1}\n')
    write(tmp_path, "models/hours.sql", header() + WINDOWED)
    built(
        tmp_path, compile_project(load_project(tmp_path)).manifest.model("hours"), [tmp_path / "landing/events/a.json"]
    )
    write(tmp_path, "models/hours.sql", EDITED)
    write(tmp_path, "models/plain.sql", PLAIN)
    write(tmp_path, "models/daily.sql", "select count(*) as n from {{ ref('hours') }}")
    write(tmp_path, "models/one.sql", "select 1 as a")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def run(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = invoke([*arguments, "--project-dir", str(root)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise AssertionError("Java was looked for")

    monkeypatch.setattr("engine.runtime.build.find_java", none)


def test_a_build_with_a_changed_model_starts_no_java_and_says_what_the_others_are(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch)
    code, out, err = run(edited, capsys, "build")
    assert code == 1
    assert "the window of GROUP BY changed" in err
    assert "nothing was started, because 1 model is rejected; without that this would be built: one, plain" in err
    assert "--exclude hours+" in err
    assert "START" not in out
    # The others do start.
    assert "Java was looked for" in run(edited, capsys, "build", "--exclude", "hours+")[2]


def test_every_refusal_is_said_at_once(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch)
    write(edited, "sources/gone.yml", EVENTS.replace("name: shop", "name: gone").replace("landing/events", "nowhere"))
    write(edited, "models/lost.sql", PLAIN.replace("shop", "gone"))
    code, _, err = run(edited, capsys, "build")
    assert (code, err.count("error:")) == (1, 2)
    assert "[model-changed]" in err
    assert "[source-folder-missing]" in err
    assert "or create the folder: mkdir -p nowhere" in err


def test_a_column_that_the_table_lacks_is_rejected_without_java_beside_other_refusals(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch)
    built(edited, compile_project(load_project(edited)).manifest.model("plain"), [edited / "landing/events/a.json"])
    write(edited, "models/plain.sql", PLAIN.replace("select id", "select id, kind"))
    for command in ("plan", "build"):
        before = files(edited)
        code, _, err = run(edited, capsys, command)
        assert (code, err.count("error:")) == (1, 2)
        assert "[model-changed]" in err
        assert "models/plain.sql:1:1: error: lake.s.plain has no column kind [table-schema]" in err
        assert "on_schema_change: append_columns" in err
        changed = {name for name, content in files(edited).items() if before.get(name) != content}
        assert not [name for name in changed if name.startswith(".engine") and name.endswith((".json", ".parquet"))]
    ended = alone(edited, "plan", "-s", "plain")
    assert not set(ended.stdout.splitlines()[-1].split()) & {"pyspark", "py4j", "pyarrow", "pyiceberg"}
    write(edited, "models/plain.sql", PLAIN.replace("select id", "select id + 0 as id"))
    assert "Java was looked for" in run(edited, capsys, "build", "-s", "plain")[2]


def test_the_plan_is_shown_without_java_and_nothing_is_written(edited: Path) -> None:
    before = files(edited)
    ended = alone(edited, "plan")
    lines = ended.stdout.splitlines()
    assert lines[-1].startswith("1 ")
    assert not set(lines[-1].split()) & {"pyspark", "py4j", "pyarrow", "pyiceberg"}
    assert "rejected   streaming_table lake.s.hours" in lines
    assert "create     streaming_table lake.s.plain" in lines
    assert "           reads 1 new file of shop.events: a.json" in lines
    assert "create     table lake.s.daily" in lines
    assert lines[-2] == "1 rejected, 3 create"
    assert "[model-changed]" in ended.stderr
    assert files(edited) == before


def alone(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which ends with its exit code and the packages that it loaded."""
    code = (
        "import sys\nfrom engine.cli.main import invoke\n"
        "code = invoke([*sys.argv[2:], '--project-dir', sys.argv[1]])\n"
        "print(code, *sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "ENGINE_CACHE": str(root.parent / "cache")}
    command = [sys.executable, "-c", code, str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment, check=True)


def test_a_run_with_nothing_to_do_loads_only_what_it_needs(edited: Path) -> None:
    write(edited, "models/hours.sql", header() + WINDOWED)
    for _ in range(2):
        ended = alone(edited, "run", "-s", "hours")
        assert "UNCHANGED (no new data)" in ended.stdout, ended.stdout
    loaded = ended.stdout.splitlines()[-1].split()
    assert loaded[0] == "0"
    # The first compiled the project; sqlglot takes a tenth of a second, the others more.
    assert sorted({"pyspark", "py4j", "pyarrow", "pyiceberg", "sqlglot"}.intersection(loaded)) == []


def test_the_plan_as_json(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(edited, capsys, "plan", "--output", "json", "-s", "hours", "plain", "-q")
    records = {record["name"]: record for record in map(json.loads, out.splitlines())}
    assert code == 1
    assert (records["hours"]["action"], records["hours"]["change"]) == ("resume", "state-breaking")
    assert [refusal["code"] for refusal in records["hours"]["refusals"]] == ["model-changed"]
    assert records["plain"]["reads"] == [{"name": "shop.events", "what": "files", "new": 1, "rows": None}]
    assert (records["plain"]["action"], records["plain"]["unchanged"]) == ("create", False)


def test_the_plan_of_a_full_refresh(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(edited, capsys, "plan", "-f", "-s", "hours")
    assert (code, err) == (0, "")
    assert "refresh    streaming_table lake.s.hours" in out


def test_a_state_that_cannot_be_read_is_a_refusal_of_its_model(
    edited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(edited, ".engine/state/lake/s/hours/1/model.json", "{")
    code, out, err = run(edited, capsys, "plan")
    assert code == 1
    assert "[state-unreadable]" in err
    assert "create     streaming_table lake.s.plain" in out


def test_a_refresh_that_was_killed_is_planned_as_it_will_be_decided(
    edited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = TableState(edited / ".engine/state", "lake", "s", "hours")
    state = folder.load()
    assert state is not None
    folder.save(replace(state, generation=2, phase=Phase.BUILDING, table="lake.s.hours__g2"))
    write(edited, "models/hours.sql", header() + WINDOWED)
    code, out, _ = run(edited, capsys, "plan", "-s", "hours", "--output", "json")
    record = json.loads(out)
    assert (code, record["action"], record["unchanged"]) == (0, "resume", False)
    assert "will clean up after an interrupted build" in record["reasons"]
    assert folder.generations() == (1, 2)


def test_a_build_with_nothing_to_do_ends_without_java(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch)
    write(edited, "models/hours.sql", header() + WINDOWED)
    code, out, err = run(edited, capsys, "build", "-s", "hours")
    assert (code, err) == (0, "")
    assert "UNCHANGED (no new data)" in out
    assert json.loads((edited / "target/run_results.json").read_text())["results"][0]["adapter_response"]["unchanged"]
    write(edited, "landing/events/b.json", '{"id": 2}\n')
    assert "Java was looked for" in run(edited, capsys, "build", "-s", "hours")[2]


def test_a_table_that_is_gone_is_said_before_java_starts(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch)
    write(edited, "models/hours.sql", header() + WINDOWED)
    (edited / ".engine/lake/catalog.db").unlink()
    code, _, err = run(edited, capsys, "build")
    assert (code, err.count("error:")) == (1, 1)
    assert "[table-missing]" in err


def test_a_rejected_model_is_told_why_it_is_in_its_line(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(edited, capsys, "plan", "-s", "hours")
    word, why, counts = out.splitlines()
    assert word == "rejected   streaming_table lake.s.hours"
    assert why.startswith("           the window of GROUP BY changed from ")
    assert counts == "1 rejected"
    # Where the edit alone would be harmless, what it would do is not what happens.
    write(edited, "models/hours.sql", header() + WINDOWED)
    built(edited, compile_project(load_project(edited)).manifest.model("plain"), [edited / "landing/events/a.json"])
    write(edited, "models/plain.sql", PLAIN.replace("select id", "select id, kind"))
    _, out, _ = run(edited, capsys, "plan", "-s", "plain")
    word, why, *_ = out.splitlines()
    assert (word, why) == (
        "rejected   streaming_table lake.s.plain",
        "           lake.s.plain has no column kind [table-schema]",
    )
    assert "applies to new rows" not in out


def test_the_plan_as_a_comment_on_a_pull_request(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(edited, "models/at.sql", "/*---\nalias: a_b\n---*/\nselect 1 as `<b>`, 'x|y' as `@channel`")
    code, out, err = run(edited, capsys, "plan", "--output", "markdown")
    assert code == 1
    assert "[model-changed]" in err
    head, blank, titles, line, rejected, *rows = out.splitlines()
    assert head == "### Plan for `dev`: 1 rejected, 4 create"
    assert blank == ""
    assert titles.count("|") == line.count("|") == rejected.count("|") == 5
    assert rejected.startswith("| hours | streaming_table | **rejected** | ")
    assert "<br>Fix&#58; " in rejected
    graph = rows.index("```mermaid")
    assert rows[graph + 1] == "flowchart LR"
    assert any(row.endswith(" rejected") for row in rows[graph:])
    rows = list(takewhile(bool, rows))
    assert "the window of GROUP BY changed" in rejected
    assert {row.split(" | ")[0] for row in rows} == {"| at", "| daily", "| one", "| plain"}
    assert all(row.count("|") == 5 for row in rows)


def test_what_is_unchanged_is_folded(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(edited, "models/hours.sql", header() + WINDOWED)
    _, out, _ = run(edited, capsys, "plan", "--output", "markdown", "-s", "hours", "plain")
    assert out.startswith("### Plan for `dev`: 1 create, 1 unchanged\n")
    assert "\n<details>\n<summary>Unchanged: 1</summary>\n\nhours\n\n</details>\n" in out


@pytest.mark.parametrize("unchanged", [True, None])
def test_a_comment_of_500_models_is_not_too_long(tmp_path: Path, unchanged: bool | None) -> None:
    write(tmp_path, "project.yml", PROJECT)
    for number in range(500):
        write(tmp_path, f"models/a_model_with_a_long_name_{number:03}.sql", "select 1 as a")
    manifest = compile_project(load_project(tmp_path)).manifest
    why = ("the filter changed from `a` > 1 to <b>@all</b>" * 5,)
    actions = {
        m.id: Action(m.id, ActionKind.REBUILD, why, comparison=Comparison(Change.REBUILT), unchanged=unchanged)
        for m in manifest.models
    }
    text = plan_markdown(manifest, Plan(actions), "dev")
    assert len(text) < 60_000
    assert "@all" not in text
    assert "<b>" not in text
    if unchanged:
        assert "a_model_with_a_long_name_499" in text
    else:
        shown = text.count("**rebuild**")
        assert 50 < shown < 500
        assert f"\n{500 - shown} more lines are left out: `engine plan` has them.\n" in text


def test_fail_on_is_an_exit_code(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(edited, capsys, "plan", "-s", "plain", "one", "--fail-on", "rebuild", "--fail-on", "refresh")[0] == 0
    code, _, err = run(edited, capsys, "plan", "-s", "plain", "one", "--fail-on", "rebuild", "--fail-on", "create")
    assert code == 1
    assert "the plan has actions of --fail-on create names: one, plain [plan-not-allowed]" in err
    assert run(edited, capsys, "plan", "-f", "-s", "hours", "--fail-on", "refresh")[0] == 1


def test_diff_shows_what_an_edit_changes(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(edited, capsys, "plan", "--diff", "-s", "hours", "plain")
    assert code == 1
    lines = out.splitlines()
    assert "           - windows.hour: window ( at , '1 hours' )" in lines
    assert "           + windows.hour: window ( at , '2 hours' )" in lines
    assert sum(line.lstrip().startswith(("+ ", "- ")) for line in lines) == 2, "nothing of what is new or unchanged"
    _, out, _ = run(edited, capsys, "plan", "--diff", "-s", "hours", "plain", "--output", "json", "-q")
    records = {record["name"]: record for record in map(json.loads, out.splitlines())}
    assert [line for line in records["hours"]["diff"] if line[:2] in {"+ ", "- "}] == [
        "- windows.hour: window ( at , '1 hours' )",
        "+ windows.hour: window ( at , '2 hours' )",
    ]
    assert records["plain"]["diff"] == []
    _, out, _ = run(edited, capsys, "plan", "--diff", "-s", "hours", "--output", "markdown")
    assert "<summary>Changes in hours</summary>\n\n```diff\n" in out
    assert "\n- windows.hour: window ( at , '1 hours' )\n+ windows.hour: window ( at , '2 hours' )\n" in out
    assert "windows.hour" not in run(edited, capsys, "plan", "-s", "hours", "--output", "markdown")[1]


READ = """\
exposures:
  - {name: board, type: dashboard, owner: {name: ops}, depends_on: [ref('ids')]}
  - {name: other, type: dashboard, owner: {name: ops}, depends_on: [ref('hours')]}
"""


@pytest.fixture
def forward(edited: Path) -> Path:
    """The project with an edit that applies to new rows, of a model that another one reads."""
    written = compile_project(load_project(edited)).manifest.model("plain")
    built(edited, written, [edited / "landing/events/a.json"])
    write(edited, "models/plain.sql", PLAIN.replace("select id", "select id + 1 as id"))
    write(edited, "models/ids.sql", "select id as number from {{ ref('plain') }}")
    write(edited, "models/read.yml", READ)
    return edited


def test_the_columns_that_an_edit_affects(forward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(forward, capsys, "plan", "-s", "plain")
    assert code == 0
    assert "affects ids (number)" in out
    assert "read by the exposure board\n" in out
    (record,) = map(json.loads, run(forward, capsys, "plan", "-s", "plain", "--output", "json")[1].splitlines())
    assert record["affects"] == [{"name": "ids", "columns": ["number"]}]
    assert record["exposures"] == ["board"]
    assert "affects ids" in run(forward, capsys, "plan", "-s", "plain", "--output", "markdown")[1]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "recomputed if plain has changed by then"),
        ("/*---\nmaterialized: view\n---*/\n", "recreated if the columns of plain change"),
    ],
    ids=["table", "view"],
)
def test_what_only_a_build_can_tell(forward: Path, header: str, expected: str) -> None:
    write(forward, "models/ids.sql", f"{header}select id from {{{{ ref('plain') }}}}")
    manifest = compile_project(load_project(forward)).manifest
    rebuilt = Action("model.ids", ActionKind.REBUILD)
    assert list(plan_details(manifest, rebuilt)) == [expected]
    assert list(plan_details(manifest, replace(rebuilt, reasons=("the query changed",)))) == ["the query changed"]
