"""`engine sink`: how far a sink has delivered and what waits, and a position that is set by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, log_file
from engine.cli.console.amounts import amount
from engine.cli.console.rows_text import format_rows
from engine.cli.console.safe_output import write, write_json
from engine.errors import UsageError, near

if TYPE_CHECKING:
    from engine.compile import Compiled, Sink
    from engine.runtime.deliver_sinks import OpenSink
    from engine.sinks.delivery import Pending
    from engine.sinks.position import Position

EARLIEST, NOW = "earliest", "now"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits: the commits, their added rows (those of deleted ones included), and some of them."""

    commits: int
    rows: int
    sample: list[tuple[Any, ...]]


def show_sink(settings: CommandSettings, name: str, limit: int, output: str) -> None:
    """Print the position of a sink, what waits, and some rows of it.

    Raises:
        UsageError: there is no such sink.
        EngineError: the table or the target cannot be read, or the sink cannot continue.
    """
    from engine.runtime.deliver_sinks import open_sink
    from engine.sinks.delivery import find_undelivered

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        sink = _find_sink(result, name)
        with open_sink(result.manifest, result.target, sink) as opened:
            stored_position = opened.target.position()
            undelivered = find_undelivered(opened.spec, opened.table, stored_position, from_now=sink.from_now)
            waiting = _waiting(opened, undelivered, limit)
    names = list(opened.spec.names)
    if output == "json":
        rows = [dict(zip(names, map(_json_cell, row), strict=True)) for row in waiting.sample]
        about = {
            "sink": sink.name,
            "place": sink.place,
            "snapshot": stored_position.snapshot if stored_position else None,
        }
        write_json({**about, "key": list(opened.spec.key), "columns": names, "commits": waiting.commits,
                    "rows": waiting.rows, "sample": rows})  # fmt: skip
        return
    write(f"{sink.name}: {sink.model.partition('.')[2]} to {sink.place}")
    write(f"columns: {', '.join(names)}" + (f"; key: {', '.join(opened.spec.key)}" if opened.spec.key else ""))
    write(f"position: {_position(stored_position)}")
    write(f"waiting: {amount(waiting.commits, 'commit')}, {amount(waiting.rows, 'added row')}")
    if waiting.sample:
        write(format_rows((names, waiting.sample), "text"))


def reset_sink(settings: CommandSettings, name: str, to: str) -> None:
    """Set the position of a sink; nothing is delivered or deleted.

    Raises:
        UsageError: there is no such sink, or no such snapshot.
        EngineError: the table or the target cannot be read.
    """
    from engine.runtime.deliver_sinks import open_sink
    from engine.sinks.position import Position

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        sink = _find_sink(result, name)
        with open_sink(result.manifest, result.target, sink) as opened:
            snapshot = _snapshot(opened, to)
            spec, table = opened.spec, opened.table
            opened.target.reset(Position(table.uuid, snapshot, key=spec.key, columns=spec.names))
    begin = "all rows of the table" if snapshot is None else f"the commits after snapshot {snapshot}"
    settings.out.say(f"The next build delivers {begin} to {sink.place}")


def _find_sink(result: Compiled, name: str) -> Sink:
    sinks = {sink.name: sink for sink in result.manifest.sinks}
    name = name.removeprefix("sink:")
    if name not in sinks:
        hint = near(name, sinks) or "The project has no sinks; they are declared under 'sinks:' in models/."
        raise UsageError("usage", f"there is no sink '{name}'", hint)
    return sinks[name]


def _snapshot(opened: OpenSink, to: str) -> int | None:
    if to == EARLIEST:
        return None
    if to == NOW:
        return opened.table.current
    if not to.isdecimal() or not opened.table.has(int(to)):
        message = f"the table of the sink '{opened.sink.name}' has no snapshot '{to}'"
        raise UsageError("usage", message, "Write --to now, --to earliest, or the number of a snapshot.")
    return int(to)


def _waiting(opened: OpenSink, undelivered: Pending, limit: int) -> Waiting:
    table, names = opened.table, opened.spec.names
    batches = (read.rows for commit in undelivered.commits for read in table.added(commit, names))
    rows = (tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist())
    sample = list(islice(rows, limit))
    return Waiting(len(undelivered.commits), sum(table.rows_added(commit) for commit in undelivered.commits), sample)


def _position(stored_position: Position | None) -> str:
    if stored_position is None:
        return "nothing was delivered"
    if stored_position.reading is not None:
        return f"within snapshot {stored_position.reading}"
    return "before the first row" if stored_position.snapshot is None else f"snapshot {stored_position.snapshot}"


def _json_cell(value: Any) -> Any:
    from engine.lake.catalog.value_text import value_text

    return value if value is None or isinstance(value, (bool, int, float, str)) else value_text(value)
