"""The workflow that `engine init` writes: the plan of a pull request, as its steps give it in a real repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.cli.commands.init_command import create_project
from tests.cli import github_cli
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow

_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")
_MARK = "<!-- headrace plan -->\n"
_PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def _run(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=120
    )


def _git(folder: Path, *arguments: str) -> None:
    done = _run(folder, "git", *_AUTHOR, *arguments)
    assert done.returncode == 0, done.stderr


def _jobs(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / ".github/workflows/headrace.yml").read_text())
    return found


def _program(folder: Path, name: str, *command: str | Path) -> None:
    folder.mkdir(exist_ok=True)
    words = " ".join(f'"{word}"' for word in command)
    (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    (folder / name).chmod(0o755)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A clone of a new project, on a branch of its own, with `engine` and `gh` in tmp_path/bin."""
    origin, root = tmp_path / "origin", tmp_path / "work" / "shop"
    create_project(origin, "files")
    _git(origin, "init", "-q", "-b", "main")
    _git(origin, "add", ".")
    _git(origin, "commit", "-q", "-m", "first")
    _git(tmp_path, "clone", "-q", str(origin), str(root))
    _git(root, "switch", "-q", "-c", "edit")
    _program(tmp_path / "bin", "engine", sys.executable, "-m", "engine")
    _program(tmp_path / "bin", "gh", sys.executable, github_cli.__file__, tmp_path / "comments.json")
    return root


def _edited(root: Path, old: str, new: str) -> None:
    model = root / "models/marts/sales_hourly.sql"
    text = model.read_text()
    assert old in text
    model.write_text(text.replace(old, new))
    _git(root, "commit", "-q", "-a", "-m", "second")


def _planned(root: Path) -> tuple[int, str, str]:
    """Run the steps of the job `plan`; its exit code, the summary, and what it hands to the comment."""
    place = root.parents[1]
    summary, output = place / "summary.md", place / "output"
    for file in (summary, output):
        file.write_text("")
    there = {
        "PATH": f"{place}/bin:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output), "PYTHONPATH": str(REPOSITORY),
    }  # fmt: skip
    if (root.parent / "base").exists():
        _git(root, "worktree", "remove", "--force", str(root.parent / "base"))
    code = 0
    for step in _jobs(root)["jobs"]["plan"]["steps"]:
        if "run" not in step or step["run"].startswith("pip "):
            continue
        # After a step that failed only those run that ask for it.
        assert code == 0 or step.get("if") == "${{ !cancelled() }}"
        given = {name: "main" if "base_ref" in value else value for name, value in step.get("env", {}).items()}
        done = _run(root, "bash", "-e", "-c", step["run"], **there, **given)
        code = code or done.returncode
        assert "Traceback" not in done.stderr
    assert (root / "target/docs/data/changes.js").read_text().startswith("headrace.put(")
    name, _, text = output.read_text().partition("<<")
    end, _, text = text.partition("\n")
    assert name == "markdown"
    assert text.endswith(f"{end}\n")
    return code, summary.read_text(), text.removesuffix(f"\n{end}\n")


def _commented(root: Path, plan: str) -> list[dict[str, Any]]:
    """Run the step of the job `comment`; the comments of the pull request afterwards."""
    place = root.parents[1]
    (step,) = _jobs(root)["jobs"]["comment"]["steps"]
    values = {
        "${{ needs.plan.outputs.markdown }}": plan,
        "${{ github.token }}": "token",
        "${{ github.repository }}": "o/shop",
        "${{ github.event.pull_request.number }}": "7",
    }
    env = dict(step["env"])
    for name, value in values.items():
        env = {key: text.replace(name, value) for key, text in env.items()}
    assert not [text for key, text in env.items() if "${{" in text and key != "PLAN"]
    done = _run(place, "bash", "-e", "-c", step["run"], PATH=f"{place}/bin:{os.environ['PATH']}", **env)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads((place / "comments.json").read_text())
    return found


def test_the_plan_of_a_pull_request_is_a_comment_that_each_push_edits(shop: Path) -> None:
    somebody = {"id": 3, "user": {"login": "somebody"}, "body": f"{_MARK}not mine"}
    other = {"id": 4, "user": {"login": "github-actions[bot]"}, "body": "of another workflow"}
    (shop.parents[1] / "comments.json").write_text(json.dumps([somebody, other]))
    _edited(shop, "sum(amount) as sales", "sum(amount) + 1 as sales")
    code, summary, text = _planned(shop)
    assert (code, summary.rstrip()) == (0, text)
    assert text.startswith("### Plan for `dev`: ")
    assert "\n- sum(amount) as sales" in text
    assert "\n+ sum(amount) + 1 as sales" in text
    first = _commented(shop, text)
    assert first[:2] == [somebody, other]
    assert [one["body"] for one in first[2:]] == [f"{_MARK}{text}\n"]

    _edited(shop, "sum(amount) + 1 as sales", "sum(amount) + 2 as sales")
    again = _planned(shop)[2]
    assert "\n+ sum(amount) + 2 as sales" in again
    assert _commented(shop, again) == [somebody, other, {**first[2], "body": f"{_MARK}{again}\n"}]


def test_a_plan_that_is_rejected_fails_and_is_a_comment_too(shop: Path) -> None:
    model = shop / "models/marts/sales_hourly.sql"
    edited = re.sub(r"tumbling\((\w+), '?1 hour'?\)", r"tumbling(\1, '2 hours')", model.read_text())
    assert edited != model.read_text()
    model.write_text(edited)
    _git(shop, "commit", "-q", "-a", "-m", "second")
    code, summary, text = _planned(shop)
    assert code == 1
    assert "1 rejected" in text
    assert summary.rstrip() == text
    assert _commented(shop, text)[0]["body"] == f"{_MARK}{text}\n"


def test_only_the_job_that_writes_the_comment_may_write(shop: Path) -> None:
    workflow = _jobs(shop)
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "test": None,
        "plan": None,
        "comment": {"pull-requests": "write"},
    }
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == ["push", "pull_request"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    assert all(_PINNED.fullmatch(one) for one in used)
    # What anybody may write into a pull request is in the environment, and never in the text of a command.
    assert not [step for job in jobs.values() for step in job["steps"] if "${{" in step.get("run", "")]
    assert not [step for step in jobs["comment"]["steps"] if "uses" in step or "engine " in step["run"]]
    assert jobs["comment"]["needs"] == "plan"
    assert "head.repo.full_name == github.repository" in jobs["comment"]["if"]
    assert "!cancelled()" in jobs["comment"]["if"]
