"""Small words: kinds, durations, windows, and a header in half a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import DataTest, Model, Severity, Source, Watermark
from engine.compile.nodes.model_settings import History, OutputMode, TimeWindow, Write
from engine.compile.nodes.sink import Sink
from engine.sources import location
from engine.times import in_words

_NAMED_SIZES = {"1 hours": "hourly windows", "1 days": "daily windows", "1 weeks": "weekly windows"}


def kind(node: Model | Source | Exposure | Sink) -> str:
    if isinstance(node, Exposure):
        return node.kind or "exposure"
    if isinstance(node, Sink):
        return "sink"
    if isinstance(node, Source):
        return f"{node.spec.format or 'unknown'} source"
    return node.materialized.traits.noun


def listed(items: Iterable[str]) -> str:
    *first, last = list(items) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def summary(node: Model | Source) -> str:
    """A node's header in half a line: hourly windows, rows up to 30 minutes late, repeats of id dropped."""
    if isinstance(node, Source):
        return location(node.spec)
    if not node.streaming and node.write.history:
        return _history(node.write)
    if not node.streaming:
        return node.materialized.traits.made
    streams = [item for item in node.inputs if item.stream]
    parts = [window(declared) for declared in dict.fromkeys(node.windows.values())]
    delays = dict.fromkeys(in_words(i.watermark.delay) for i in streams if i.watermark and node.stateful)
    parts += [f"rows up to {delay} late" for delay in delays]
    repeats = dict.fromkeys(listed(i.dedup) for i in streams if i.dedup)
    parts += [f"duplicates of {names} dropped" for names in repeats]
    parts += _result(node.write, windowed=bool(node.windows))
    return ", ".join(parts) or "each row as it arrives"


def _result(write: Write, *, windowed: bool) -> list[str]:
    """What is in the table, where it is more than the rows that came."""
    if write.output_mode is OutputMode.COMPLETE:
        return ["rewritten in each micro-batch"]
    if not write.unique_key:
        return []
    if write.history:
        return [_history(write)]
    return ["updated as rows arrive"] if windowed else [f"one row for each {listed(write.unique_key)}"]


def _history(write: Write) -> str:
    return f"every {'change' if write.history is History.CHANGES else 'version'} of each {listed(write.unique_key)}"


def window(declared: TimeWindow) -> str:
    """A window in words; Spark's call where each row has a gap of its own."""
    over, size = declared.time, declared.size
    if declared.varies:
        return f"windows {declared.sql}"
    if declared.kind == "session":
        return f"sessions over {over} that end after {in_words(size)} without a row"
    if declared.slide in {"", size}:
        text = f"{_NAMED_SIZES.get(size, f'windows of {in_words(size)}')} over {over}"
    else:
        text = f"windows of {in_words(size)} over {over}, one every {in_words(declared.slide)}"
    return text + (_shift(declared.start) if declared.start else "")


def _shift(start: str) -> str:
    return f", shifted back by {in_words(start[1:])}" if start.startswith("-") else f", shifted by {in_words(start)}"


def event_time(watermark: Watermark) -> str:
    own = watermark.expression in {None, watermark.column}
    return watermark.column if own else f"{watermark.column} ({watermark.expression})"


def files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def value(meta_value: Any) -> str:
    """A value of `meta:`: text as it is, anything else as JSON."""
    return meta_value if isinstance(meta_value, str) else json.dumps(meta_value, ensure_ascii=False, default=str)


def test(data_test: DataTest) -> str:
    text = data_test.kind.replace("_", " ")
    return text if data_test.severity is Severity.ERROR else f"{text} (warning)"


def moment(value: Any) -> str:
    """An ISO time to the second, in UTC; another text as it is."""
    at = instant(value)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else (value if isinstance(value, str) else "")


def instant(value: Any) -> datetime | None:
    """An ISO time in UTC; None if it is none."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at and at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
