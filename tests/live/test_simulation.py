"""Random schedules of `engine start`: what is shown is true at each step, and each fault that was there is noticed.

The long run: python -m tests.live.simulation --count 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from engine.events import NodeState
from engine.live.node_status import LastError, NodeStatus
from engine.live.open_alerts import OpenAlerts
from engine.live.progress import Progress
from engine.live.status import LiveStatus
from tests.live.simulation.schedule import run

_batch, _begin, _failed = NodeStatus.batch, NodeStatus.begin, LastError.failed


def only_written_rows(self: NodeStatus, event: Any, at: float) -> None:
    before = self.progress.moved_at
    _batch(self, event, at)
    if not event.rows_out:
        self.progress.moved_at = before


def since_the_first(self: Progress, at: float, *, is_unread: bool) -> None:
    if is_unread and self.unread_since is None:
        self.unread_since = at


def every_turn_clears(self: NodeStatus, event: Any, at: float) -> None:
    _begin(self, event, at)
    self.tests_failing.clear()


def the_last_cause(self: LastError, message: str, at: float) -> None:
    self.message, self.at, self.first_at = message, at, at


def of_no_state(self: NodeStatus, event: Any, _: float) -> None:
    self.state = NodeState.IDLE


# What was wrong once, and what somebody could break.
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "only written rows are progress": (NodeStatus, "batch", only_written_rows),
    "a silence counts": (Progress, "note_unread", since_the_first),
    "a pause counts": (Progress, "take_state", lambda *_: None),
    "sleep counts": (Progress, "slept", lambda *_: None),
    "alerts are forgotten": (OpenAlerts, "load", lambda *_: ({}, {})),
    "the past is forgotten": (NodeStatus, "restore", lambda *_: None),
    "a turn of its model ends a failing test": (NodeStatus, "begin", every_turn_clears),
    "an error that is over is the last one": (LastError, "over", lambda _: None),
    "the last of two causes is named": (LastError, "failed", the_last_cause),
    "states are not followed": (NodeStatus, "change", of_no_state),
    "deleted models stay": (LiveStatus, "_keep", lambda self, nodes, *_, **__: [*map(self._status_of, nodes)]),
}


def test_what_is_shown_is_true(tmp_path: Path) -> None:
    checks = [run(seed, tmp_path / str(seed), seconds=1500) for seed in range(3)]
    assert min(checks) > 20, checks


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_fault_is_noticed(tmp_path: Path, mutant: str) -> None:
    owner, name, broken = MUTANTS[mutant]
    with patch.object(owner, name, broken), pytest.raises(AssertionError):
        run_many(tmp_path)


def run_many(folder: Path) -> None:
    for seed in range(60):
        run(seed, folder / str(seed), seconds=3600)
