"""What compile says of `freshness:` and `loaded_at_field:`."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.nodes.manifest import Age, Freshness
from tests.project.small_projects import clean, findings, line, only

FILES = {"models/a.sql": "select 1 as n\n"}


def source(
    *lines: str,
    group: str = "",
    format_: str = "json",
    path: str = "path: x",
    schema: str = "schema: id int, at timestamp",
) -> str:
    own = "".join(f"        {text}\n" for text in (f"format: {format_}", path, schema, *lines) if text)
    return f"sources:\n  - name: s\n{group}    tables:\n      - name: t\n{own}"


def bounds(root: Path, text: str) -> Freshness | None:
    (found,) = clean(root, {**FILES, "sources/shop.yml": text}).sources
    return found.freshness


def test_both_forms_of_an_age(tmp_path: Path) -> None:
    text = source(
        "loaded_at_field: at",
        "freshness: {warn_after: 90 minutes, error_after: {count: 2, period: day}, filter: id > 1}",
    )
    assert bounds(tmp_path, text) == Freshness("at", Age(90, "minute"), Age(2, "day"), "id > 1")
    assert bounds(tmp_path, source("freshness: {warn_after: 2 weeks}")) == Freshness(
        "_metadata.file_modification_time", Age(14, "day")
    )


def test_how_far_ahead_a_time_may_be(tmp_path: Path) -> None:
    found = bounds(tmp_path, source("freshness: {warn_after: 1 hour, max_future: 90 minutes}"))
    assert found is not None
    assert found.max_future == "90 minutes"
    default = bounds(tmp_path, source("freshness: {warn_after: 1 hour}"))
    assert default is not None
    assert default.max_future == "1 day"


def test_a_table_takes_the_bounds_of_its_source_and_may_take_them_back(tmp_path: Path) -> None:
    group = "    loaded_at_field: at\n    freshness: {warn_after: 1 hour}\n"
    assert bounds(tmp_path, source(group=group)) == Freshness("at", Age(1, "hour"))
    assert bounds(tmp_path, source("freshness: {error_after: 1 day}", group=group)) == Freshness(
        "at", None, Age(1, "day")
    )
    assert bounds(tmp_path, source("freshness:", group=group)) is None


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (source("freshness: {}"), "missing-key sources/shop.yml:8:9 'freshness' needs 'warn_after' or 'error_after'"),
        (source("freshness: 1 hour"), "wrong-type sources/shop.yml:8:20 'freshness' must be a mapping (warn_after: 1 hour), not '1 hour'"),
        (source("freshness: {warn: 1 hour, error_after: 1 day}"), "unknown-key sources/shop.yml:8:21 freshness has no key 'warn'"),
        (source("freshness: {warn_after: 30 seconds}"), "bad-duration sources/shop.yml:8:33 'warn_after' is in whole minutes, not 30 seconds"),
        (source("freshness: {warn_after: 5}"), "bad-duration sources/shop.yml:8:33 '5' is not a duration"),
        (source("freshness: {warn_after: {count: 5}}"), "missing-key sources/shop.yml:8:33 'warn_after' needs 'count' and 'period'"),
        (source("freshness: {warn_after: {count: 5, period: week}}"), "bad-value sources/shop.yml:8:52 'period' cannot be 'week'"),
        (source("freshness: {warn_after: 2 days, error_after: 1 day}"), "bad-value sources/shop.yml:8:20 'error_after' is shorter than 'warn_after'"),
        (source("freshness: {warn_after: 1 day, filter: id >}"), "condition-syntax sources/shop.yml:8:48 'filter' is not an SQL expression: id >"),
        (source("loaded_at_field: att"), "unknown-column sources/shop.yml:8:26 the source has no column 'att'"),
        (source("loaded_at_field: id"), "bad-value sources/shop.yml:8:26 'id' is int, and no time"),
        (source("loaded_at_field: cast(at"), "condition-syntax sources/shop.yml:8:26 'loaded_at_field' is not an SQL expression: cast(at"),
        (source("freshness: {warn_after: 1 day}", format_="rate", path="", schema=""),
         "setting-conflict sources/shop.yml:6:9 a rate source has no unread data and no newest row"),
        (source("freshness: {warn_after: 1 day}", format_="spark.xml"), "setting-needs sources/shop.yml:8:9 'freshness' needs 'loaded_at_field'"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, text: str, finding: str) -> None:
    assert line(only(findings(tmp_path, {**FILES, "sources/shop.yml": text}))) == finding
