"""Small words: windows, moments, a header in half a line."""

from __future__ import annotations

import pytest

from engine.compile import Input, Materialized, Model, OutputMode, Severity, Watermark, Write
from engine.compile.nodes.model_settings import TimeWindow
from engine.docs.site import format_values
from tests.docs.build import hourly, model, not_null, source

LATE = Watermark("at", "1 days")
STREAM = Materialized.STREAMING_TABLE


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (TimeWindow("tumbling", "at", "1 hours"), "hourly windows over at"),
        (TimeWindow("tumbling", "at", "1 days"), "daily windows over at"),
        (TimeWindow("tumbling", "at", "15 minutes"), "windows of 15 minutes over at"),
        (TimeWindow("tumbling", "at", "1 hours", start="15 minutes"), "hourly windows over at, shifted by 15 minutes"),
        (TimeWindow("tumbling", "at", "1 hours", start="-15 minutes"), "hourly windows over at, shifted back by 15 minutes"),
        (TimeWindow("sliding", "at", "1 hours", "10 minutes"), "windows of 1 hour over at, one every 10 minutes"),
        (TimeWindow("tumbling", "date_trunc('hour', at)", "1 days"), "daily windows over date_trunc('hour', at)"),
        (TimeWindow("session", "at", "5 minutes"), "sessions over at that end after 5 minutes without a row"),
        (TimeWindow("session", "at", "gap", varies=True), "windows session_window(at, gap)"),
    ],
)  # fmt: skip
def test_windows(window, text):
    assert format_values.window(window) == text


@pytest.mark.parametrize(
    ("window", "sql"),
    [
        (TimeWindow("tumbling", "at", "1 hours"), "window(at, '1 hours')"),
        (TimeWindow("tumbling", "at", "1 hours", start="15 minutes"), "window(at, '1 hours', '1 hours', '15 minutes')"),
        (TimeWindow("sliding", "at", "1 hours", "1 hours"), "window(at, '1 hours', '1 hours')"),
        (TimeWindow("sliding", "at", "1 hours", "10 minutes", "5 minutes"), "window(at, '1 hours', '10 minutes', '5 minutes')"),
        (TimeWindow("session", "at", "5 minutes"), "session_window(at, '5 minutes')"),
        (TimeWindow("session", "at", "case when a then '1 hour' end", varies=True), "session_window(at, case when a then '1 hour' end)"),
    ],
)  # fmt: skip
def test_sparks_call_of_a_window(window, sql):
    assert window.sql == sql


def read(name: str = "a", *settings, **more) -> Input:
    return Input(f"model.{name}", name, True, "v", *settings, **more)


def keyed(*key: str, **more) -> Model:
    mode = more.pop("mode", OutputMode.APPEND)
    windows = more.pop("windows", {})
    return model("m", read(), materialized=STREAM, windows=windows, write=Write(mode, unique_key=key, **more))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (hourly(), "hourly windows over at, rows up to 30 minutes late, duplicates of id dropped"),
        (model("m", read("a", LATE), materialized=STREAM), "each row as it arrives"),
        (keyed("tailnum"), "one row for each tailnum"),
        (keyed("a", "b", history=True, sequence_by=("n",)), "every version of each a and b"),
        (keyed("w", mode=OutputMode.UPDATE, windows={"w": TimeWindow("tumbling", "at", "1 days")}), "daily windows over at, updated as rows arrive"),
        (model("m", read(), materialized=STREAM, write=Write(OutputMode.COMPLETE)), "rewritten in each micro-batch"),
        (model("m"), "rebuilt in full"),
        (model("m", materialized=Materialized.EPHEMERAL), "inlined in the models that read it"),
        (source(), "landing/events"),
    ],
)  # fmt: skip
def test_a_header_in_half_a_line(node, text):
    assert format_values.summary(node) == text


def test_a_test_that_only_warns_says_so():
    assert format_values.test(not_null("a", "b", severity=Severity.WARN)) == "not null (warning)"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("2013-01-15T10:05:00.000Z", "2013-01-15 10:05:00 UTC"),
        ("2013-01-15 10:05:00", "2013-01-15 10:05:00 UTC"),
        ("2013-01-15T10:05:00+02:00", "2013-01-15 08:05:00 UTC"),
        ("soon", "soon"),
        (None, ""),
        (3, ""),
    ],
)
def test_moments(given, text):
    assert format_values.moment(given) == text
