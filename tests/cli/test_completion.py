"""Completion in shells: what each is given to run, and what it gets back."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import engine, read_until
from tests.lab import REPOSITORY
from tests.projects import write_files

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    files = {
        "project.yml": "name: shop\ntargets: {dev: {schema: a}, prod: {schema: b}}\ntarget: dev\n",
        "sources/shop.yml": "sources: [{name: shop, tables: [{name: orders, format: rate}, {name: offers}]}]\n",
        "models/orders.sql": "select 1 as id\n",
        "models/marts/orders_hourly.sql": "this is no SQL {{\n",
        "models/other.sql": "select 1 as id\n",
    }
    write_files(tmp_path, files)
    return tmp_path


def completed(folder: Path, line: str) -> list[str]:
    """What a shell would offer at the end of a line."""
    words = line.split(" ")
    env = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_ENGINE_COMPLETE": "bash_complete"}
    ended = subprocess.run(
        [sys.executable, "-m", "engine"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return [item.partition(",")[2] for item in ended.stdout.split()]


# Each line in a fork of a process that has loaded the engine.
EACH = """
import json, os, runpy, sys
import engine.cli.main
for line in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_ENGINE_COMPLETE": "bash_complete"}
        sys.argv = ["engine"]
        runpy.run_module("engine", run_name="__main__", alter_sys=True)
    os.wait()
    print("--", flush=True)
"""
OFFERED = {
    "engine bu": ["build"],
    "engine build --full": ["--full-refresh"],
    "engine build -s ord": ["orders", "orders_hourly"],
    "engine build -s other ord": ["orders", "orders_hourly"],
    "engine build ot": ["other"],
    "engine build --exclude ot": ["other"],
    "engine test -s 2+orders_": ["2+orders_hourly"],
    "engine test -s @ot": ["@other"],
    "engine run source:shop.o": ["source:shop.offers", "source:shop.orders"],
    "engine show oth": ["other"],
    "engine drop other oth": ["other"],
    "engine source inspect shop.of": ["shop.offers"],
    "engine build -t p": ["prod"],
    "engine explain unbounded-comp": ["unbounded-complete"],
    "engine build -s nothing": [],
}


def test_what_is_offered(shop):
    line, offered = next(iter(OFFERED.items()))
    assert completed(shop, line) == offered
    command = [sys.executable, "-c", EACH, json.dumps([*OFFERED])]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(command, cwd=shop, env=env, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    each = [[item.partition(",")[2] for item in text.split()] for text in ended.stdout.split("--\n")[:-1]]
    assert dict(zip(OFFERED, each, strict=True)) == OFFERED


def test_another_folder_and_no_project(shop, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert completed(elsewhere, "engine build -s ord") == []
    assert completed(elsewhere, f"engine build --project-dir {shop} -s ot") == ["other"]
    assert list(elsewhere.iterdir()) == []


def test_completing_writes_nothing_into_the_project(shop):
    before = {path: path.stat().st_mtime_ns for path in shop.rglob("*")}
    completed(shop, "engine build -s o")
    assert {path: path.stat().st_mtime_ns for path in shop.rglob("*")} == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_for_its_shell(shell, tmp_path):
    ended = engine(tmp_path, "completion", shell)
    assert ended.returncode == 0
    assert f"_ENGINE_COMPLETE={shell}_complete" in ended.stdout
    if path := shutil.which(shell):
        assert subprocess.run([path, "-n"], input=ended.stdout, text=True, check=False).returncode == 0


@pytest.fixture
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a shell in which `engine` is a command."""
    program = tmp_path_factory.mktemp("bin") / "engine"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, "TERM": "dumb"}


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(shop, env):
    asked = 'engine completion fish | source; complete -C "engine build -s orders_"'
    ended = subprocess.run(
        ["fish", "--no-config", "-c", asked], cwd=shop, env=env, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["orders_hourly"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_at_the_tab_key(shop, env):
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(shop)
        os.execvpe("zsh", ["zsh", "-f", "-i"], env)
    try:
        # The echo of the line that is typed does not have the word as it is printed.
        os.write(terminal, b"autoload -Uz compinit; compinit -u -D; eval \"$(engine completion zsh)\"; echo rea''dy\n")
        assert b"ready" in read_until(terminal, b"ready")
        os.write(terminal, b"engine build -s orders_\t")
        assert b"engine build -s orders_hourly" in read_until(terminal, b"orders_hourly")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def test_bash_completes_with_the_script(shop, env):
    script = engine(shop, "completion", "bash").stdout
    asked = 'COMP_WORDS=(engine build -s orders_); COMP_CWORD=3; _engine_completion engine; echo "${COMPREPLY[@]}"'
    ended = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], cwd=shop, env=env, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "orders_hourly"


def test_another_shell_is_a_usage_error(tmp_path):
    ended = engine(tmp_path, "completion", "tcsh")
    assert ended.returncode == 2
    assert "'bash', 'zsh', 'fish'" in ended.stderr
