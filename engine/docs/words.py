"""The settings of models and sources in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.compile.dbt import partition_text
from engine.compile.manifest import DataTest, Input, Materialized, Model, Severity, Source, Watermark
from engine.compile.settings import Expectation, OnFail, OnUpstreamDelete, OutputMode, Overwrite, Publish, TriggerKind
from engine.sources import location

_WINDOW = re.compile(r"(session_)?window\((.*?)((?:,\s*'[^']*')+)\)", re.DOTALL)
_QUOTED = re.compile(r"'([^']*)'")
_ONE = re.compile(r"\b1 (second|minute|hour|day|week|month|year)s\b")
_NAMED_SIZES = {"1 hours": "hourly windows", "1 days": "daily windows", "1 weeks": "weekly windows"}
_KINDS = {
    Materialized.STREAMING_TABLE: "streaming table",
    Materialized.TABLE: "table",
    Materialized.VIEW: "view",
    Materialized.EPHEMERAL: "ephemeral model",
}
_OF_BATCH = {
    Materialized.TABLE: "built as a whole",
    Materialized.VIEW: "computed when it is read",
    Materialized.EPHEMERAL: "a part of the models that read it",
}
_STORES_NOTHING = {
    Materialized.VIEW: "nothing: the query runs whenever the view is read",
    Materialized.EPHEMERAL: "nothing: its SQL becomes a part of the models that read it",
}
_BECOME = {
    OnFail.WARN: "are counted",
    OnFail.DROP: "are left out and counted",
    OnFail.QUARANTINE: "go to the quarantine table",
    OnFail.FAIL: "stop the build",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A setting in words: what it is about, and what it says."""

    about: str
    text: str


def kind(node: Model | Source) -> str:
    """What a node is, in two words."""
    if isinstance(node, Source):
        return f"{node.spec.format or 'unknown'} source"
    return _KINDS.get(node.materialized, node.materialized.value)


def duration(text: str) -> str:
    """A duration as one says it: '1 days' is 1 day."""
    return _ONE.sub(r"1 \1", text)


def listed(items: Iterable[str]) -> str:
    """Items with commas, and 'and' before the last."""
    *first, last = list(items) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def summary(node: Model | Source) -> str:
    """A node's header in half a line: hourly windows, rows up to 30 minutes late, repeats of id dropped."""
    if isinstance(node, Source):
        return location(node.spec)
    if not node.streaming:
        return _OF_BATCH[node.materialized]
    streams = [item for item in node.inputs if item.stream]
    parts = [window(sql) for sql in dict.fromkeys(node.windows.values())]
    delays = dict.fromkeys(duration(i.watermark.delay) for i in streams if i.watermark and node.stateful)
    parts += [f"rows up to {delay} late" for delay in delays]
    repeats = dict.fromkeys(listed(i.dedup) for i in streams if i.dedup)
    parts += [f"repeats of {names} dropped" for names in repeats]
    return ", ".join(parts) or "each row as it comes"


def source_words(source: Source) -> Iterator[Said]:
    """How a source is read."""
    spec = source.spec
    yield Said("Is", f"{spec.format or 'an unknown format'}, {location(spec)}".rstrip(", "))
    if limit := spec.settings.get("max_files_per_trigger"):
        yield Said("Pace", f"a stream takes {files(limit)} in a micro-batch")
    if limit := spec.settings.get("max_offsets_per_trigger"):
        yield Said("Pace", f"a stream takes {limit:,} records in a micro-batch")
    if spec.stream is False:
        yield Said("Read", "from its first record to its last at each build, never as a stream")
    if spec.timezone or "timestamp" in spec.schema:
        yield Said("Time zone", f"times without a zone are read as {spec.timezone or 'UTC'}")
    if source.watermark:
        late = f"rows up to {duration(source.watermark.delay)} late count"
        yield Said("Event time", f"{event_time(source.watermark)}; {late}, unless a model says otherwise")
    if source.dedup:
        yield Said("Repeats", f"repeats of {listed(source.dedup)} are dropped")


def model_words(model: Model) -> Iterator[Said]:
    """What a model reads, counts and writes."""
    streams = [item for item in model.inputs if item.stream]
    for item in streams:
        yield from _stream_words(model, item, f" of {item.name}" if len(streams) > 1 else "")
    whole = list(dict.fromkeys(item.name for item in model.inputs if not item.stream))
    if whole:
        when = "fresh in each micro-batch" if streams else "as a whole"
        yield Said("Reads", f"{listed(whole)}, {when}")
    for name, sql in model.windows.items():
        yield Said("Windows", f"{name}: {window(sql)}")
    yield Said("Writes", _writes(model))
    if model.write.partition_by:
        yield Said("Partitioned", ", ".join(partition_text(field) for field in model.write.partition_by))
    for expectation in model.expectations:
        yield Said("Expects", _expects(expectation))
    yield from _runs(model)


def _stream_words(model: Model, item: Input, of: str) -> Iterator[Said]:
    pace = f", {files(item.max_files_per_trigger)} in a micro-batch" if item.max_files_per_trigger else ""
    ignored = item.on_upstream_delete is OnUpstreamDelete.IGNORE
    way = f", through {item.through}" if item.through else ""
    yield Said("Reads", f"{item.name} as a stream{way}{pace}{'; deletions there are passed over' if ignored else ''}")
    mark = item.watermark
    if mark:
        late = f"rows{of} up to {duration(mark.delay)} late count" if model.stateful else f"no row{of} is too late"
        ahead = f"; rows more than {duration(mark.max_future)} ahead of the clock do not" if mark.max_future else ""
        yield Said("Event time", f"{event_time(mark)}; {late}{ahead}")
    if item.dedup:
        within = f" within {duration(mark.delay)}" if mark else ""
        yield Said("Repeats", f"repeats of {listed(item.dedup)}{of and f' in {item.name}'}{within} are dropped")


def _writes(model: Model) -> str:
    write = model.write
    if model.materialized in _STORES_NOTHING:
        return _STORES_NOTHING[model.materialized]
    if not model.streaming:
        whole = write.overwrite is Overwrite.TABLE
        return "the table anew, in one commit" if whole else "the partitions it has rows for, in one commit"
    if write.output_mode is OutputMode.COMPLETE:
        return "the whole table anew in each micro-batch"
    if write.unique_key:
        return _merges(model)
    if model.windows and model.stateful:
        return "each window once, when the watermark has passed its end"
    return "new rows, appended"


def _merges(model: Model) -> str:
    write = model.write
    key = listed(write.unique_key)
    text = f"every version of each {key}, with the time it was valid" if write.history else f"one row for each {key}"
    if write.sequence_by:
        text += f", the newest by {listed(write.sequence_by)}"
    if write.delete_when:
        text += f"; deleted where {write.delete_when}"
    return text


def _expects(expectation: Expectation) -> str:
    return f"{expectation.name}: {expectation.check}; rows that do not meet it {_BECOME[expectation.on_fail]}"


def _runs(model: Model) -> Iterator[Said]:
    run, write = model.operation, model.write
    if write.publish is Publish.ON_TESTS_PASS:
        yield Said("Published", "when its tests have passed; until then readers see the rows before")
    if run.trigger.kind is TriggerKind.EVERY and run.trigger.interval:
        yield Said("Starts", f"a micro-batch every {duration(run.trigger.interval)} while 'start' runs")
    if run.schedule:
        yield Said("Starts", f"by the schedule {run.schedule} while 'start' runs")
    if run.full_refresh is False:
        yield Said("Protected", "from a full refresh")


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


def event_time(watermark: Watermark) -> str:
    """The event time's column, and what it is made of."""
    own = watermark.expression in {None, watermark.column}
    return watermark.column if own else f"{watermark.column} ({watermark.expression})"


def files(count: int) -> str:
    """A number of files."""
    return "1 file" if count == 1 else f"{count:,} files"


def value(given: Any) -> str:
    """A value of `meta:`: text as it is, anything else as JSON."""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)


def test(data_test: DataTest) -> str:
    """The kind of a data test."""
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
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at and at.astimezone(UTC)
