"""The workflow that `engine init` writes: the plan of a pull request, as its steps give it in a real repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from engine.cli.commands.init_command import create_project
from tests.lab import REPOSITORY

_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def _run(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=120
    )


def _git(folder: Path, *arguments: str) -> None:
    done = _run(folder, "git", *_AUTHOR, *arguments)
    assert done.returncode == 0, done.stderr


def test_the_plan_of_a_pull_request_is_in_the_summary(tmp_path: Path) -> None:
    origin, root = tmp_path / "origin", tmp_path / "work" / "shop"
    create_project(origin, "files")
    _git(origin, "init", "-q", "-b", "main")
    _git(origin, "add", ".")
    _git(origin, "commit", "-q", "-m", "first")
    _git(tmp_path, "clone", "-q", str(origin), str(root))
    _git(root, "switch", "-q", "-c", "edit")
    model = root / "models/marts/sales_hourly.sql"
    model.write_text(model.read_text().replace("sum(amount) as sales", "sum(amount) + 1 as sales"))
    assert "+ 1" in model.read_text()
    _git(root, "commit", "-q", "-a", "-m", "second")

    summary, bin_ = tmp_path / "summary.md", tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "engine").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
    (bin_ / "engine").chmod(0o755)
    there = {"PATH": f"{bin_}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary), "PYTHONPATH": str(REPOSITORY)}
    steps = yaml.safe_load((root / ".github/workflows/headrace.yml").read_text())["jobs"]["plan"]["steps"]
    commands = [step for step in steps if "run" in step and not step["run"].startswith("pip ")]
    assert len(commands) == 3
    for step in commands:
        given = {name: "main" if "base_ref" in value else value for name, value in step.get("env", {}).items()}
        done = _run(root, "bash", "-e", "-c", step["run"], **there, **given)
        assert done.returncode == 0, done.stdout + done.stderr
    text = summary.read_text()
    assert text.startswith("### Plan for `dev`: ")
    assert "\n- sum(amount) as sales" in text
    assert "\n+ sum(amount) + 1 as sales" in text
