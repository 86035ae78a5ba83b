"""The explanations: every code has one of the fixed form, and `engine explain` shows it without project or Java."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from engine.cli.explain_command import pointer
from engine.cli.main import invoke
from engine.diagnostics.codes import CODES
from engine.diagnostics.explanations import FOLDER, FormError, explanations, read_topic
from tests.lab import REPOSITORY
from tests.test_layers import modules, modules_with

SECTION = "# T\n\n## a-code\n\nIt failed.\n\nLevel: error. Found: run.\n\nCause: A.\n\nOccurs: B.\n\nFix: C.\n"


def test_every_code_is_explained_once() -> None:
    assert set(explanations()) == CODES
    headings = [line for path in FOLDER.glob("*.md") for line in path.read_text().splitlines() if line[:3] == "## "]
    assert len(headings) == len(CODES)


@pytest.mark.parametrize("one", explanations().values(), ids=lambda one: one.code)
def test_the_form(one) -> None:
    assert one.code == one.code.lower().replace("_", "-").replace(" ", "-")
    for text in (one.summary, one.cause, one.fix, one.occurs):
        assert not text or text[-1] in ".:"
    assert len(one.summary) <= 110
    assert "\n" not in one.summary
    # Compiling alone shows what is found there; the rest says how it occurs.
    assert bool(one.wrong) == bool(one.right) != bool(one.occurs)
    assert not one.wrong or "compile" in one.found


@pytest.mark.slow
def test_a_code_that_nothing_reports_is_not_explained() -> None:
    sources = (path for path in modules() if path.parent != FOLDER)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert sorted(code for code in CODES if f'"{code}"' not in text and f"[{code}]" not in text) == []


@pytest.mark.slow
def test_every_error_that_is_written_out_has_a_hint() -> None:
    without = []
    for path, text in modules_with(r"[(] *\n? *\"[a-z]+(-[a-z0-9]+)+\""):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            hinted = len(node.args) > 2 or any(keyword.arg == "hint" for keyword in node.keywords)
            if node.args[0].value in CODES and isinstance(node.func, ast.Name) and len(node.args) > 1 and not hinted:
                without.append(f"{path.name}:{node.lineno}")
    assert without == []


def test_a_section_of_the_form_is_read() -> None:
    (one,) = read_topic(SECTION, "page")
    assert (one.code, one.topic, one.page, one.levels, one.found) == ("a-code", "T", "page", ("error",), ("run",))
    assert (one.summary, one.cause, one.occurs, one.fix, one.wrong) == ("It failed.", "A.", "B.", "C.", ())


@pytest.mark.parametrize(
    ("old", "new"),
    [("Level: error", "Level: fatal"), ("Found: run", "Found: later"), ("Fix: C.", ""), ("Occurs", "Wrong")],
)
def test_another_form_is_an_error(old: str, new: str) -> None:
    with pytest.raises(FormError):
        read_topic(SECTION.replace(old, new), "page")


@pytest.mark.slow
def test_the_explanations_are_in_the_wheel() -> None:
    builder = WheelBuilder(str(REPOSITORY))
    shipped = {file.distribution_path for file in builder.recurse_included_files()}
    assert {f"engine/diagnostics/{path.name}" for path in FOLDER.glob("*.md")} <= shipped


@pytest.mark.slow
def test_explain_needs_no_project_and_loads_little(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom engine.cli.main import invoke\nassert invoke(['explain', '[agg-distinct]', 'Table-Locked']) == 0\n"
        "print(*{name.split('.')[0] for name in sys.modules} & {'pyspark', 'pyiceberg', 'pyarrow', 'sqlglot'})"
    )
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(
        "agg-distinct  error, found: compile\n\nA streaming aggregate counts distinct values."
    )
    assert "\n    select hour.start as hour_start, count(distinct customer) as customers\n" in done.stdout
    assert "\ntable-locked  error, found: start, run\n" in done.stdout
    assert done.stdout.endswith("\n\n")
    assert list(tmp_path.iterdir()) == []


def test_explain_alone_lists_all_codes_by_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Aggregates on streams\n  agg-needs-event-time ")
    assert [code for code in CODES if f"\n  {code} " not in out] == []


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("agg-distinkt", "Did you mean 'agg-distinct'?"),
        ("unbounded", "'unbounded-join'"),
        ("wm", "List them all: engine explain"),
    ],
)
def test_an_unknown_code_suggests_near_ones(asked: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", asked]) == 2
    error = capsys.readouterr().err
    assert f"diagnostic '{asked}' not found" in error
    assert hint in error


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "sort-on-stream", "--log-format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["code"], record["levels"], record["wrong"][0]["file"]) == (
        "sort-on-stream", ["error"], "models/m.sql",
    )  # fmt: skip


@pytest.mark.slow
def test_errors_in_a_terminal_end_with_the_command_that_explains_them(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "project.yml").write_text("name: small\n")
    (tmp_path / "models" / "m.sql").write_text("select * from {{ ref('x') }}\n")
    command = [sys.executable, "-m", "engine", "parse", "--project-dir", str(tmp_path)]
    ours, theirs = pty.openpty()
    shown = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=theirs, check=False)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert shown.returncode == 1
    assert text.count("engine explain") == 1
    assert text.rstrip().endswith("Causes and examples: engine explain unknown-ref")
    piped = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "unknown-ref" in piped.stderr
    assert "engine explain" not in piped.stdout + piped.stderr


def test_the_pointer_names_few_codes_once_and_none_that_say_all() -> None:
    assert pointer(["usage", "interrupted"]) == ""
    assert pointer(["a", "b", "a", "usage", "c", "d"]) == "Causes and examples: engine explain a b c"
