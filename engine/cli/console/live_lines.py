"""The lines of `engine start`: one for each turn that did something, and for what a person should see."""

from __future__ import annotations

from engine.cli.console.amounts import amount
from engine.events import (
    INTERRUPTED,
    Event,
    LiveStarted,
    LiveStopped,
    MaintenanceFinished,
    ModelFinished,
    NodeState,
    NodeStateChanged,
    ProjectReloaded,
    SessionClosed,
    SinkFinished,
    Status,
    TestFinished,
)
from engine.node_ids import shown_name

_SHOWN = frozenset({NodeState.BACKING_OFF, NodeState.FAILED, NodeState.PAUSED})


def turn_line(event: Event) -> str:
    """Return the line of a model or test that ended in a turn; empty: nothing worth a line happened."""
    match event:
        case ModelFinished() | TestFinished() if event.message == INTERRUPTED:
            return f"{shown_name(event.node)}: CANCELLED"
        case ModelFinished(status=Status.SUCCESS):
            rows = "" if event.kind == "view" else f" {amount(event.rows_out, 'row')}"
            late = f", {amount(event.late, 'late row')}" if event.late else ""
            late += f", {amount(event.duplicates, 'duplicate')}" if event.duplicates else ""
            bad = sum(event.bad_records.values())
            wrong = f", {amount(bad, 'bad record')}" if bad else ""
            more = "; more input" if event.more else ""
            return f"{shown_name(event.node)}:{rows} in {event.seconds:.1f}s{late}{wrong}{more}"
        case SinkFinished(status=Status.SUCCESS):
            deleted = f", {event.rows_deleted:,} deleted" if event.rows_deleted else ""
            return f"{shown_name(event.node)}: {amount(event.rows_out, 'row')}{deleted} in {event.seconds:.1f}s"
        case ModelFinished() | SinkFinished() if event.status.failed:
            return f"{shown_name(event.node)}: {event.status.value.upper()} {event.message}"
        case TestFinished() if event.status in {Status.FAIL, Status.ERROR, Status.WARN}:
            return f"{shown_name(event.node)}: {event.status.value.upper()} {event.message}"
    return ""


def live_line(event: Event) -> str:
    text = ""
    match event:
        case LiveStarted():
            text = f"Target {event.target}, {amount(len(event.nodes), 'node')}; Ctrl-C or 'engine stop' ends it"
        case NodeStateChanged(state=NodeState.STANDBY):
            text = f"{shown_name(event.node)}: standby, {event.reason}"
        case NodeStateChanged(took_over=True):
            text = f"{shown_name(event.node)}: {event.reason}"
        case NodeStateChanged() if event.state in _SHOWN:
            until = f", next try at {_time(event.until)}" if event.until else ""
            text = f"{shown_name(event.node)}: {event.state.value}{until}"
        case ProjectReloaded():
            summary = f"project reloaded, {amount(len(event.changed), 'node')} changed"
            text = event.rejection or summary
        case MaintenanceFinished() if event.message:
            text = f"{shown_name(event.node)}: {event.message}"
        case SessionClosed():
            text = f"Spark JVM shut down: {event.reason}"
        case LiveStopped():
            text = f"Stopped: {event.reason}"
        case _:
            pass
    return text


def _time(at: str) -> str:
    return at[11:19]
