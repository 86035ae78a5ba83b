"""`engine status`: the last status that the process wrote, and whether it runs. Needs no Java and compiles nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.characters import one_line
from engine.cli.console.safe_output import write, write_json
from engine.live import status_file
from engine.live.standing import standings
from engine.live.status import healthy
from engine.live.status_record import NodeRecord, StatusRecord, aged
from engine.node_ids import shown_name
from engine.times import SECONDS

if TYPE_CHECKING:
    from rich.table import Table

HEALTHY, UNHEALTHY, NOT_RUNNING = 0, 1, 3
_COLOURS = {"failed": "red", "stalled": "yellow", "healthy": ""}
_HEADS = (
    "model",
    "state",
    "last commit",
    "rows/s",
    "lag",
    "watermark",
    "late",
    "duplicates",
    "bad",
    "restarts",
    "last error",
)
_NUMBERS = {"rows/s", "lag", "late", "duplicates", "bad", "restarts"}
_NEVER = "does not run, and has not run with this target folder"
_ALWAYS = 5
_EMPTY = {"", "-", "0"}
_WIDE = 200
_ORDER = {"failed": 0, "stalled": 1, "healthy": 2}


def show_status(target_dir: Path, output: str, *, watch: bool) -> int:
    """Print the status, and return the exit code: 0 healthy, 1 something failed or stalled, 3 not running."""
    if watch and output == "text":
        return _watch_status(target_dir)
    status, runs = _read_status(target_dir), status_file.running(target_dir)
    if output == "json":
        write_json({"running": runs, **(status or {})}, indent=2)
        return _code(status, runs=runs)
    write(_heading(status, target_dir, runs=runs))
    if status is not None:
        from rich.console import Console

        console = Console(highlight=False)
        console.width = console.width if console.is_terminal else _WIDE
        console.print(_table(status))
        for line in _errors(status):
            write(line)
    return _code(status, runs=runs)


def show_liveness(target_dir: Path, output: str) -> int:
    """Print whether the process works, and return the exit code: 0 it does, 1 it hangs, 3 not running."""
    runs, alive = status_file.running(target_dir), status_file.alive(target_dir)
    if output == "json":
        write_json({"running": runs, "alive": alive}, indent=2)
    else:
        hangs = "engine start runs, and has decided nothing for five minutes"
        write("engine start works" if alive else hangs if runs else "engine start does not run")
    return HEALTHY if alive else UNHEALTHY if runs else NOT_RUNNING


def _watch_status(target_dir: Path) -> int:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        while True:
            status, runs = _read_status(target_dir), status_file.running(target_dir)
            heading = Text(_heading(status, target_dir, runs=runs))
            parts: list[Any] = [_table(status), *map(Text, _errors(status))] if status else []
            live.update(Group(heading, *parts), refresh=True)
            if not live.console.is_terminal:
                return _code(status, runs=runs)
            time.sleep(1)


def _read_status(target_dir: Path) -> StatusRecord | None:
    """The last status, with its ages as of now."""
    status = status_file.read(target_dir)
    return aged(status, time.time()) if status else None


def _code(status: StatusRecord | None, *, runs: bool) -> int:
    if not runs:
        return NOT_RUNNING
    return HEALTHY if status is not None and healthy(status) else UNHEALTHY


def _heading(status: StatusRecord | None, target_dir: Path, *, runs: bool) -> str:
    return one_line(_without_status(target_dir, runs=runs) if status is None else _summary(status, runs=runs))


def _without_status(target_dir: Path, *, runs: bool) -> str:
    if status_file.is_of_others(target_dir):
        verb = "runs" if runs else "does not run"
        reason = "it is damaged, or was not written here by you"
        return f"engine start {verb}; {target_dir / status_file.FILE} is not shown: {reason}"
    return f"engine start {'runs, and has written no status yet' if runs else _NEVER}"


def _summary(status: StatusRecord, *, runs: bool) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(status["states"].items()))
    if stalled := status["healths"].get("stalled"):
        states += f"; {stalled} of them stalled"
    if runs:
        return f"engine start runs (process {status['pid']}, target {status['target']}): {states}"
    ended = status["stopped_at"] or status["at"]
    reason = (
        f": {status['stop_reason']}" if status["stop_reason"] else "" if status["stopped_at"] else " (it was killed)"
    )
    return f"engine start does not run; it ended {_ago(time.time() - ended)} ago{reason}. Last known: {states}"


def _table(status: StatusRecord) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    nodes = sorted(status["nodes"], key=lambda node: (_ORDER.get(node["health"], 0), node["name"]))
    now, standing_by_node = time.time(), standings(nodes)
    rows = [_cells(node, standing_by_node[node["node"]].word, now) for node in nodes]
    # A column in which there is nothing to see would only make the others narrow.
    columns = [
        place for place in range(len(_HEADS)) if place < _ALWAYS or any(row[place] not in _EMPTY for row in rows)
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place in columns:
        numbers = _HEADS[place] in _NUMBERS
        table.add_column(_HEADS[place], justify="right" if numbers else "left", no_wrap=numbers or place == 0)
    for node, row in zip(nodes, rows, strict=True):
        cells = [Text(one_line(row[place])) for place in columns]
        table.add_row(*cells, style=_COLOURS.get(node["health"], ""))
    return table


def _cells(node: NodeRecord, word: str, now: float) -> tuple[str, ...]:
    state = word + (f": {node['reason']}" if node["reason"] and node["state"] != "idle" else "")
    lag = ", ".join(f"{lag['count']:,} {lag['what']}" for lag in node["lag"] if lag["count"])
    lag += f", {_ago(node['lag_seconds'])} old" if lag and node["lag_seconds"] is not None else ""
    age = node["watermark_age_seconds"]
    return (
        node["name"],
        state,
        f"{_ago(now - node['last_commit'])} ago" if node["last_commit"] else "-",
        f"{node['rows_per_second_1m']:,.1f}",
        lag or ("0" if node["lag_seconds"] == 0 else "-"),
        f"{_ago(age)} behind" if age is not None else "-",
        f"{node['late']:,}",
        f"{node['duplicates']:,}",
        f"{sum(node['bad_records'].values()):,}",
        f"{node['restarts']:,}",
        "" if node["health"] == "healthy" else (node["last_error"] or node["stalled"] or ""),
    )


def _errors(status: StatusRecord) -> list[str]:
    lines = [one_line(status["rejected"])] if status["rejected"] else []
    for node in status["nodes"]:
        if node["watermark_held"]:
            lines.append(one_line(f"{node['name']}: {node['watermark_held']}"))
        for source, reason in node.get("bad_reasons", {}).items():
            lines.append(one_line(f"{node['name']}: records of {source} cannot be read, for example: {reason}"))
        for test, message in node["tests_failing"].items():
            lines.append(one_line(f"{node['name']}: test {shown_name(test)} fails: {message}"))
    return lines


def _ago(seconds: float) -> str:
    """`12 s`, `4 min`, `3 h`, `2 d`."""
    for unit, short in (("day", "d"), ("hour", "h"), ("minute", "min")):
        if abs(seconds) >= SECONDS[unit]:
            return f"{int(seconds // SECONDS[unit])} {short}"
    return f"{max(0, round(seconds))} s"
