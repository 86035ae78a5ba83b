"""The bars of what runs, drawn with rich, which is imported only where there is a terminal for them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engine.cli.console.live_area import spinner
from engine.cli.console.running_node import RunningNode, RunProgress
from engine.cli.console.safe_output import plain

_BAR = 20
_MOST = 8
_NAME = 32
# Columns that stay free: the terminal prints ^C there.
_MARGIN = 3
_NARROWEST = 20
# Columns of a terminal on which names and bars are shorter.
_NARROW = 100


def bar_lines(running: Sequence[RunningNode], run_progress: RunProgress | None) -> list[str]:
    """Return a line for each node that runs, and one for the run; no line is wider than the terminal."""
    columns, rows = _size()
    most = max(1, min(_MOST, rows - 3))
    name, bar = (_NAME, _BAR) if columns > _NARROW else (_NAME // 2, _BAR // 2)
    names = [_text(node.name) for node in running[:most]]
    longest = min(name, max((text.cell_len for text in names), default=0))
    grid = Table.grid(padding=(0, 1))
    # What does not fit is cut off at the right, not squeezed out of the columns before.
    for least, width in ((1, 1), (longest, name), (bar, bar), (None, None), (None, None)):
        grid.add_column(no_wrap=True, overflow="ellipsis", min_width=least, max_width=width)
    for node, text in zip(running, names, strict=False):
        seconds = Text(_seconds(node.began), justify="right")
        grid.add_row(Text(spinner(node.began)), text, _bar(node, bar), seconds, _text(_detail(node)))
    if len(running) > most:
        grid.add_row("", Text(f"and {len(running) - most} more"))
    if run_progress is not None:
        progress = ProgressBar(run_progress.total, min(run_progress.ended, run_progress.total), bar)
        nodes = Text(f"{run_progress.ended:,} of {run_progress.total:,} node{'' if run_progress.total == 1 else 's'}")
        grid.add_row(
            Text(spinner(run_progress.began)), Text("total"), progress, Text(_seconds(run_progress.began)), nodes
        )
    return _rendered_lines(grid, max(_NARROWEST, columns - _MARGIN))


def _bar(node: RunningNode, width: int) -> ProgressBar | Text:
    """How much of its input was read; one that moves to and fro as long as nothing was, none where it is not known."""
    if not node.unit:
        return Text("")
    return ProgressBar(node.total, node.units_read, width, pulse=not node.units_read, animation_time=time.monotonic())


def _detail(node: RunningNode) -> str:
    parts = [f"{node.units_read:,} of {node.total:,} {node.unit}"] if node.unit else []
    if node.rows:
        parts += [f"{node.rows:,} row{'' if node.rows == 1 else 's'}", f"{node.rate:,.0f} rows/s"]
    if node.watermark:
        parts.append(f"watermark {node.watermark[:19].replace('T', ' ')}")
    return ", ".join(parts)


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.0f}s"


def _text(text: str) -> Text:
    """A text that somebody else wrote: nothing in it steers the terminal, and none of it is rich's markup."""
    return Text(plain(text).replace("\n", " "))


def _size() -> os.terminal_size:
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return os.terminal_size((80, 24))
    return size if size.columns and size.lines else os.terminal_size((80, 24))


def _rendered_lines(grid: Table, width: int) -> list[str]:
    # The characters of bars are those that its encoding has.
    file = TextIOWrapper(BytesIO(), encoding=sys.stdout.encoding or "utf-8", errors="replace")
    console = Console(file=file, force_terminal=True, width=width, height=_MOST + 3, highlight=False)
    with console.capture() as captured:
        console.print(grid, end="")
    return captured.get().rstrip("\n").split("\n")
