"""Reading `streams:` and `windows:` of a header, and watermarks wherever they are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.compile.nodes.manifest import Watermark
from engine.compile.nodes.model_settings import OnNull, OnUpstreamDelete
from engine.compile.sql.parse import is_expression
from engine.errors import Diagnostic, Location
from engine.project.yaml_section import UNKNOWN, Section, quote_text
from engine.schema.stream_keys import STREAM, WATERMARK
from engine.sources import OnBadRecord
from engine.times import parse_duration

_WATERMARK = re.compile(r"(?P<what>.*\S)\s+delay\s+(?P<delay>\S.*)", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"(?P<sql>.*\S)\s+as\s+(?P<name>`?\w+`?)", re.IGNORECASE | re.DOTALL)
_FORMS = "Write '<column> delay <interval>', or '<SQL> as <name> delay <interval>'."
_DELAY = "10 minutes"
_INTERVAL = re.compile(r"(?<!\d)\d+\s*[a-z]+(?:\s+\d+\s*[a-z]+)*", re.IGNORECASE)
# What other engines call a stream of a table's changes.
_CHANGES = "changes"
_CALL = re.compile(r"(?:ref|source)\s*\((.*)\)")


@dataclass(frozen=True, slots=True)
class StreamConfig:
    name: str
    location: Location
    watermark: Watermark | None = None
    dedup: tuple[str, ...] = ()
    max_files_per_trigger: int | None = None
    on_upstream_delete: OnUpstreamDelete | None = None
    on_bad_record: OnBadRecord | None = None
    places: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WindowConfig:
    name: str
    text: str
    location: Location


def read_streams(section: Section) -> tuple[StreamConfig, ...]:
    streams: dict[str, StreamConfig] = {}
    for stream in _streams(section):
        first = streams.setdefault(stream.name, stream)
        if first is not stream:
            message = f"the stream '{stream.name}' is listed twice"
            place = stream.location
            section.diagnostics.append(
                Diagnostic("duplicate-name", message, "Keep one of them.", node=section.node, location=place)
            )
    return tuple(streams.values())


def _streams(section: Section) -> Iterator[StreamConfig]:
    if isinstance(section.value, dict):
        for name, value in section.mapping():
            yield _stream(name, value)
        return
    for item in section.items():
        if isinstance(item.value, dict):
            yield from _streams(item)
        elif name := node_name(item.text()):
            yield StreamConfig(name, item.place)


def _stream(name: str, section: Section) -> StreamConfig:
    place = section.key_place
    if section.empty:
        return StreamConfig(node_name(name), place)
    section.check_keys(STREAM, more=(_CHANGES,))
    if (changes_section := section.child(_CHANGES)) is not None:
        hint = f"Keep the changes of '{name}' in a model, and read that: materialized: table, history: changes."
        changes_section.report("unknown-key", f"{STREAM.what} has no key '{_CHANGES}'", hint, at_key=True)
    watermark, dedup, files = (section.child(key) for key in ("watermark", "dedup", "max_files_per_trigger"))
    deletes, bad = section.child("on_upstream_delete"), section.child("on_bad_record")
    policy = deletes.choice(*OnUpstreamDelete) if deletes else ""
    bad_record_policy = bad.choice(*OnBadRecord) if bad else ""
    return StreamConfig(
        name=node_name(name),
        location=place,
        watermark=read_watermark(watermark) if watermark else None,
        dedup=tuple(item.text() for item in dedup.items()) if dedup else (),
        max_files_per_trigger=files.integer() if files else None,
        on_upstream_delete=OnUpstreamDelete(policy) if policy and policy in set(OnUpstreamDelete) else None,
        on_bad_record=OnBadRecord(bad_record_policy)
        if bad_record_policy and bad_record_policy in set(OnBadRecord)
        else None,
        places={key: part.key_place for key, part in section.mapping()} if isinstance(section.value, dict) else {},
    )


def node_name(text: str) -> str:
    """`flights`, `ref('flights')`, `github.events` and `source('github', 'events')` mean the same."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        return text.strip()
    parts = [part.strip().strip("'\"") for part in match[1].split(",")]
    return ".".join(parts) if text.lstrip().startswith("source") else parts[-1]


def read_windows_config(section: Section) -> tuple[WindowConfig, ...]:
    windows = ((name, part, part.text()) for name, part in section.mapping() if part.value is not UNKNOWN)
    return tuple(WindowConfig(name, text, part.place) for name, part, text in windows if text or part.value == "")


def read_watermark(section: Section) -> Watermark | None:
    """Read `<column> delay <interval>`, `<SQL> as <column> delay <interval>`, or the mapping form."""
    if isinstance(section.value, dict):
        return _watermark_mapping(section)
    text = section.text().strip()
    if not text:
        return None
    match = _WATERMARK.fullmatch(text)
    if match is None:
        section.report("watermark-syntax", f"{quote_text(text)} is not a watermark", _with_delay(text))
        return None
    delay = section.holding(match["delay"].strip())
    expression = match["what"].strip()
    alias_match = _NAMED.fullmatch(expression)
    column = (alias_match["name"] if alias_match else expression).strip().strip("`")
    if not re.fullmatch(r"\w+", column):
        section.report(
            "watermark-syntax", f"{quote_text(expression)} is not a column name", _name_hint(expression, match["delay"])
        )
        return None
    return _watermark(section, column, alias_match["sql"].strip() if alias_match else None, delay)


def _with_delay(text: str) -> str:
    """A hint for a watermark without the word `delay`, with its own column and interval."""
    column = re.match(r"`[^`]+`|\w+(?![\w.(])", text)
    if column is None or _INTERVAL.fullmatch(text):
        return _FORMS
    interval = _INTERVAL.search(text, column.end())
    if interval is not None and parse_duration(interval[0]) is None:
        return _FORMS
    return f"Write '{column[0]} delay {interval[0] if interval else _DELAY}'."


def _name_hint(expression: str, delay: str) -> str:
    """A hint for an expression that has no name, or a column name that needs backticks."""
    if re.fullmatch(r"\w+(?: \w+)+", expression):
        return f"Write '`{expression}` delay {delay}'."
    field = re.fullmatch(r"(?:\w+\.)+(\w+)", expression)
    return f"Give it a name: '{expression} as {field[1] if field else 'event_time'} delay {delay}'."


def _watermark_mapping(section: Section) -> Watermark | None:
    section.check_keys(WATERMARK)
    keys = ("column", "as", "delay", "max_future", "on_null")
    column, sql, delay, future, null = (section.child(key) for key in keys)
    if column is None or delay is None:
        hint = f"Write {{column: {column.text() if column else 'ts'}, delay: {delay.text() if delay else _DELAY}}}."
        section.report("missing-key", "a watermark needs 'column' and 'delay'", hint)
        return None
    watermark = _watermark(section, column.text(), sql.text() if sql else None, delay)
    bound = future.duration() if future else ""
    policy = null.choice(*OnNull) if null else ""
    on_null = OnNull(policy) if policy in set(OnNull) else None
    return replace(watermark, max_future=bound or None, on_null=on_null) if watermark else None


def _watermark(section: Section, column: str, sql: str | None, delay: Section) -> Watermark | None:
    if sql is not None and not is_expression(sql):
        section.report("watermark-syntax", f"{quote_text(sql)} is not an SQL expression", _FORMS)
        return None
    if not column:
        return None
    # A wrong delay is reported once: settings that need a watermark do not report that it is missing.
    return Watermark(column, delay.duration() or "0 seconds", sql)
