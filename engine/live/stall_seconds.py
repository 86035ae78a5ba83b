"""When a model of `engine start` counts as stalled: by its own setting, else the target's, else after five minutes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.live.node_status import StallRule
from engine.live.status import STALLED_AFTER
from engine.times import duration_seconds

if TYPE_CHECKING:
    from engine.compile import Compiled


def stalled_after(compiled: Compiled, node: str) -> float:
    """Return the seconds a node with unread input may make no progress; tests have the target's."""
    model = compiled.manifest.nodes.get(node)
    own = getattr(getattr(model, "operation", None), "stalled_after", None)
    text = own or compiled.target.stalled_after
    return float(duration_seconds(text)) if text else STALLED_AFTER


def stall_rule(compiled: Compiled, node: str) -> StallRule:
    """Return when a node counts as stalled; input that waits for its schedule or trigger does not."""
    operation = getattr(compiled.manifest.nodes.get(node), "operation", None)
    on_schedule = bool(getattr(operation, "schedule", None))
    return StallRule(stalled_after(compiled, node), lambda at: _due_at(compiled, node, at), on_schedule)


def _due_at(compiled: Compiled, node: str, at: float) -> float:
    from engine.compile.types.cron import Schedule

    operation = getattr(compiled.manifest.nodes.get(node), "operation", None)
    if operation is None:
        return at
    if operation.schedule:
        moment = Schedule.of(operation.schedule).after(datetime.fromtimestamp(at, UTC))
        return at if moment is None else moment.timestamp()
    return float(at + operation.trigger.seconds)
