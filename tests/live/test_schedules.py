"""A model with a schedule runs at its times, whatever has come meanwhile, and once when `engine start` begins."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from engine.api import Selection
from engine.api.keep_running.live_project import LiveOptions, LiveProject
from engine.compile.types.cron import Schedule
from engine.events import NodeState
from engine.plan import Action, ActionKind, Plan
from engine.runtime.queue.live_nodes import LiveNode

MODEL = "model.a"


@pytest.mark.parametrize(("schedule", "later"), [("0 0 1 1 *", NodeState.IDLE), (None, NodeState.QUEUED)])
def test_a_plan_that_finds_unread_input_leaves_it_to_the_schedule(schedule: str | None, later: NodeState) -> None:
    action = Action(MODEL, ActionKind.RESUME, ("unread input",), unchanged=False)
    project: Any = SimpleNamespace(decide=lambda *_: Plan({MODEL: action}))
    live, compiled = LiveProject(project, Selection(), LiveOptions()), SimpleNamespace()
    live._compiled = compiled  # type: ignore[assignment]
    node = LiveNode(MODEL, (MODEL,), schedule=Schedule.of(schedule) if schedule else None)
    live.queue.replace({MODEL: node}, (), time.time())
    entry = live.queue.entries[MODEL]
    live._plan(first=True)
    assert entry.state is NodeState.QUEUED
    live.queue.begin_turn(entry, time.time())
    live.queue.succeed(MODEL, time.time(), more=False)
    live._plan()
    assert entry.state is later
