"""What a build prints of its results, and rows as `engine show` prints them."""

from __future__ import annotations

import json

import pytest

from engine import events
from engine.cli.commands.show_command import read_sort
from engine.cli.console.printing import printer
from engine.cli.console.rows_text import format_rows
from engine.errors import UsageError
from engine.events import INTERRUPTED, ModelFinished, Status

ROWS = (["ok", "name", "n"], [(True, "a|b", 1), (None, None, None), (False, "c", 20)])


def finished(status: Status, **more: object) -> ModelFinished:
    return ModelFinished(
        status=status,
        node="model.m",
        index=1,
        total=2,
        kind="streaming_table",
        relation="lake.x.m",
        seconds=2.34,
        **more,
    )  # type: ignore[arg-type]


def printed(capsys: pytest.CaptureFixture[str], event: events.Event) -> str:
    printer("text").event(event)
    return capsys.readouterr().out


def test_a_model_that_was_interrupted_is_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, finished(Status.ERROR, message=INTERRUPTED))
    assert "CANCELLED streaming_table lake.x.m" in out
    assert "[CANCELLED in 2.3s]" in out
    assert "ERROR" not in out
    assert "[ERROR in 2.3s]" in printed(capsys, finished(Status.ERROR, message="other"))
    assert "[CANCELLED in" in printed(
        capsys, events.TestFinished("test.t", 1, 2, Status.ERROR, 1.0, message=INTERRUPTED)
    )


def test_numbers_of_a_stream_are_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[UNCHANGED (no new data) in 2.3s]" in printed(capsys, finished(Status.UNCHANGED, message="no new data"))
    out = printed(
        capsys,
        finished(
            Status.SUCCESS, rows_in=3, rows_out=1, late=1, state_rows=2, batches=1, bad_records={"s.t": 1},
            failed_checks={"plausible": 2}, quarantined=3,
        ),
    )  # fmt: skip
    assert "3 rows in, 1 out, 1 late, 2 in state, 1 batch\n" in out
    assert "3 rows in, 2 out, 0 late, 1 duplicate, 0 in state" in printed(
        capsys, finished(Status.SUCCESS, rows_in=3, rows_out=2, duplicates=1, batches=1)
    )
    assert (
        "1 bad record from s.t; 2 rows failed expectation plausible; 3 rows quarantined in lake.x.m__quarantine" in out
    )


def test_values_are_written_as_in_sql() -> None:
    assert format_rows(ROWS, "text").splitlines() == [
        "| ok    | name |    n |",
        "|-------|------|------|",
        "| true  | a|b  |    1 |",
        "| NULL  | NULL | NULL |",
        "| false | c    |   20 |",
    ]
    assert format_rows(ROWS, "markdown").splitlines()[1:3] == ["|-------|------|-----:|", "| true  | a\\|b |    1 |"]
    assert format_rows(ROWS, "csv").splitlines() == ["ok,name,n", "true,a|b,1", ",,", "false,c,20"]
    assert json.loads(format_rows(ROWS, "json").splitlines()[1]) == {"ok": None, "name": None, "n": None}


def test_columns_to_sort_by() -> None:
    assert read_sort("amount desc, `Start Time`,id asc") == (("amount", True), ("Start Time", False), ("id", False))
    assert read_sort(None) == ()
    with pytest.raises(UsageError, match="--sort"):
        read_sort("a,,b")
