"""Declared windows: their forms, and where a query uses them; see `engine.compile.references.expand_windows`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from engine.compile.config.stream_config import WindowConfig
from engine.compile.nodes.manifest import Slot
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.parse import is_expression
from engine.compile.sql.query_nodes import column_names
from engine.errors import Diagnostic, Location, ProjectError
from engine.project.yaml_section import is_name, quote_text
from engine.times import duration_seconds, parse_duration

_CALL = re.compile(r"(tumbling|sliding|session)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_ARGUMENTS = {"tumbling": (2, 3), "sliding": (3, 4), "session": (2, 2)}
_FORMS = "Write tumbling(ts, 1 hour), sliding(ts, 1 hour, 10 minutes) or session(ts, 5 minutes)."
_DEFAULTS = {"tumbling": ["1 hour"], "sliding": ["1 hour", "10 minutes"], "session": ["5 minutes"]}
# Names of the same windows in other systems.
_OTHER_NAMES = {
    **dict.fromkeys(("tumble", "fixed", "window", "time_window"), "tumbling"),
    **dict.fromkeys(("hop", "hopping", "slide"), "sliding"),
    **dict.fromkeys(("sessions", "session_window"), "session"),
}
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


def read_windows(configs: tuple[WindowConfig, ...], node: str, diagnostics: list[Diagnostic]) -> tuple[Window, ...]:
    windows = []
    for config in configs:
        try:
            windows.append(_read_window(config))
        except ProjectError as fault:
            diagnostics += [diagnostic.at(config.location, node) for diagnostic in fault.diagnostics]
    return tuple(windows)


def _read_window(config: WindowConfig) -> Window:
    if not is_name(config.name):
        hint = "Use lower-case letters, digits and underscores."
        raise ProjectError("bad-name", f"'{config.name}' is not a valid name", hint)
    match = _CALL.fullmatch(config.text.strip())
    if match is None:
        raise ProjectError("window-syntax", f"{quote_text(config.text)} is not a window", _hint_of_name(config.text))
    kind = match[1].lower()
    column, *lengths = split_arguments(match[2]) or [""]
    least, most = _ARGUMENTS[kind]
    if not least <= len(lengths) + 1 <= most:
        hint = _hint_with_arguments(kind, column, lengths) if column else _FORMS
        takes = f"{least} or {most}" if least < most else least
        raise ProjectError("window-syntax", f"{kind}() takes {takes} arguments, not {len(lengths) + 1}", hint)
    if not is_expression(column):
        raise ProjectError("window-syntax", f"{quote_text(column)} is not a column or expression", _FORMS)
    if kind == "session" and _is_gap(lengths[0]):
        return Window(config.name, TimeWindow(kind, column, lengths[0], varies=True), config.location)
    # The start, behind the others, may be negative, as in Spark.
    starts = most - 1 if kind != "session" else most
    spans = [_read_length(text, signed=index + 1 == starts) for index, text in enumerate(lengths)]
    _check_lengths(kind, column, lengths, spans)
    return Window(config.name, _time_window(kind, column, spans), config.location)


def _hint_of_name(text: str) -> str:
    """A hint with the window that a misspelled name, or a name of another system, stands for."""
    call = re.fullmatch(r"(\w+)\s*\((.*)\)", text.strip(), re.DOTALL)
    column, *lengths = (split_arguments(call[2]) if call else []) or [""]
    if call is None or not column:
        return _FORMS
    name = call[1].lower()
    kinds = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else difflib.get_close_matches(name, _ARGUMENTS, 1)
    return _hint_with_arguments(kinds[0], column, lengths) if kinds else _FORMS


def _hint_with_arguments(kind: str, column: str, lengths: list[str]) -> str:
    """A hint with a window of a kind, and the arguments that were written as far as it takes them."""
    least, most = _ARGUMENTS[kind]
    if kind == "sliding" and lengths and len(lengths) + 1 < least:
        return f"Add the slide as the third argument, or write tumbling({column}, {lengths[0]})."
    if kind == "sliding":
        # Flink has the slide before the size.
        lengths = [*sorted(lengths[:2], key=_seconds, reverse=True), *lengths[2:]]
    if len(lengths) + 1 > most:
        lengths = lengths[: least - 1]
    return f"Write {kind}({', '.join([column, *(lengths or _DEFAULTS[kind])])})."


def _seconds(text: str) -> float:
    length = parse_duration(text.strip("'\""))
    return duration_seconds(length) if length else 0


def _is_gap(text: str) -> bool:
    """Whether the gap of a session is an expression: it then may differ from row to row."""
    if parse_duration(text.strip("'\"")) or not is_expression(text):
        return False
    return any(column_names(parse_text(f"SELECT {text}")))


def _read_length(text: str, *, signed: bool) -> str:
    bare = text.strip("'\"").strip()
    negative = signed and bare.startswith("-")
    length = parse_duration(bare.removeprefix("-") if negative else bare)
    if length is None:
        raise ProjectError("bad-duration", f"{quote_text(text)} is not a duration", _DURATION)
    return f"-{length}" if negative else length


def _check_lengths(kind: str, column: str, lengths: list[str], spans: list[str]) -> None:
    size, *rest = [abs(duration_seconds(span)) for span in spans]
    slide = rest.pop(0) if kind == "sliding" else size
    if size == 0 or slide == 0:
        raise ProjectError("bad-duration", "window and slide must be greater than zero", "Write at least 1 second.")
    if slide > size:
        hint = f"The order is time, size, slide: sliding({column}, {lengths[1]}, {lengths[0]})."
        raise ProjectError("window-syntax", "the slide is longer than the window", hint)
    if rest and rest[0] >= slide:
        hint = (
            "The start shifts all windows: its absolute value must be less than the slide (or the size, if there "
            "is no slide)."
        )
        raise ProjectError("window-syntax", "the start is not shorter than the slide", hint)


def _time_window(kind: str, time: str, lengths: list[str]) -> TimeWindow:
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
