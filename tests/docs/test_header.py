"""The settings of models and sources in words."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from engine.compile import (
    Expectation,
    Input,
    Materialized,
    OnFail,
    OnNull,
    OnSchemaChange,
    OnUpstreamDelete,
    Operation,
    OutputMode,
    Overwrite,
    Partition,
    Publish,
    SortColumn,
    Trigger,
    TriggerKind,
    UnitTest,
    Watermark,
    Write,
)
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, StepKind, UnitTestStep
from engine.docs.site import page_header
from engine.errors import Location
from tests.docs.build import model, source

LATE = Watermark("at", "1 days")
STREAM = Materialized.STREAMING_TABLE


def said(about: str, *reads: Input, **changes) -> list[str]:
    made = model("m", *reads, **{"materialized": STREAM, "write": Write(OutputMode.APPEND), **changes})
    return [item.text for item in page_header.model_words(made) if item.about == about]


def read(name: str = "a", *settings, **more) -> Input:
    return Input(f"model.{name}", name, True, "v", *settings, **more)


def test_a_watermark_drops_nothing_where_no_state_is_kept():
    assert said("Event time", read("a", LATE)) == ["at; no row is too late"]
    assert said("Event time", read("a", LATE), stateful=True) == ["at; rows up to 1 day late are accepted"]


def test_rows_from_the_future_are_told():
    mark = replace(LATE, max_future="1 hours")
    assert said("Event time", read("a", mark)) == [
        "at; no row is too late; rows more than 1 hour in the future are bad records"
    ]


def test_rows_without_a_time_are_told_where_a_step_needs_it():
    begin = "at; rows up to 1 day late are accepted; rows without it are "
    assert said("Event time", read("a", LATE, needs_time=True), stateful=True) == [begin + "bad records"]
    dropped = replace(LATE, on_null=OnNull.DROP)
    assert said("Event time", read("a", dropped, needs_time=True), stateful=True) == [begin + "dropped and counted"]


def test_streams_are_named_where_there_are_several():
    both = read("a", LATE, ("id", "at")), read("b", LATE)
    assert said("Event time", *both, stateful=True) == [
        "at; rows of a up to 1 day late are accepted",
        "at; rows of b up to 1 day late are accepted",
    ]
    assert said("Duplicates", *both) == ["duplicates of id and at in a within 1 day are dropped"]


def test_how_an_input_is_read():
    ignoring = read("a", max_files_per_trigger=1, on_upstream_delete=OnUpstreamDelete.IGNORE)
    static = Input("model.s", "s", False, "v")
    assert said("Reads", ignoring, static) == [
        "a as a stream, 1 file in a micro-batch; deletions there are skipped",
        "s, re-read in each micro-batch",
    ]
    assert said("Reads", static, materialized=Materialized.TABLE) == ["s, in full"]
    assert said("Reads", read("a", through="cleaned")) == ["a as a stream, through cleaned"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "new rows, appended"),
        ({"stateful": True, "windows": {"w": TimeWindow("tumbling", "at", "1 hours")}}, "each window once, when the watermark passes its end"),
        ({"write": Write(OutputMode.COMPLETE)}, "the whole table in each micro-batch; every group is kept in state indefinitely"),
        ({"write": Write(OutputMode.UPDATE, unique_key=("a", "b"))}, "one row for each a and b, updated in each micro-batch"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",))}, "one row for each a, replaced by the newest row of each micro-batch"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n", "m"))}, "one row for each a, the newest by n and m"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), delete_when="op = 'd'")}, "one row for each a, the newest by n; where op = 'd' is true, the row is deleted, and older rows of that key are ignored for 7 days"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), history=True)}, "every version of each a, in the order of n, with valid_from, valid_to and is_current"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), history=True, delete_when="gone")}, "every version of each a, in the order of n, with valid_from, valid_to and is_current; where gone is true, the newest version is closed"),
        ({"materialized": Materialized.TABLE, "write": Write()}, "the whole table, in one commit"),
        ({"materialized": Materialized.TABLE, "write": Write(overwrite=Overwrite.PARTITIONS)}, "the partitions it has rows for, in one commit"),
        ({"materialized": Materialized.VIEW}, "nothing: the query runs when the view is queried"),
        ({"materialized": Materialized.EPHEMERAL}, "nothing: its SQL is inlined in the models that read it"),
    ],
)  # fmt: skip
def test_what_is_written(changes, text):
    assert said("Writes", read(), **changes) == [text]


def test_what_is_expected_of_rows():
    expected = tuple(Expectation("plausible", "x > 0", on_fail) for on_fail in OnFail)
    assert said("Expectation", expectations=expected) == [
        f"plausible: x > 0; rows that do not meet it {what}"
        for what in ("are counted", "are dropped and counted", "go to the quarantine table", "stop the build")
    ]


def test_when_it_runs_and_is_published():
    run = Operation(Trigger(TriggerKind.EVERY, "30 seconds"), "0 6 * * *", full_refresh=False)
    changes = {"operation": run, "write": Write(OutputMode.APPEND, publish=Publish.ON_TESTS_PASS)}
    assert said("Trigger", **changes) == [
        "a micro-batch every 30 seconds while engine start runs",
        "by the schedule 0 6 * * * while engine start runs",
    ]  # fmt: skip
    assert said("Published", **changes) == ["when its tests have passed; until then readers see the previous rows"]
    assert said("Protected", **changes) == ["from a full refresh"]


def test_a_source_tells_how_it_is_read():
    spec = replace(
        source().spec,
        timezone="America/New_York",
        stream=False,
        settings={"path": "landing/x", "max_files_per_trigger": 1000},
    )
    told = {
        item.about: item.text for item in page_header.source_words(source(spec=spec, watermark=LATE, dedup=("id",)))
    }
    assert told == {
        "Source": "json, landing/x",
        "Micro-batch": "at most 1,000 files",
        "Read": "in full at each build, never as a stream",
        "Time zone": "timestamps without a zone are read as America/New_York",
        "Event time": "at; rows up to 1 day late are accepted, unless a model overrides it",
        "Duplicates": "duplicates of id are dropped",
        "Bad records": "stop the build, unless a model overrides it",
    }


@pytest.mark.parametrize(
    ("settings", "about", "text"),
    [
        ({"starting_timestamp": "2024-05-01"}, "Starts at", "2024-05-01"),
        ({"starting_snapshot": "77"}, "Starts at", "snapshot 77"),
        ({"starting_offsets": "latest"}, "Starts at", "data that arrives after the first build"),
        ({"starting_offsets": {"0": 12}}, "Starts at", 'the offsets {"0": 12}'),
        ({"starting_offsets": "earliest"}, "Starts at", None),
        ({"on_upstream_delete": "ignore"}, "Deletions", "are skipped: rows that were read stay"),
        ({"max_offsets_per_trigger": 5000}, "Micro-batch", "at most 5,000 records"),
    ],
)
def test_a_source_tells_where_a_stream_of_it_begins(settings, about, text):
    spec = replace(source().spec, format="iceberg", settings={"table": "sales.orders", **settings})
    told = {item.about: item.text for item in page_header.source_words(source(spec=spec))}
    assert (told["Source"], told.get(about)) == ("iceberg, sales.orders", text)


def test_a_table_tells_how_it_lies_and_grows():
    write = Write(
        OutputMode.APPEND,
        (Partition("day", "at"), Partition("bucket", "id", 16)),
        exclude=("op", "n"),
        sort_by=(SortColumn("at", True, False), SortColumn("id")),
        on_schema_change=OnSchemaChange.APPEND_COLUMNS,
    )
    told = {about: said(about, write=write) for about in ("Excludes", "Partitioned", "Sorted", "New columns")}
    assert told == {
        "Excludes": ["op and n: in the query only, not in the table"],
        "Partitioned": ["day(at), bucket(16, id)"],
        "Sorted": ["at desc nulls last, id"],
        "New columns": ["are added to the table, and are NULL in the rows before"],
    }
    assert said("Sorted", write=write, materialized=Materialized.EPHEMERAL) == []


def test_hooks_are_shown():
    run = Operation(pre_hook=("set x = 1",), post_hook=("call a()", "call b()"))
    assert said("Before it", operation=run) == ["set x = 1"]
    assert said("After it", operation=run) == ["call a()", "call b()"]


PLACE = Location("tests/unit.yml", 3, 5)


def rows(name: str, *columns: str) -> GivenRows:
    return GivenRows(name, name, Rows(tuple((column, "int") for column in columns)), PLACE)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "no rows; expects nothing"),
        ({"steps": (UnitTestStep(StepKind.GIVEN, PLACE, (rows("a"),)),), "expect": ExpectedResult(PLACE, Rows())}, "rows of a; expects rows"),
        ({"static": (rows("b"),), "expect": ExpectedResult(PLACE, Rows(), ordered=True)}, "b in full; expects rows"),
        ({
            "steps": (
                UnitTestStep(StepKind.GIVEN, PLACE, (rows("a"),), expect=ExpectedResult(PLACE, state_rows=0)), UnitTestStep(StepKind.RESTART, PLACE),
                UnitTestStep(StepKind.GIVEN, PLACE, (rows("a"), rows("b"))), UnitTestStep(StepKind.FLUSH, PLACE),
            ),
            "static": (rows("c"),), "expect": ExpectedResult(PLACE, Rows(), late=1),
        }, "rows of a and b in 2 steps, c in full, with a restart and a flush; expects rows, late and state rows"),
    ],
)  # fmt: skip
def test_what_a_unit_test_does(changes, text):
    assert page_header.unit_test_words(UnitTest("unit_test.m.t", "t", "model.m", **changes)) == text


# What of `Operation` is not a line of a model's page: where Spark's plan is shown, where state is stored (the page of a
# target), and where the descriptions of the page are stored too.
NOT_ON_THE_PAGE = {"explain", "persist_docs", "state_provider"}
CHANGED_OPERATION: dict[str, Any] = {
    "trigger": Trigger(TriggerKind.EVERY, "5 minutes"), "schedule": "0 * * * *", "stalled_after": "1 hours",
    "full_refresh": False, "keep_previous": "2 days", "pre_hook": ("select 1",), "post_hook": ("select 2",),
    "renamed_from": "before",
}  # fmt: skip


def test_each_operation_setting_is_a_line_of_the_page_or_left_out_with_a_reason() -> None:
    assert {field.name for field in dataclasses.fields(Operation)} == {*CHANGED_OPERATION, *NOT_ON_THE_PAGE}


@pytest.mark.parametrize("name", CHANGED_OPERATION)
def test_a_changed_operation_setting_is_seen_on_the_page(name: str) -> None:
    def page(**settings: Any) -> list[page_header.Detail]:
        made = model("m", materialized=STREAM, operation=Operation(**settings))
        return list(page_header.model_words(made))

    assert page() != page(**{name: CHANGED_OPERATION[name]})
