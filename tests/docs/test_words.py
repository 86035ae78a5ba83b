"""Settings in words."""

from __future__ import annotations

import pytest

from engine.compile import Input, Materialized, Severity, Watermark, Write
from engine.compile.settings import Partition
from engine.docs import words
from tests.docs.build import model, not_null

LATE = Watermark("at", "1 days")


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("window(at, '1 hours')", "hourly windows over at"),
        ("window(at, '1 days')", "daily windows over at"),
        ("window(at, '15 minutes')", "windows of 15 minutes over at"),
        ("window(at, '1 hours', '1 hours', '15 minutes')", "hourly windows over at, shifted by 15 minutes"),
        ("window(at, '1 hours', '10 minutes')", "windows of 1 hour over at, one every 10 minutes"),
        ("window(date_trunc('hour', at), '1 days')", "daily windows over date_trunc('hour', at)"),
        ("session_window(at, '5 minutes')", "sessions over at that end after 5 minutes without a row"),
        ("tumble(at)", "windows tumble(at)"),
    ],
)
def test_windows(sql, text):
    assert words.window(sql) == text


def stream(*reads: Input, stateful: bool = False, mode: str | None = "append") -> str:
    made = model("m", *reads, materialized=Materialized.STREAMING_TABLE, stateful=stateful, write=Write(mode))
    return words.sentence(words.model_phrases(made))


def test_a_stream_without_event_time():
    assert stream(Input("model.a", "a", True, "v")) == "Streaming table, appended."


def test_a_watermark_drops_nothing_where_no_state_is_kept():
    assert stream(Input("model.a", "a", True, "v", LATE)) == "Streaming table, appended; no row is too late."


def test_streams_are_named_where_there_are_several():
    one, two = Input("model.a", "a", True, "v", LATE, ("id", "at")), Input("model.b", "b", True, "v", LATE)
    assert stream(one, two, stateful=True) == (
        "Streaming table, appended; rows of a up to 1 day late are kept; "
        "repeats of id and at in a within 1 day are dropped; rows of b up to 1 day late are kept."
    )


@pytest.mark.parametrize(
    ("mode", "text"),
    [("update", "updated by key"), ("complete", "written anew by each micro-batch"), ("other", "other")],
)
def test_output_modes(mode, text):
    assert stream(mode=mode) == f"Streaming table, {text}."


def test_a_streaming_table_that_did_not_compile():
    assert stream(mode=None) == "Streaming table."


def test_partition_fields():
    fields = [Partition("identity", "origin"), Partition("day", "at"), Partition("truncate", "name", 3)]
    assert words.partitioning(fields) == "origin, day(at), truncate(3, name)"


def test_a_test_that_only_warns_says_so():
    assert words.test(not_null("a", "b", severity=Severity.WARN)) == "not null (warning)"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("2013-01-15T10:05:00.000Z", "2013-01-15 10:05:00 UTC"),
        ("2013-01-15 10:05:00", "2013-01-15 10:05:00 UTC"),
        ("2013-01-15T10:05:00+02:00", "2013-01-15 08:05:00 UTC"),
        ("soon", "soon"),
        (None, ""),
        (7, ""),
    ],
)
def test_moments(given, text):
    assert words.moment(given) == text
