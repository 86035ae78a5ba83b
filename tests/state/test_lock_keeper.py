"""Locks of runs in a JVM that was started before them: free when the run has ended, or the JVM of a killed one is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state import TableState, locked
from engine.state.lock import LockKeeper
from tests.lab import wait_until

# A run in a process of its own; what stands for the JVM inherits the pipe, and lives on.
RUN = """
import subprocess, sys, time
from pathlib import Path
from engine.state import TableState, locked
from engine.state.lock import LockKeeper
keeper = LockKeeper()
jvm = subprocess.Popen(["sleep", "60"], pass_fds=[keeper.inherited], start_new_session=True, stdout=subprocess.DEVNULL)
keeper.close_inherited()
with locked([TableState(Path(sys.argv[1]), "lake", "main", "orders")]) as locks, keeper.keeping(locks):
    print(jvm.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def table(tmp_path: Path) -> TableState:
    return TableState(tmp_path, "lake", "main", "orders")


def is_free(table: TableState, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr("engine.state.lock.ORPHAN_SECONDS", 0.0)
    try:
        with locked([table]):
            return True
    except StateError:
        return False


def test_locks_are_free_between_runs(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    with LockKeeper() as keeper:
        for _ in range(3):
            with locked([table]) as locks, keeper.keeping(locks):
                assert not is_free(table, monkeypatch)
            assert is_free(table, monkeypatch)


def test_a_run_that_fails_gives_them_back(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    with LockKeeper() as keeper:
        with pytest.raises(KeyboardInterrupt), locked([table]) as locks, keeper.keeping(locks):
            raise KeyboardInterrupt
        assert is_free(table, monkeypatch)


@pytest.mark.slow
def test_the_locks_of_a_killed_run_are_held_until_its_jvm_is_gone(
    table: TableState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    jvm = int(run.stdout.readline())
    try:
        run.kill()
        run.wait()
        run.stdout.close()
        time.sleep(0.3)
        assert not is_free(table, monkeypatch)
    finally:
        os.kill(jvm, signal.SIGKILL)
    assert wait_until(lambda: is_free(table, monkeypatch))


def _children() -> set[int]:
    return {int(p) for p in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


def test_a_keeper_that_was_killed_does_not_stop_the_run(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _children()  # what another test of this process has left
    with LockKeeper() as keeper, locked([table]) as locks:
        with keeper.keeping(locks):
            (shell,) = _children() - before
            os.kill(shell, signal.SIGKILL)
        assert not is_free(table, monkeypatch)


def test_nothing_is_left_open(tmp_path: Path, table: TableState) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with LockKeeper() as keeper:
            keeper.close_inherited()
            with locked([table]) as locks, keeper.keeping(locks):
                pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before
