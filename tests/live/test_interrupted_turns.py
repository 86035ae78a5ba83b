"""Ctrl-C while tests and models run: they are cut off, and nothing is wrong with them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from engine import events
from engine.api.keep_running.live_turns import TurnContext, _ObservedTurn
from engine.cli.console.live_lines import turn_line
from engine.errors import Diagnostic
from engine.events import (
    INTERRUPTED,
    Event,
    LiveStopped,
    ModelFinished,
    NodeState,
    NodeTurnFinished,
    RunResults,
    Status,
)
from engine.live.observer import line_of
from engine.live.status import LiveStatus, healthy
from engine.runtime.queue.live_nodes import LiveNode
from tests.live.sequences import BEGIN, ORDERS, finished, started, state, text

CUT_TEST = events.TestFinished("test.orders_positive", 1, 1, Status.ERROR, 0.1, 0, INTERRUPTED)
CUT_MODEL = finished(ORDERS, Status.ERROR, INTERRUPTED)
FAILED = events.TestFinished("test.orders_unique", 1, 1, Status.FAIL, 0.1, 3, "3 rows")


def heard(*ended: ModelFinished | events.TestFinished) -> tuple[list[Event], Any]:
    """What listeners get of a turn that is cut off, and how it ends."""
    emitted: list[Event] = []
    stop = threading.Event()
    stop.set()
    shop = TurnContext(None, 20.0, stop, None, emitted.append, lambda _: None)  # type: ignore[arg-type] # neither is asked
    turn = _ObservedTurn(shop, LiveNode(ORDERS, (ORDERS, "test.orders_positive")), None)
    for event in ended:
        turn.hear(event)
    return emitted, turn.ended_with(RunResults(results=ended))


@pytest.mark.parametrize("cut", [CUT_TEST, CUT_MODEL], ids=["test", "model"])
def test_what_was_cut_off_is_not_failing(cut: ModelFinished | events.TestFinished) -> None:
    emitted, ended = heard(cut)
    assert (ended.status, ended.message) == (Status.SKIPPED, INTERRUPTED)
    status = LiveStatus({"test.orders_positive": ORDERS})
    finished_turn = NodeTurnFinished(ORDERS, 1, ended.status, 0.1, False, ended.message, text(BEGIN))
    for event in (
        started(),
        state(ORDERS, NodeState.RUNNING),
        *emitted,
        finished_turn,
        LiveStopped("interrupted", text(BEGIN)),
    ):
        status.add(event, BEGIN)
    record = status.to_json(BEGIN)
    (node,) = record["nodes"]
    assert healthy(record)
    assert (node["tests_failing"], node["failed_turns"], node["last_error"], node["state"]) == ({}, 0, None, "idle")
    assert [turn_line(event) for event in emitted] == [f"{cut.node.partition('.')[2]}: CANCELLED"]
    line = line_of(finished_turn)
    assert line is not None
    assert line[1] == "info"


def test_what_failed_before_is_failing() -> None:
    emitted, ended = heard(CUT_TEST, FAILED)
    assert (ended.status, ended.message) == (Status.FAIL, "3 rows")
    assert FAILED in emitted


def test_an_error_of_a_turn_that_was_cut_off_is_none() -> None:
    emitted: list[Event] = []
    stop = threading.Event()
    shop = TurnContext(None, 20.0, stop, None, emitted.append, lambda _: None)  # type: ignore[arg-type]
    found = (Diagnostic("java-ended", "Java has ended", ""),)
    assert _ObservedTurn(shop, LiveNode(ORDERS, ()), None).failed(found).status is Status.ERROR
    assert len(emitted) == 1
    stop.set()
    ended = _ObservedTurn(shop, LiveNode(ORDERS, ()), None).failed(found)
    assert (ended.status, ended.message, ended.findings, len(emitted)) == (Status.SKIPPED, INTERRUPTED, (), 1)


def test_failures_in_a_row_are_not_over_because_a_turn_was_cut_off() -> None:
    status = LiveStatus()
    for event in (
        started(),
        NodeTurnFinished(ORDERS, 1, Status.ERROR, 0.1, False, "the broker is away", text(BEGIN)),
        NodeTurnFinished(ORDERS, 2, Status.SKIPPED, 0.1, False, INTERRUPTED, text(BEGIN)),
    ):
        status.add(event, BEGIN)
    assert not healthy(status.to_json(BEGIN))
