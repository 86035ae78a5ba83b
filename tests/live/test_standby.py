"""`engine start` where another process writes the tables: it says once that it is on standby, and once that it takes over."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.api import Selection
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.api.project import Project
from engine.api.warm_session import WarmSession
from engine.cli.console.live_lines import live_line
from engine.errors import SetupError
from engine.events import Event, NodeState
from engine.live.lag import Lag
from engine.live.observer import line_of
from engine.live.status import LiveStatus, healthy
from tests.lab import wait_until
from tests.project.small_projects import STREAM, clean, model

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from engine.api.project import Project
from engine.plan.deployed.state_folder import table_state
from engine.state import locked
compiled = Project(sys.argv[1]).compile()
states = [table_state(compiled.target, compiled.manifest.model(name)) for name in ("a", "b")]
with locked(states, keeps_running=True):
    print("locked", flush=True)
    sys.stdin.read()
"""
ORDER = '{"id": "1", "ts": "2026-01-01T10:00:00Z", "amount": 1.0, "item": {"name": "x", "price": 1.0}}\n'


@contextmanager
def holding(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the tables, until its input ends."""
    command = [sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process


@contextmanager
def following(live: LiveProject, project: Project) -> Iterator[None]:
    compiled = project.compile()
    thread = threading.Thread(target=live.follow, args=(compiled, ["model.a", "model.b"]))
    thread.start()
    try:
        yield
    finally:
        live.stop("the test ends")
        thread.join(60)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    clean(tmp_path, {**model(STREAM, name="a"), **model(STREAM, name="b")})
    (tmp_path / "landing/orders").mkdir(parents=True)
    (tmp_path / "landing/orders/1.json").write_text(ORDER)

    def no_java(*_: Any, **__: Any) -> Any:
        raise SetupError("java-missing", "there is no Java here", "Install it.")

    monkeypatch.setattr(WarmSession, "run", no_java)
    monkeypatch.setattr("engine.runtime.queue.node_queue.LOCKED", 0.2)
    return tmp_path


def test_the_waiting_process_says_so_once_for_each_model_and_once_when_it_takes_over(root: Path) -> None:
    project, events, status = Project(root), list[Event](), LiveStatus()
    live = LiveProject(project, Selection(), LiveOptions(reload=False), (events.append, status.add))

    def of(name: str, **fields: Any) -> list[Any]:
        found = [event for event in list(events) if type(event).__name__ == name]
        return [one for one in found if all(getattr(one, key) == value for key, value in fields.items())]

    with holding(root) as other, following(live, project):
        assert wait_until(lambda: len(of("NodeStateChanged", state=NodeState.STANDBY)) == 2)
        assert wait_until(lambda: min(entry.turns for entry in live.queue.entries.values()) > 10)
        assert not of("Diagnosed")
        assert len(of("NodeTurnStarted")) == len(of("NodeTurnFinished")) == 2
        assert len([line for line in map(live_line, list(events)) if "standby" in line]) == 2
        assert not [line for line in map(line_of, list(events)) if line and line[1] == "error"]
        status.note_lags({"model.a": (Lag("shop.orders", "files", 1),)}, time.time() - 10_000)
        shown = status.to_json()
        assert (healthy(shown), shown["states"]) == (True, {"standby": 2})
        assert f"process {other.pid} on " in shown["nodes"][0]["reason"]
        assert other.stdin is not None
        other.stdin.close()
        other.wait(60)
        assert wait_until(lambda: len(of("NodeStateChanged", took_over=True)) == 2)
        assert wait_until(lambda: len(of("NodeTurnFinished", message="there is no Java here")) >= 2)
    taken = [line for line in map(live_line, events) if "took over from process" in line]
    assert len(taken) == 2
    assert not healthy(status.to_json())
