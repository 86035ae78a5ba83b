"""Results of earlier runs: an interrupted run hides none of them, and the runs page lists all runs."""

from __future__ import annotations

import json
from pathlib import Path

from engine import events
from engine.docs.site.last_run import Tone, last_run, read_results
from engine.errors import Diagnostic, Level, Location
from engine.events import Diagnosed, Event, ModelFinished, RunFinished, RunStarted, Status, fold
from engine.runtime.context.run_history import read_history
from engine.runtime.context.run_results import read_results as stored_results
from engine.runtime.context.run_results import unfinished_results, write_results
from tests.docs.build import small, written

AT = "2026-10-12T08:15:03+00:00"
TEST = "test.not_null_hourly_window_start"


def finished(name: str, status: Status = Status.SUCCESS, **changes) -> ModelFinished:
    known = {
        "kind": "table",
        "relation": f"lake.main.{name}",
        "seconds": 2.0,
        "rows_out": 8,
        "at": AT,
        "index": 1,
        "total": 2,
    }
    return ModelFinished(status, node=f"model.{name}", **known | changes)


def started() -> Event:
    return RunStarted("run", "build", "dev", 2, AT)


def run(folder: Path, *happened: Event) -> None:
    write_results(fold([started(), *happened, RunFinished(5.0)]), folder, "shop")


def interrupted(folder: Path, *happened: Event) -> None:
    results = unfinished_results([started(), *happened], small(), ["model.hourly", "model.daily"])
    assert results is not None
    write_results(results, folder, "shop")


def test_an_interrupted_run_hides_no_earlier_result(tmp_path):
    run(tmp_path, finished("hourly", rows_out=5), finished("daily"))
    interrupted(tmp_path)
    shown = last_run(tmp_path)
    daily = shown.nodes["model.daily"]
    assert (daily.status, daily.tone, daily.numbers) == ("success", Tone.GOOD, {"rows_out": 8})
    assert daily.attempt == ("skipped", "because the run was interrupted")
    assert shown.counted("model") == {"skipped": 2}
    # However many runs are interrupted.
    interrupted(tmp_path, finished("hourly", rows_out=6))
    shown = last_run(tmp_path)
    assert (shown.nodes["model.hourly"].attempt, shown.nodes["model.hourly"].numbers) == (None, {"rows_out": 6})
    assert shown.nodes["model.daily"].numbers == {"rows_out": 8}
    assert shown.counted("model") == {"skipped": 1, "success": 1}


def test_a_run_of_a_part_hides_no_result_of_the_others(tmp_path):
    run(tmp_path, finished("hourly", rows_out=5), finished("daily"))
    run(tmp_path, events.TestFinished(TEST, 1, 1, Status.PASS, 0.1, at=AT))
    shown = last_run(tmp_path)
    assert shown.nodes["model.hourly"].numbers == {"rows_out": 5}
    assert shown.nodes["model.hourly"].earlier
    assert (shown.counted("model"), shown.counted("test")) == ({}, {"pass": 1})
    run(tmp_path, finished("hourly", rows_out=7))
    shown = last_run(tmp_path)
    assert (shown.nodes["model.hourly"].numbers, shown.nodes[TEST].status) == ({"rows_out": 7}, "pass")


def test_a_failed_attempt_stands_beside_the_last_finished_result(tmp_path):
    run(tmp_path, finished("daily"))
    run(tmp_path, finished("daily", Status.ERROR, message="no space left", rows_out=None))
    daily = last_run(tmp_path).nodes["model.daily"]
    assert (daily.status, daily.tone, daily.message) == ("error", Tone.BAD, "no space left")
    assert (daily.attempt, daily.numbers) == (("error", "no space left"), {"rows_out": 8})


def test_the_last_runs_are_listed_with_their_times(tmp_path):
    for number in range(23):
        run(tmp_path, finished("hourly", rows_out=number), finished("daily"))
    shown = read_results(stored_results(tmp_path), read_history(tmp_path))
    assert len(shown.history) == 20
    newest = shown.history[0]
    assert (newest.command, newest.target, newest.seconds) == ("build", "dev", 5.0)
    hourly = newest.results[0]
    assert (hourly.node, hourly.status, hourly.rows_out) == ("model.hourly", "success", 22)
    assert (hourly.began, hourly.ended) == (1791792901.0, 1791792903.0)
    site = written(tmp_path / "docs", small(), stored_results(tmp_path), history=read_history(tmp_path))
    assert site.index["runs"] == 20
    assert site.data("runs")[0]["results"][0][:4] == [1, "success", "good", 1791792901.0]


def test_a_run_has_its_log(tmp_path):
    place = Location("models/hourly.sql", 3, 9)
    warning = Diagnostic("watermark-unused", "no effect", "Remove it", Level.WARNING, "hourly", place)
    kind = "streaming_table"
    hourly = finished(
        "hourly", kind=kind, late=3, failed_checks={"positive": 2}, note="closes at 11:00", snapshot_id=2**62 + 1
    )
    run(tmp_path, Diagnosed(warning), hourly, finished("daily"))
    site = written(tmp_path / "docs", small(), history=read_history(tmp_path))
    (shown,) = site.data("runs")
    assert shown["results"][0][8] == {
        "table": "lake.main.hourly",
        "snapshot": "4611686018427387905",
        "note": "closes at 11:00",
        "counts": {"late": 3},
        "counted": [["Failed expectation", "positive", 2]],
    }
    assert shown["reported"] == [
        {"level": "warning", "code": "watermark-unused", "message": "no effect", "hint": "Remove it", "node": 1,
         "place": "models/hourly.sql:3:9"}
    ]  # fmt: skip


def test_a_run_has_the_first_of_its_warnings(tmp_path):
    warnings = [Diagnosed(Diagnostic("watermark-unused", f"{n}", level=Level.WARNING)) for n in range(230)]
    run(tmp_path, *warnings, finished("hourly"))
    (shown,) = last_run(tmp_path).history
    assert (len(shown.reported), shown.more_reported) == (200, 30)


def test_a_test_has_its_history(tmp_path):
    for status in (Status.PASS, Status.FAIL, Status.PASS):
        run(tmp_path, events.TestFinished(TEST, 1, 1, status, 0.1, at=AT))
    run(tmp_path, finished("daily"))
    manifest = small()
    (test,) = (one for one in manifest.tests if one.id == TEST)
    site = written(tmp_path / "docs", manifest, stored_results(tmp_path), history=read_history(tmp_path))
    columns = site.node(test.model)["columns"]
    (shown,) = (one for column in columns for one in column.get("tests", ()))
    assert [(status, tone) for _, status, tone in shown["history"]] == [
        ("pass", "good"),
        ("fail", "bad"),
        ("pass", "good"),
    ]
    entry = site.data("runs")[1]["results"][0]
    assert (entry[0], entry[8]) == ("not_null_hourly_window_start", {"tested": [1, True]})


def test_runs_of_version_0_1_0_are_listed(tmp_path):
    result = ["model.shop.hourly", "success", 1.0, 2.0, 3, 4, None]
    (tmp_path / "runs.json").write_text(json.dumps({"runs": [{"command": "build", "results": [result]}]}))
    (shown,) = last_run(tmp_path).history
    assert [(one.node, one.rows_out, one.table) for one in shown.results] == [("model.hourly", 4, "")]


def test_a_history_that_cannot_be_read_is_begun_again(tmp_path):
    for broken in (
        "",
        "[]",
        '{"runs": 3, "finished": []}',
        '{"runs": [1, {"results": [[]]}], "finished": {"a": 1}}',
        "{",
    ):
        (tmp_path / "runs.json").write_text(broken)
        assert last_run(tmp_path).nodes == {}
        run(tmp_path, finished("daily"))
        assert last_run(tmp_path).nodes["model.daily"].numbers == {"rows_out": 8}
        assert json.loads((tmp_path / "runs.json").read_text())["runs"]
        (tmp_path / "run_results.json").unlink()
