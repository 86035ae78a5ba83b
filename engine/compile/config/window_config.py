"""Declared windows: their forms, and where a query uses them.

A window resolves like a column. In the text it is replaced by Spark's own function; grouping by a part of
it (`hour.start`, also by alias or position) groups by the whole window, since Spark keeps the watermark on
the window only (measured: reference of streaming rules, "what counts as a watermarked grouping key").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.config.stream_config import WindowConfig
from engine.compile.nodes.manifest import Slot
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.parse import is_expression
from engine.errors import Diagnostic, Location, ProjectError
from engine.project.yaml_section import is_name, shown
from engine.times import duration_seconds, parse_duration

_CALL = re.compile(r"(tumbling|sliding|session)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_ARGUMENTS = {"tumbling": (2, 3), "sliding": (3, 4), "session": (2, 2)}
_FORMS = "Write tumbling(ts, 1 hour), sliding(ts, 10 minutes, 5 minutes) or session(ts, 5 minutes)."
_DURATION = "Write a number and a unit: 30 seconds, 10 minutes, 1 hour, 7 days."


@dataclass(frozen=True, slots=True)
class Window:
    name: str
    time: TimeWindow
    location: Location


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text from start to end (exclusive); `slots` are the places of the new text where inputs are named."""

    start: int
    end: int
    text: str
    slots: tuple[Slot, ...] = ()


def read_windows(configs: tuple[WindowConfig, ...], node: str, found: list[Diagnostic]) -> tuple[Window, ...]:
    windows = []
    for config in configs:
        try:
            windows.append(_read(config))
        except ProjectError as fault:
            found += [diagnostic.at(config.location, node) for diagnostic in fault.diagnostics]
    return tuple(windows)


def _read(config: WindowConfig) -> Window:
    if not is_name(config.name):
        hint = "Use lower-case letters, digits and underscores."
        raise ProjectError("bad-name", f"'{config.name}' is not a name", hint)
    match = _CALL.fullmatch(config.text.strip())
    if match is None:
        raise ProjectError("window-syntax", f"{shown(config.text)} is not a window", _FORMS)
    kind = match[1].lower()
    column, *lengths = split_arguments(match[2]) or [""]
    least, most = _ARGUMENTS[kind]
    if not least <= len(lengths) + 1 <= most:
        raise ProjectError("window-syntax", f"{kind}() does not take {len(lengths) + 1} arguments", _FORMS)
    if not is_expression(column):
        raise ProjectError("window-syntax", f"{shown(column)} is not a column or expression", _FORMS)
    if kind == "session" and _is_gap(lengths[0]):
        return Window(config.name, TimeWindow(kind, column, lengths[0], varies=True), config.location)
    # The start, behind the others, may be negative, as in Spark.
    starts = most - 1 if kind != "session" else most
    spans = [_length(text, signed=index + 1 == starts) for index, text in enumerate(lengths)]
    _check_lengths(kind, spans)
    return Window(config.name, _meant(kind, column, spans), config.location)


def _is_gap(text: str) -> bool:
    """Whether the gap of a session is an expression: it then may differ from row to row."""
    if parse_duration(text.strip("'\"")) or not is_expression(text):
        return False
    return parse_text(f"SELECT {text}").find(exp.Column) is not None


def _length(text: str, *, signed: bool) -> str:
    bare = text.strip("'\"").strip()
    negative = signed and bare.startswith("-")
    length = parse_duration(bare.removeprefix("-") if negative else bare)
    if length is None:
        raise ProjectError("bad-duration", f"{shown(text)} is not a duration", _DURATION)
    return f"-{length}" if negative else length


def _check_lengths(kind: str, spans: list[str]) -> None:
    size, *rest = [abs(duration_seconds(span)) for span in spans]
    slide = rest.pop(0) if kind == "sliding" else size
    if size == 0 or slide == 0:
        raise ProjectError("bad-duration", "window and slide must be greater than zero", "Write at least 1 second.")
    if slide > size:
        hint = "Make the slide at most as long as the window; otherwise rows between two windows are lost."
        raise ProjectError("window-syntax", "the slide is longer than the window", hint)
    if rest and rest[0] >= slide:
        hint = (
            "The start shifts all windows: its absolute value must be less than the slide (or the size, if there "
            "is no slide)."
        )
        raise ProjectError("window-syntax", "the start is not shorter than the slide", hint)


def _meant(kind: str, time: str, lengths: list[str]) -> TimeWindow:
    size, *rest = lengths
    slide = rest.pop(0) if kind == "sliding" else ""
    return TimeWindow(kind, time, size, slide, rest[0] if rest else "")


def split_arguments(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        depth += 0 if quote else (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if parts or current.strip() else []
