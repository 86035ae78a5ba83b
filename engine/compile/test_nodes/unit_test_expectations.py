"""What a unit test expects: rows, counts, and where the watermark is."""

from __future__ import annotations

import msgspec

from engine.compile.nodes.manifest import Model
from engine.compile.nodes.unit_test_steps import ExpectedResult, Rows
from engine.compile.test_nodes.coerce_values import timestamp
from engine.compile.test_nodes.unit_test_rows import columns_known, read_rows
from engine.project import LoadedProject
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.unit_test_keys import EXPECT, ROWS

_COUNTS = ("late", "duplicates", "quarantined", "state_rows")


def read_expected(part: Section, model: Model, project: LoadedProject) -> ExpectedResult:
    """Read `expect`: a list of rows, or a mapping of all that can be expected."""
    if isinstance(part.value, list):
        return ExpectedResult(part.key_place, _rows(part, model, project))
    part.check_keys(EXPECT)
    given = isinstance(part.value, dict) and not part.value.keys().isdisjoint({"rows", "csv", "sql", "fixture"})
    ordered, mark = part.child("ordered"), part.child("watermark")
    if ordered is not None and not given:
        hint = "Add the rows: 'rows: [..]'."
        ordered.report("setting-needs", "'ordered' needs the rows that are expected", hint, at_key=True)
    counts = {key: section.integer(least=0) for key in _COUNTS if (section := part.child(key))}
    if not model.streaming and not model.broken:
        for key in (*_COUNTS, "watermark"):
            if (section := part.child(key)) is not None and key != "quarantined":
                section.report("bad-value", f"'{model.name}' is not a streaming table and has no '{key}'", at_key=True)
    return ExpectedResult(
        location=part.key_place,
        rows=_rows(_only_rows(part), model, project) if given else None,
        ordered=ordered.boolean() if ordered else False,
        watermark=read_time(mark) if mark else None,
        **counts,
    )


def read_time(part: Section) -> str | None:
    """A point in time, as Spark writes it; None if it is none, which is reported."""
    if part.value is UNKNOWN:
        return None
    text = part.text()
    try:
        return timestamp(text)
    except ValueError:
        part.report(
            "unit-test-value", f"'{text}' is not a timestamp", "Write it as 2013-01-31 10:05:00; times are UTC."
        )
        return None


def _rows(part: Section, model: Model, project: LoadedProject) -> Rows:
    stored: dict[str, str | None] = {c.name: c.type for c in model.columns}
    return read_rows(part, columns_known(stored), f"'{model.name}'", project)


def _only_rows(part: Section) -> Section:
    """`expect:` without what is not part of its rows."""
    kept = {key: value for key, value in part.value.items() if key in ROWS.names}
    return msgspec.structs.replace(part, value=kept)
