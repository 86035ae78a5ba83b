"""Files of a project are no modules: commands that are started in its folder import none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.lab import REPOSITORY
from tests.projects import LAB as PROJECT

pytestmark = pytest.mark.slow

# What the engine and its libraries import: from the standard library, from packages, and their optional parts.
MODULES = (
    "yaml", "jinja2", "markupsafe", "sqlglot", "click", "rich", "msgspec", "pyiceberg", "pydantic", "strictyaml",
    "pyarrow", "numpy", "pandas", "orjson", "ujson", "colorama", "zstandard", "fsspec", "s3fs", "json", "logging", "sqlite3",
    "decimal", "uuid", "difflib", "graphlib", "fractions", "http", "socket", "multiprocessing", "concurrent", "pytest",
)  # fmt: skip
COMMANDS = (["ls"], ["parse"], ["compile"], ["docs", "generate"], ["debug"], ["--help"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose folder holds a module, a plugin and a package's entry point of every name; each leaves a mark."""
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "project.yml").write_text(PROJECT)
    (project / "models" / "a.sql").write_text("/*---\nmaterialized: table\n---*/\nselect 1 as id")
    planted = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + ' ')\n"
    for name in (*MODULES, "sitecustomize", "usercustomize", "conftest"):
        (project / f"{name}.py").write_text(planted)
    facts = project / "planted-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Name: planted\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[headrace.sources]\nplanted = conftest\n[pytest11]\nplanted = conftest\n")
    (project / "sources").mkdir()
    (project / "sources" / "s.yml").write_text("sources: [{name: s, tables: [{name: t, format: planted}]}]\n")
    return project


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_script_imports_nothing_of_the_current_folder(project: Path, command: list[str]) -> None:
    script = Path(sysconfig.get_path("scripts"), "engine")
    done = _run([str(script), *command], project)
    assert not (project.parent / "ran").exists(), (project.parent / "ran").read_text()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_python_m_engine_imports_nothing_of_the_current_folder_once_it_runs(project: Path, command: list[str]) -> None:
    done = _run([sys.executable, "-m", "engine", *command], project, PYTHONPATH=str(REPOSITORY))
    assert not (project.parent / "ran").exists(), (project.parent / "ran").read_text()
    assert "Traceback" not in done.stderr


def _run(arguments: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k != "PYTHONPATH"}
    return subprocess.run(
        arguments, cwd=cwd, env={**outside, **environment}, capture_output=True, text=True, check=False, timeout=120
    )
