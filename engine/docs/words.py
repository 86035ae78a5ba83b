"""The settings of models and sources in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from engine.compile.manifest import (
    DataTest,
    Input,
    Materialized,
    Model,
    Severity,
    Source,
    Watermark,
)
from engine.compile.settings import Partition

_WINDOW = re.compile(r"(session_)?window\((.*?)((?:,\s*'[^']*')+)\)", re.DOTALL)
_QUOTED = re.compile(r"'([^']*)'")
_ONE = re.compile(r"\b1 (second|minute|hour|day|week)s\b")
_NAMED_SIZES = {"1 hours": "hourly windows", "1 days": "daily windows", "1 weeks": "weekly windows"}
_KINDS = {
    Materialized.STREAMING_TABLE: "streaming table",
    Materialized.TABLE: "table",
    Materialized.VIEW: "view",
}
_EMITS = {
    "append": "appended",
    "update": "updated by key",
    "complete": "written anew by each micro-batch",
}


def kind(node: Model | Source) -> str:
    """What a node is, in two words."""
    if isinstance(node, Source):
        return f"{node.spec.format or 'unknown'} source"
    return _KINDS[node.materialized]


def duration(text: str) -> str:
    """A duration as one says it: '1 days' is 1 day."""
    return _ONE.sub(r"1 \1", text)


def listed(items: Iterable[str]) -> str:
    """Items with commas, and 'and' before the last."""
    *first, last = list(items) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sentence(phrases: Iterable[str]) -> str:
    """Phrases as one sentence."""
    text = "; ".join(phrases)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def source_phrases(source: Source) -> Iterator[str]:
    """How a source is read."""
    spec = source.spec
    if spec.max_files_per_trigger:
        yield f"a stream takes {files(spec.max_files_per_trigger)} in a micro-batch"
    if spec.timezone or "timestamp" in spec.schema:
        yield f"times without a zone are read as {spec.timezone or 'UTC'}"
    if late := source.watermark:
        yield f"event time is {event_time(late)}, late by up to {duration(late.delay)}"
    if source.dedup:
        yield f"repeats of {listed(source.dedup)} are dropped"


def model_phrases(model: Model) -> Iterator[str]:
    """What a model becomes, and what its streams, windows and writing mean."""
    if not model.streaming:
        yield {
            Materialized.TABLE: "table, built as a whole",
            Materialized.VIEW: "view, computed when it is read",
        }[model.materialized]
        return
    emits = model.write.output_mode
    yield f"streaming table, {_EMITS.get(emits, emits)}" if emits else "streaming table"
    streams = [i for i in model.inputs if i.stream]
    for item in streams:
        yield from _stream_phrases(model, item, f" of {item.name}" if len(streams) > 1 else "")
    for sql in dict.fromkeys(model.windows.values()):
        yield window(sql)


def _stream_phrases(model: Model, item: Input, of: str) -> Iterator[str]:
    if item.watermark:
        delay = duration(item.watermark.delay)
        if model.stateful:
            yield f"rows{of} up to {delay} late are {'counted' if model.windows else 'kept'}"
        else:
            yield f"no row{of} is too late"
    if item.dedup:
        within = f" within {duration(item.watermark.delay)}" if item.watermark else ""
        yield f"repeats of {listed(item.dedup)}{of and f' in {item.name}'}{within} are dropped"


def window(sql: str) -> str:
    """A window (Spark's call) in words; the call itself where it is no known form."""
    match = _WINDOW.fullmatch(sql.strip())
    if match is None:
        return f"windows {sql}"
    over, lengths = match[2].strip(), _QUOTED.findall(match[3])
    if match[1]:
        return f"sessions over {over} that end after {duration(lengths[0])} without a row"
    size, slide = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
    if size == slide:
        text = f"{_NAMED_SIZES.get(size, f'windows of {duration(size)}')} over {over}"
    else:
        text = f"windows of {duration(size)} over {over}, one every {duration(slide)}"
    return text + (f", shifted by {duration(lengths[2])}" if len(lengths) > 2 else "")  # noqa: PLR2004


def input_note(item: Input) -> str:
    """How a model reads one of its inputs."""
    if not item.stream:
        return "read as a whole"
    notes = ["read as a stream"]
    if item.watermark:
        notes.append(f"event time {event_time(item.watermark)}")
    if item.max_files_per_trigger:
        notes.append(f"{files(item.max_files_per_trigger)} in a micro-batch")
    return ", ".join(notes)


def event_time(watermark: Watermark) -> str:
    """The event time's column, and what it is made of."""
    own = watermark.expression in {None, watermark.column}
    return watermark.column if own else f"{watermark.column} ({watermark.expression})"


def files(count: int) -> str:
    """A number of files."""
    return "1 file" if count == 1 else f"{count:,} files"


def partitioning(fields: Iterable[Partition]) -> str:
    """Partition fields as a header has them."""
    return ", ".join(
        p.column
        if p.transform == "identity"
        else f"{p.transform}({p.column if p.number is None else f'{p.number}, {p.column}'})"
        for p in fields
    )


def test(data_test: DataTest) -> str:
    """The kind of a data test."""
    text = data_test.kind.replace("_", " ")
    return text if data_test.severity is Severity.ERROR else f"{text} (warning)"


def moment(value: Any) -> str:
    """An ISO time to the second, in UTC; another text as it is."""
    text = value if isinstance(value, str) else ""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
