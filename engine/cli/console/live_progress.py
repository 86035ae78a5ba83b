"""What a command is doing at the moment, kept from its events for the last lines of a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from engine.cli.console.live_area import AREA, spinner
from engine.cli.console.running_node import RunningNode, RunProgress
from engine.events import (
    BatchCommitted,
    Event,
    LiveStarted,
    LiveStopped,
    ModelFinished,
    ModelStarted,
    NodeTurnFinished,
    NodeTurnStarted,
    RunFinished,
    RunStarted,
    Step,
    StepStarted,
    TestFinished,
    TurnFinished,
)
from engine.node_ids import shown_name

_STEPS = {
    Step.COMPILE: "Compiling the project",
    Step.PLAN: "Reading tables and state",
    Step.SESSION: "Starting Spark",
}
# Units in which the progress of a stream is measured; a stream over a table reads all that waits at once.
_COUNTED = ("files", "offsets")


class LiveProgress:
    """Follows the events of a command and draws what runs, on a terminal.

    Another thread, or a timer that interrupts the first, draws: what they read is replaced, never changed.
    """

    def __init__(self) -> None:
        self._step: Step | None = None
        self._total = 0
        self._ended = 0
        self._began = 0.0
        # Of `engine start`, which has no end.
        self._is_live = False
        self._running: dict[str, RunningNode] = {}

    def event(self, event: Event) -> None:
        match event:
            case StepStarted(Step.COMPILE):
                self._step = event.step
                AREA.by_timer(self.lines)
            case StepStarted():
                self._step = event.step
                AREA.by_thread(self.lines)
            case RunStarted():
                self._step, self._total, self._ended, self._began = None, event.total, 0, time.monotonic()
                AREA.by_thread(self.lines)
            case LiveStarted():
                self._step, self._is_live = None, True
                AREA.close()
            case RunFinished() | TurnFinished() | LiveStopped():
                self._step, self._total, self._running = None, 0, {}
                AREA.close()
            case _:
                self._node(event)

    def _node(self, event: Event) -> None:
        match event:
            case NodeTurnStarted():
                self._begin(event.node, RunningNode(shown_name(event.node), time.monotonic()))
            case ModelStarted():
                unit = next((unit for unit in _COUNTED if event.unread.get(unit)), "")
                node = RunningNode(shown_name(event.node), time.monotonic(), unit, event.unread.get(unit, 0))
                self._begin(event.node, node)
            case BatchCommitted() if event.node in self._running:
                self._running[event.node] = self._running[event.node].with_batch(event)
            case ModelFinished() | TestFinished():
                self._ended += 1
                self._running.pop(event.node, None)
            case NodeTurnFinished():
                self._running.pop(event.node, None)
            case _:
                pass

    def _begin(self, node: str, running: RunningNode) -> None:
        self._running[node] = running
        if self._is_live:
            AREA.by_thread(self.lines)

    def lines(self) -> Sequence[str]:
        if self._step is not None:
            return (f"{spinner(AREA.began)} {_STEPS[self._step]}  {time.monotonic() - AREA.began:.0f}s",)
        # A copy: an event may come meanwhile.
        running = tuple(self._running.values())
        if not running and not self._total:
            return ()
        from engine.cli.console.progress_bars import bar_lines

        return bar_lines(running, RunProgress(self._total, self._ended, self._began) if self._total else None)
