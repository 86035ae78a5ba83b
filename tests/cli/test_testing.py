"""`engine test` where nothing needs Spark: selection, usage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.api import runnable
from engine.cli.main import invoke
from engine.compile.selection.select_nodes import select
from tests.project.small_projects import ORDERS, clean, write

UNITS = """\
unit_tests:
  - {name: first, model: orders, tags: [slow], given: {shop.orders: [{id: a}]}, expect: [{id: a}]}
  - {name: second, model: orders, given: {shop.orders: [{id: b}]}, expect: [{id: b}]}
  - {name: first, model: other, given: {shop.customers: [{id: b}]}, expect: [{id: b}]}
"""
FILES: dict[str, str | bytes] = {
    "models/orders.sql": f"/*---\ncolumns: {{id: {{tests: [not_null]}}}}\n---*/\n{ORDERS}",
    "models/other.sql": "select * from {{ source('shop', 'customers') }}\n",
    "tests/units.yml": UNITS,
}
FIRST, SECOND, OTHER = "unit_test.orders.first", "unit_test.orders.second", "unit_test.other.first"
NOT_NULL = "test.not_null_orders_id.a0fe0444db"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selection", "tests"),
    [
        ("test_type:unit", {FIRST, SECOND, OTHER}),
        ("resource_type:unit_test", {FIRST, SECOND, OTHER}),
        ("test_type:data", {NOT_NULL}),
        ("orders", {FIRST, SECOND, NOT_NULL}),
        ("orders,test_type:unit", {FIRST, SECOND}),
        ("unit_test:sec*", {SECOND}),
        ("second", {SECOND}),
        ("tag:slow", {FIRST}),
        ("path:tests/units.yml", {FIRST, SECOND, OTHER}),
    ],
)
def test_selection(tmp_path: Path, selection: str, tests: set[str]) -> None:
    manifest = clean(tmp_path, FILES)
    assert set(runnable(manifest, select(manifest, [selection]).nodes, "test")) == tests


def test_a_report_is_of_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["test", "--watch", "--junit-xml", "f.xml", "--project-dir", str(tmp_path)]) == 2
    assert "--watch and --junit-xml cannot be combined" in capsys.readouterr().err


def test_pytest_names_the_package_that_is_imported_in_place_of_the_engine(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "engine/__init__.py": "", "test_own.py": "import engine\ndef test_own():\n    pass\n"})
    arguments = ["-m", "pytest", "-q", "-p", "headrace.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:headrace"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments, *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    own = run()
    assert (own.returncode, "1 passed" in own.stdout) == (0, True), own.stdout
    both = run("--engine-project", ".")
    assert both.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"'import engine' gives {tmp_path / 'engine' / '__init__.py'} here" in both.stderr
    assert "engine test --project-dir ." in both.stderr
    code = "import headrace\ntry:\n    headrace.Project\nexcept ImportError as error:\n    print(error)"
    named = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"gives {tmp_path / 'engine' / '__init__.py'} here" in named.stdout


@pytest.mark.slow
def test_pytest_collects_the_tests_of_a_project_and_tells_its_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {**FILES, "test_own.py": "def test_own():\n    pass\n"})
    arguments = [
        "-p",
        "no:headrace",
        "-p",
        "headrace.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "-q",
    ]
    arguments += ["--rootdir", str(tmp_path), "--collect-only", "--engine-project", str(tmp_path), str(tmp_path)]
    assert pytest.main(arguments) == pytest.ExitCode.OK
    out = capsys.readouterr().out
    assert out.splitlines()[:4] == [
        "project.yml::orders.first",
        "project.yml::orders.second",
        "project.yml::other.first",
        "test_own.py::test_own",
    ]
    (tmp_path / "models" / "other.sql").write_text("select m from {{ source('shop', 'customers') }}\n")
    assert pytest.main(arguments) == pytest.ExitCode.INTERRUPTED
    out = capsys.readouterr().out
    assert "models/other.sql:1:8: error: column 'm' not found [unknown-column]" in out
    assert "Traceback" not in out
