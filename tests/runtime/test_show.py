"""`engine show`: times in UTC wherever the machine is, dates that Python does not have, and VARIANT columns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

TIMES = """
select timestamp'0001-01-01 00:00:00' - interval 2 days as early, timestamp'+12345-01-01 00:00:00' as late,
  timestamp'2024-05-01 00:00:00.25' as at, timestamp_ntz'2024-05-01 00:00:00' as plain, date'-0005-01-01' as day,
  array(timestamp'+12345-01-01 00:00:00', timestamp'2024-05-01 00:00:00') as times,
  named_struct('at', timestamp'2024-05-01 00:00:00', 'n', 1) as inside
"""
EXPECTED = {
    "early": "0000-12-30 00:00:00",
    "late": "+12345-01-01 00:00:00",
    "at": "2024-05-01 00:00:00.25",
    "plain": "2024-05-01 00:00:00",
    "day": "-0005-01-01",
    "times": ["+12345-01-01 00:00:00", "2024-05-01 00:00:00"],
}


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python is in another zone than UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_away")
def test_times_are_shown_in_utc_and_those_that_python_does_not_have_too(lab: Lab) -> None:
    lab.model("times", TIMES)
    lab.build()
    for arguments in ([], ["--table"]):
        found = lab.run("show", "times", "--output", "json", *arguments)
        assert found.code == 0, found.text
        row = json.loads(found.out)
        assert {name: row[name] for name in EXPECTED} == EXPECTED, arguments
        assert "2024-05-01 00:00:00" in json.dumps(row["inside"])
        text = lab.run("show", "times", *arguments)
        assert text.code == 0, text.text
        assert text.out.rstrip().endswith("Timestamps are in UTC.")
        assert "| 2024-05-01 00:00:00.25 |" in text.out
        csv = lab.run("show", "times", "--output", "csv", *arguments)
        assert csv.out.count("\n") == 2
    assert "UTC" not in lab.run("show", "--inline", "select date'2024-05-01' as day").out
    twice = lab.run(
        "show", "--inline", "select interval '1' month as m, interval '1' day as d, cast(null as timestamp) as t"
    )
    assert twice.code == 0, twice.text


SHAPES = """/*---
{header}
format_version: 3
---*/
select id, parse_json(kind) as v, array(parse_json(kind)) as listed from {{{{ source('shop', 'events') }}}}
"""


@pytest.mark.nightly
def test_a_table_with_a_variant_lives_like_any_other(lab: Lab) -> None:
    lab.model("streamed", SHAPES.format(header="streams: [shop.events]"))
    lab.model("batch", SHAPES.format(header="materialized: table"))
    lab.model(
        "below",
        "/*---\nstreams: [streamed]\n---*/\nselect id, variant_get(v, '$.a', 'int') as a from {{ ref('streamed') }}",
    )
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('streamed') }}")
    lab.land("a", [{"id": 1, "at": "2024-05-01T10:05:00Z", "kind": '{"a": 1}'}])
    lab.build()
    lab.land("b", [{"id": 2, "at": "2024-05-01T10:05:00Z", "kind": '{"a": 2}'}])
    lab.build()
    assert sorted(row["a"] for row in lab.rows("below")) == [1, 2]
    again = lab.build()
    assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}
    lab.build("-f")
    for arguments in (["maintain"], ["docs", "generate"], ["ls"], ["test"]):
        result = lab.run(*arguments)
        assert result.code == 0, (arguments, result.text)
    for arguments in ([], ["--table"]):
        for name in ("streamed", "batch"):
            found = lab.run("show", name, "--output", "json", *arguments)
            assert found.code == 0, (name, arguments, found.text)
            rows = [json.loads(line) for line in found.out.splitlines()]
            assert sorted(str(row["v"]) for row in rows) == ['{"a":1}', '{"a":2}'], (name, arguments)
    table = lab.table("streamed")
    assert table is not None
    assert dict(table.columns)["v"] == "variant"
    assert "variant" in next((lab.root / "target").glob("**/catalog.json")).read_text(encoding="utf-8")
