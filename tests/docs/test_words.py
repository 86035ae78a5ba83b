"""Settings in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.compile import (
    Expectation,
    Input,
    Materialized,
    OnFail,
    OnUpstreamDelete,
    Operation,
    OutputMode,
    Overwrite,
    Publish,
    Severity,
    Trigger,
    TriggerKind,
    Watermark,
    Write,
)
from engine.docs import words
from tests.docs.build import hourly, model, not_null, source

LATE = Watermark("at", "1 days")
STREAM = Materialized.STREAMING_TABLE


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


def said(about: str, *reads: Input, **changes) -> list[str]:
    made = model("m", *reads, **{"materialized": STREAM, "write": Write(OutputMode.APPEND), **changes})
    return [item.text for item in words.model_words(made) if item.about == about]


def read(name: str = "a", *settings, **more) -> Input:
    return Input(f"model.{name}", name, True, "v", *settings, **more)


def test_a_watermark_drops_nothing_where_no_state_is_kept():
    assert said("Event time", read("a", LATE)) == ["at; no row is too late"]
    assert said("Event time", read("a", LATE), stateful=True) == ["at; rows up to 1 day late count"]


def test_rows_from_the_future_are_told():
    mark = replace(LATE, max_future="1 hours")
    assert said("Event time", read("a", mark)) == [
        "at; no row is too late; rows more than 1 hour ahead of the clock do not"
    ]


def test_streams_are_named_where_there_are_several():
    both = read("a", LATE, ("id", "at")), read("b", LATE)
    assert said("Event time", *both, stateful=True) == [
        "at; rows of a up to 1 day late count",
        "at; rows of b up to 1 day late count",
    ]
    assert said("Repeats", *both) == ["repeats of id and at in a within 1 day are dropped"]


def test_how_an_input_is_read():
    ignoring = read("a", max_files_per_trigger=1, on_upstream_delete=OnUpstreamDelete.IGNORE)
    static = Input("model.s", "s", False, "v")
    assert said("Reads", ignoring, static) == [
        "a as a stream, 1 file in a micro-batch; deletions there are passed over",
        "s, fresh in each micro-batch",
    ]
    assert said("Reads", static, materialized=Materialized.TABLE) == ["s, as a whole"]
    assert said("Reads", read("a", through="cleaned")) == ["a as a stream, through cleaned"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "new rows, appended"),
        ({"stateful": True, "windows": {"w": "window(at, '1 hours')"}}, "each window once, when the watermark has passed its end"),
        ({"write": Write(OutputMode.COMPLETE)}, "the whole table anew in each micro-batch"),
        ({"write": Write(OutputMode.UPDATE, unique_key=("a", "b"))}, "one row for each a and b"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), delete_when="op = 'd'")}, "one row for each a, the newest by n; deleted where op = 'd'"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), history=True)}, "every version of each a, with the time it was valid, the newest by n"),
        ({"materialized": Materialized.TABLE, "write": Write()}, "the table anew, in one commit"),
        ({"materialized": Materialized.TABLE, "write": Write(overwrite=Overwrite.PARTITIONS)}, "the partitions it has rows for, in one commit"),
        ({"materialized": Materialized.VIEW}, "nothing: the query runs whenever the view is read"),
        ({"materialized": Materialized.EPHEMERAL}, "nothing: its SQL becomes a part of the models that read it"),
    ],
)  # fmt: skip
def test_what_is_written(changes, text):
    assert said("Writes", read(), **changes) == [text]


def test_what_is_expected_of_rows():
    expected = tuple(Expectation("plausible", "x > 0", on_fail) for on_fail in OnFail)
    assert said("Expects", expectations=expected) == [
        f"plausible: x > 0; rows that do not meet it {what}"
        for what in ("are counted", "are left out and counted", "go to the quarantine table", "stop the build")
    ]


def test_when_it_runs_and_is_published():
    run = Operation(Trigger(TriggerKind.EVERY, "30 seconds"), "0 6 * * *", full_refresh=False)
    changes = {"operation": run, "write": Write(OutputMode.APPEND, publish=Publish.ON_TESTS_PASS)}
    assert said("Starts", **changes) == [
        "a micro-batch every 30 seconds while 'start' runs", "by the schedule 0 6 * * * while 'start' runs",
    ]  # fmt: skip
    assert said("Published", **changes) == ["when its tests have passed; until then readers see the rows before"]
    assert said("Protected", **changes) == ["from a full refresh"]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (hourly(), "hourly windows over at, rows up to 30 minutes late, repeats of id dropped"),
        (model("m", read("a", LATE), materialized=STREAM), "each row as it comes"),
        (model("m"), "built as a whole"),
        (model("m", materialized=Materialized.EPHEMERAL), "a part of the models that read it"),
        (source(), "landing/events"),
    ],
)
def test_a_header_in_half_a_line(node, text):
    assert words.summary(node) == text


def test_a_source_tells_how_it_is_read():
    spec = replace(
        source().spec,
        timezone="America/New_York",
        stream=False,
        settings={"path": "landing/x", "max_files_per_trigger": 1000},
    )
    told = {item.about: item.text for item in words.source_words(source(spec=spec, watermark=LATE, dedup=("id",)))}
    assert told == {
        "Is": "json, landing/x",
        "Pace": "a stream takes 1,000 files in a micro-batch",
        "Read": "from its first record to its last at each build, never as a stream",
        "Time zone": "times without a zone are read as America/New_York",
        "Event time": "at; rows up to 1 day late count, unless a model says otherwise",
        "Repeats": "repeats of id are dropped",
    }


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
        (3, ""),
    ],
)
def test_moments(given, text):
    assert words.moment(given) == text
