"""Compiling in several processes gives what one process gives, and tells when one of them is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.compile.pipeline import worker_pool
from engine.compile.pipeline.worker import LocalWorker
from engine.compile.templates import confined_process
from engine.errors import SetupError
from tests.compile.test_cache import Edits, shown
from tests.lab import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Any number of models is worth three processes; those that were started."""
    seen: list[int] = []
    real = worker_pool._start_worker

    def counting(*arguments):
        worker = real(*arguments)
        seen.append(worker.process.pid)
        return worker

    # In another process nothing would be counted here.
    monkeypatch.setattr(confined_process, "run_confined", lambda work, *arguments: work(*arguments))
    monkeypatch.setattr(worker_pool, "_start_worker", counting)
    monkeypatch.setattr(worker_pool, "WORTH", 1)
    monkeypatch.setattr(worker_pool.os, "sched_getaffinity", lambda _: {0, 1, 2})
    # Threads that other tests have left behind hold no lock of ours.
    monkeypatch.setattr(worker_pool.threading, "active_count", lambda: 1)
    return seen


def test_several_processes_find_what_one_finds_after_any_edits(tmp_path, monkeypatch, started):
    edits = Edits(12, tmp_path / "project")
    for step in range(12):
        if step:
            edits.edit()
        with monkeypatch.context() as alone:
            alone.setattr(worker_pool, "WORTH", 1000)
            cold = shown(edits.compiled(None))
        number = len(started)
        assert shown(edits.compiled(tmp_path / "kept")) == cold, step
        assert step or len(started) == number + 3


def test_no_two_processes_wait_for_each_other_where_what_they_say_is_long(tmp_path, started):
    columns = ", ".join(f"id as {'long' * 20}_{n}" for n in range(2500))
    models = {f"wide{n}": f"select {columns} from {{{{ source('shop', 'orders') }}}}" for n in range(3)}
    models |= {f"one{n}": f"select * from {{{{ ref('wide{n % 3}') }}}}" for n in range(12)}
    edits = Edits(1, tmp_path / "project")
    for name, text in models.items():
        edits.put(f"models/{name}.sql", text)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(60)
    manifest = edits.compiled(None).manifest
    signal.alarm(0)
    assert {len(manifest.nodes[f"model.{name}"].columns) for name in models} == {2500}
    assert len(started) == 3


def test_a_process_that_is_killed_is_told(tmp_path, monkeypatch, started):
    parent = os.getpid()
    real = LocalWorker.finish

    def dying(self, ids, given):
        if os.getpid() != parent and "model.people" in ids:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, ids, given)

    monkeypatch.setattr(LocalWorker, "finish", dying)
    edits = Edits(1, tmp_path / "project")
    with pytest.raises(SetupError, match="signal 9") as raised:
        edits.compiled(tmp_path / "kept")
    assert raised.value.diagnostic.code == "process-ended"
    monkeypatch.undo()
    assert shown(edits.compiled(tmp_path / "kept")) == shown(edits.compiled(None))


def test_a_fault_in_a_process_comes_with_its_trace(tmp_path, monkeypatch, started):
    def failing(self, ids, given):
        raise ValueError("no such thing")

    monkeypatch.setattr(LocalWorker, "finish", failing)
    with pytest.raises(ValueError, match="no such thing") as raised:
        Edits(1, tmp_path / "project").compiled(None)
    assert "in failing" in "".join(raised.value.__notes__)
    assert len(started) == 3
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


_LEFT = """
import os, signal, sys, time
from pathlib import Path
from engine.compile.templates.confined_process import run_confined

def work():
    Path(sys.argv[1]).write_text(str(os.getpid()))
    while os.getppid() == parent:
        time.sleep(0.01)
    return bytes(10_000_000)

parent = os.getpid()
run_confined(work)
"""


def test_a_process_whose_asker_was_killed_ends_though_its_answer_is_long(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    asker = subprocess.Popen([sys.executable, "-c", _LEFT, str(pid)])
    assert wait_until(lambda: pid.exists() and pid.read_text() != "")
    asker.kill()
    asker.wait()
    worker = int(pid.read_text())
    ended = wait_until(lambda: not _runs(worker))
    if not ended:
        os.kill(worker, signal.SIGKILL)
    assert ended


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
