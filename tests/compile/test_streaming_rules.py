"""Spark's rules of streaming in a project: the place is in the user's file, the names are the user's."""

from __future__ import annotations

import pytest

from tests.compile.test_combinations import model
from tests.project.small_projects import FROM, findings, line

LATE = "streams: {shop.orders: {watermark: ts delay 1 hour}}\n"
HOUR = "windows:\n  hour: tumbling(ts, 1 hour)\n"


@pytest.mark.parametrize(
    ("header", "sql", "found"),
    [
        ("streams: [shop.orders]", f"select id, count(*) as n\n{FROM}\ngroup by id", "agg-needs-event-time 6:10"),
        (LATE, f"select id,\n  row_number() over (order by ts) as r\n{FROM}", "over-on-stream 5:3"),
        (LATE, f"select id {FROM}\norder by id", "sort-on-stream 5:10"),
        (LATE + HOUR, f"select hour.start as s,\n  count(distinct id) as n\n{FROM}\ngroup by hour", "agg-distinct 7:3"),
        (LATE + HOUR, f"select hour.start as s,\n  theta_sketch_agg(distinct id) as n\n{FROM}\ngroup by hour", "agg-distinct 7:3"),
        (LATE, f"{{% set x = 1 %}}\n\nselect date_trunc('hour', ts) as h, count(*) as n\n{FROM} group by 1", "agg-key-lost-watermark 6:8"),
    ],
)  # fmt: skip
def test_what_spark_refuses_is_an_error_at_its_place(header, sql, found, tmp_path):
    code, place = found.split()
    errors = [d for d in findings(tmp_path, model(header, sql)) if d.is_error]
    assert [(d.code, str(d.location)) for d in errors] == [(code, f"models/a.sql:{place}")]
    assert errors[0].hint


def test_a_warning_names_the_source_as_the_user_does(tmp_path):
    (warning,) = findings(tmp_path, model(LATE, f"select id {FROM}"))
    assert line(warning) == (
        "watermark-unused models/a.sql:4:16 the watermark of 'shop.orders' has no effect: the query has no window, dedup or join of streams"
    )
    assert not warning.is_error


def test_a_batch_model_may_do_all_that(tmp_path):
    assert (
        findings(tmp_path, model("", f"select distinct id, row_number() over (order by ts) as r {FROM} order by id"))
        == ()
    )


@pytest.mark.parametrize(
    ("length", "code"), [("7 days", "window-week"), ("7 days', '1 second", "window-many"), ("1 day", "")]
)
def test_windows_of_a_batch_model_are_looked_at_as_those_of_a_stream(length, code, tmp_path):
    query = f"select window(ts, '{length}').start as begins, count(*) as n {FROM} group by window(ts, '{length}')"
    assert [d.code for d in findings(tmp_path, model("", query))] == ([code] if code else [])


def test_a_window_over_no_time_is_told_once(tmp_path):
    query = f"select window(amount + 1, '1 hour') as w, count(*) as n {FROM} group by 1"
    errors = [d for d in findings(tmp_path, model(LATE + "output_mode: update\nunique_key: w\n", query)) if d.is_error]
    assert [line(error).split()[0] for error in errors] == ["type-mismatch"]
