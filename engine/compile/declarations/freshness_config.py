"""Reading how old a source's newest row may be: `freshness:` and `loaded_at_field:`, as dbt has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from engine.compile.nodes.manifest import Age, Column, Freshness
from engine.compile.sql.parse import is_expression
from engine.errors import near
from engine.project.yaml_section import Section
from engine.schema.source_keys import AGE, FRESHNESS
from engine.sources import ORIGIN, SourceSpec, kind_of, source_traits
from engine.times import duration_seconds, duration_text

_BOUNDS = ("warn_after", "error_after")
_PERIODS = AGE.choices("period")
_PATH = re.compile(r"`?(\w+)`?(?:\.\w+)*")
# A part of `_metadata` that is a time: when the record came, for sources that know.
_CAME = re.compile(r"\b(\w++): timestamp\b")
_TIMES = ("timestamp", "timestamp_ntz", "date", "string")


def read_freshness(part: Section, group: Section, spec: SourceSpec, columns: Iterable[Column]) -> Freshness | None:
    """The bounds of a source table, else of its group; None if it has none, or takes back those of its group."""
    bounds, loaded = (_nearer(key, part, group) for key in ("freshness", "loaded_at_field"))
    if loaded is not None:
        _check_field(loaded, tuple(columns))
    if bounds is None or not isinstance(bounds.value, dict):
        if bounds is not None:
            bounds.expected("a mapping (warn_after: 1 hour)")
        return None
    bounds.check_keys(FRESHNESS)
    warn, error = (_age(bounds.child(key)) for key in _BOUNDS)
    where = bounds.child("filter")
    if where is not None and not is_expression(where.text()):
        where.report("condition-syntax", f"'filter' is not an SQL expression: {where.text()}", "Write status = 'done'.")
    if not source_traits(spec.format).rows_wait:
        hint = "Remove 'freshness'."
        message = f"a {spec.format} source has no unread data and no newest row"
        bounds.report("setting-conflict", message, hint, at_key=True)
        return None
    if bounds.child("warn_after") is None and bounds.child("error_after") is None:
        hint = "Write 'freshness: {warn_after: 1 hour, error_after: 1 day}'."
        bounds.report("missing-key", "'freshness' needs 'warn_after' or 'error_after'", hint, at_key=True)
    if warn and error and error.seconds < warn.seconds:
        bounds.report("bad-value", "'error_after' is shorter than 'warn_after'", "Make it the longer one.")
    field = loaded.text() if loaded else _when_it_came(spec)
    if not field and (source_traits(spec.format).committed_at is None or where is not None):
        hint = "Add 'loaded_at_field: <column>', the time at which a row was written."
        bounds.report("setting-needs", "'freshness' needs 'loaded_at_field'", hint, at_key=True)
    ahead = bounds.child("max_future")
    read = Freshness(field, warn, error, where.text() if where else None)
    return replace(read, max_future=ahead.duration() or read.max_future) if ahead else read


def _nearer(key: str, part: Section, group: Section) -> Section | None:
    """A key of the table, else of its source; written empty it takes back what the source says."""
    if isinstance(part.value, dict) and key in part.value:
        return part.child(key)
    return group.child(key)


def _check_field(loaded: Section, columns: tuple[Column, ...]) -> None:
    text = loaded.text()
    if not text:
        return
    if not is_expression(text):
        hint = "Name a column, or write an expression: cast(time as timestamp)."
        loaded.report("condition-syntax", f"'loaded_at_field' is not an SQL expression: {text}", hint)
        return
    path = _PATH.fullmatch(text)
    columns_by_name = {column.name.lower(): column for column in columns}
    if path is None or not columns_by_name or path[1].lower() == ORIGIN:
        return
    column = columns_by_name.get(path[1].lower())
    if column is None:
        loaded.report("unknown-column", f"the source has no column '{path[1]}'", near(path[1], columns_by_name))
    elif column.type and "." not in text and column.type not in _TIMES:
        hint = f"Write an expression that gives a timestamp, such as timestamp_seconds({text})."
        loaded.report("bad-value", f"'{text}' is {column.type}, and no time", hint)


def _when_it_came(spec: SourceSpec) -> str:
    kind = kind_of(spec.format)
    match = _CAME.search(kind.origin(spec)) if kind else None
    return f"{ORIGIN}.{match[1]}" if match else ""


def _age(section: Section | None) -> Age | None:
    """`10 minutes`, or dbt's `{count: 10, period: minute}`."""
    if section is None:
        return None
    if isinstance(section.value, dict):
        section.check_keys(AGE, section.name)
        count, period = section.child("count"), section.child("period")
        if count is None or period is None:
            section.report("missing-key", f"'{section.name}' needs 'count' and 'period'", "Write '10 minutes'.")
            return None
        unit = period.choice(*_PERIODS)
        return Age(count.integer(), unit) if unit in _PERIODS else None
    text = section.duration()
    if not text:
        return None
    number, unit = duration_text(duration_seconds(text)).split()
    if unit.rstrip("s") not in _PERIODS:
        hint = "Write minutes, hours or days: 10 minutes."
        section.report("bad-duration", f"'{section.name}' is in whole minutes, not {text}", hint)
        return None
    return Age(int(number), unit.rstrip("s"))
