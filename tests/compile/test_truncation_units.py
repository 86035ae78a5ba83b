"""Units of date_trunc() and trunc(): what Spark does not know gives NULL in every row, so it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.sql.truncation_units import _SHOWN, UNITS, unknown_unit
from tests.lab import Lab
from tests.project.small_projects import FROM, check, clean, model

NULL = "it would be NULL in every row"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "name", "unit", "hint"),
    [
        ("date_trunc('hou', ts)", "date_trunc", "hou", "Did you mean 'hour'?"),
        ("date_trunc('H', ts)", "date_trunc", "H", "Write 'hour'."),
        ("DATE_TRUNC( 'isoweek' , ts)", "date_trunc", "isoweek", "week"),
        ("trunc(cast(ts as date), 'yr')", "trunc", "yr", "Write 'year'."),
        ("trunc(coalesce(to_date(id, 'y'), date '2024-01-01'), 'day')", "trunc", "day", "date_trunc('day', ..)"),
        ("max(date_trunc('days', ts))", "date_trunc", "days", "Write 'day'."),
    ],
)
def test_an_unknown_unit_is_an_error(tmp_path: Path, call: str, name: str, unit: str, hint: str) -> None:
    column = 8 + call.lower().index(name)
    found = f"time-part models/a.sql:1:{column} {name}() has no unit '{unit}': {NULL}"
    check(tmp_path, {"models/a.sql": f"select {call} as x {FROM}\n"}, found, hint)


def test_units_that_are_not_in_the_text_are_not_looked_at(tmp_path: Path) -> None:
    calls = (
        "date_trunc(id, ts) as a, date_trunc(concat('h', id), ts) as b, trunc(ts, id) as c, trunc(ts, lower('YR')) as d"
    )
    assert clean(tmp_path, model("", f"select {calls}, date_trunc('Day', ts) as e, trunc(ts, 'MON') as f {FROM}\n"))


@pytest.mark.spark
def test_spark_knows_the_same_units(lab: Lab) -> None:
    """All lists together, in both functions, against Spark's rows."""
    assert lab.session is not None
    words = sorted(
        {*_SHOWN, *_SHOWN.values(), *UNITS["date_trunc"][1], "ns", "decade", "century", "isoweek", "WEEK", "Mm"}
    )
    for name, call in (
        ("date_trunc", "date_trunc('{}', timestamp '2024-05-06 07:08:09')"),
        ("trunc", "trunc(date '2024-05-06', '{}')"),
    ):
        calls = {word: call.format(word) for word in words}
        row = lab.session.spark.sql(
            "select " + ", ".join(f"{text} as `{word}`" for word, text in calls.items())
        ).first()
        nulls = {word for word in words if row[words.index(word)] is None}
        assert nulls == {word for word, text in calls.items() if unknown_unit(name, text) is not None}
