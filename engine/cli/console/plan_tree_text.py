"""The tree of a plan on a terminal: colours, and lines as wide as the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable

from engine.api.plan_report.plan_tree import TreeLine
from engine.cli.console.live_area import is_unicode
from engine.cli.console.safe_output import Part, Styled, write

COLOURS = {
    "create": "green", "empty": "green", "resume": "cyan", "reset": "yellow", "refresh": "yellow", "rebuild": "yellow",
    "rejected": "red",
}  # fmt: skip
CHANGED = {"+ ": "green", "- ": "red"}
_ASCII = str.maketrans({"├": "|", "└": "`", "─": "-", "│": "|"})
_LABELS = 11
_ACTIONS = 10
# Narrower terminals break lines by themselves, and where there is none a line is a line.
_NARROWEST = 60


def write_tree(lines: Iterable[TreeLine]) -> None:
    """Print the lines of a tree; where standard output has no such characters, with others."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in lines:
        rail = line.rail if is_unicode() else line.rail.translate(_ASCII)
        if line.action:
            colour = COLOURS.get(line.action, "")
            head = Styled(line.action.ljust(_ACTIONS), colour, bold=bool(colour))
            write(_quiet(rail), head, Styled(line.label, "", bold=True), _quiet(f"  {line.text}"))
            continue
        first, *continuation = _wrapped(line.text, width - len(rail) - _LABELS)
        colour = CHANGED.get(line.text[:2], "") if line.label in {"", "diff"} else ""
        write(_quiet(rail + line.label.ljust(_LABELS)), Styled(first, colour) if colour else first)
        for line_text in continuation:
            write(_quiet(rail + " " * _LABELS), Styled(line_text, colour) if colour else line_text)


def _quiet(text: str) -> Part:
    return Styled(text, "bright_black") if text else ""


def _wrapped(text: str, width: int) -> list[str]:
    if width < _NARROWEST:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [text]
