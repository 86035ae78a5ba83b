"""The settings of models and sources in words."""

from __future__ import annotations

from dataclasses import replace

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
    assert said("Event time", read("a", LATE), stateful=True) == ["at; rows up to 1 day late count"]


def test_rows_from_the_future_are_told():
    mark = replace(LATE, max_future="1 hours")
    assert said("Event time", read("a", mark)) == [
        "at; no row is too late; rows more than 1 hour ahead of the clock do not"
    ]


def test_rows_without_a_time_are_told_where_a_step_needs_it():
    begin = "at; rows up to 1 day late count; rows without it are "
    assert said("Event time", read("a", LATE, needs_time=True), stateful=True) == [begin + "bad records"]
    dropped = replace(LATE, on_null=OnNull.DROP)
    assert said("Event time", read("a", dropped, needs_time=True), stateful=True) == [begin + "dropped and counted"]


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
        "a as a stream, 1 file in a micro-batch; deletions there are skipped",
        "s, fresh in each micro-batch",
    ]
    assert said("Reads", static, materialized=Materialized.TABLE) == ["s, as a whole"]
    assert said("Reads", read("a", through="cleaned")) == ["a as a stream, through cleaned"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "new rows, appended"),
        ({"stateful": True, "windows": {"w": TimeWindow("tumbling", "at", "1 hours")}}, "each window once, when the watermark has passed its end"),
        ({"write": Write(OutputMode.COMPLETE)}, "the whole table anew in each micro-batch; every group is kept in state indefinitely"),
        ({"write": Write(OutputMode.UPDATE, unique_key=("a", "b"))}, "one row for each a and b, brought up to date in each micro-batch"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",))}, "one row for each a, replaced by the newest row of each micro-batch"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n", "m"))}, "one row for each a, the newest by n and m"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), delete_when="op = 'd'")}, "one row for each a, the newest by n; where op = 'd' is true, the row is deleted, and an older one does not bring it back for 7 days"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), history=True)}, "every version of each a, in the order of n, with valid_from, valid_to and is_current"),
        ({"write": Write(OutputMode.APPEND, unique_key=("a",), sequence_by=("n",), history=True, delete_when="gone")}, "every version of each a, in the order of n, with valid_from, valid_to and is_current; where gone is true, the newest version ends"),
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
        "Is": "json, landing/x",
        "Pace": "a stream takes 1,000 files in a micro-batch",
        "Read": "from its first record to its last at each build, never as a stream",
        "Time zone": "times without a zone are read as America/New_York",
        "Event time": "at; rows up to 1 day late count, unless a model says otherwise",
        "Repeats": "repeats of id are dropped",
        "Bad records": "stop the build, unless a model says otherwise",
    }


@pytest.mark.parametrize(
    ("settings", "about", "text"),
    [
        ({"starting_timestamp": "2024-05-01"}, "Begins", "a stream begins with what came at 2024-05-01 or later"),
        ({"starting_snapshot": "77"}, "Begins", "a stream begins with snapshot 77"),
        ({"starting_offsets": "latest"}, "Begins", "a stream begins with what comes after its first build"),
        ({"starting_offsets": {"0": 12}}, "Begins", 'a stream begins at the offsets {"0": 12}'),
        ({"starting_offsets": "earliest"}, "Begins", None),
        ({"on_upstream_delete": "ignore"}, "Deletions", "are skipped: rows that were read stay"),
        ({"max_offsets_per_trigger": 5000}, "Pace", "a stream takes 5,000 records in a micro-batch"),
    ],
)
def test_a_source_tells_where_a_stream_of_it_begins(settings, about, text):
    spec = replace(source().spec, format="iceberg", settings={"table": "sales.orders", **settings})
    told = {item.about: item.text for item in page_header.source_words(source(spec=spec))}
    assert (told["Is"], told.get(about)) == ("iceberg, sales.orders", text)


def test_a_table_tells_how_it_lies_and_grows():
    write = Write(
        OutputMode.APPEND,
        (Partition("day", "at"), Partition("bucket", "id", 16)),
        exclude=("op", "n"),
        sort_by=(SortColumn("at", True, False), SortColumn("id")),
        on_schema_change=OnSchemaChange.APPEND_COLUMNS,
    )
    told = {about: said(about, write=write) for about in ("Leaves out", "Partitioned", "Sorted", "New columns")}
    assert told == {
        "Leaves out": ["op and n: the query has it, the table does not"],
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
        ({"static": (rows("b"),), "expect": ExpectedResult(PLACE, Rows(), ordered=True)}, "b as a whole; expects rows"),
        ({
            "steps": (
                UnitTestStep(StepKind.GIVEN, PLACE, (rows("a"),), expect=ExpectedResult(PLACE, state_rows=0)), UnitTestStep(StepKind.RESTART, PLACE),
                UnitTestStep(StepKind.GIVEN, PLACE, (rows("a"), rows("b"))), UnitTestStep(StepKind.FLUSH, PLACE),
            ),
            "static": (rows("c"),), "expect": ExpectedResult(PLACE, Rows(), late=1),
        }, "rows of a and b in 2 steps, c as a whole, with a restart and a flush; expects rows, late and state rows"),
    ],
)  # fmt: skip
def test_what_a_unit_test_does(changes, text):
    assert page_header.unit_test_words(UnitTest("unit_test.m.t", "t", "model.m", **changes)) == text
