"""Results of the last run: told where they are, missed nowhere."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine import events
from engine.docs.site.last_run import Tone, read_results
from engine.events import BatchCommitted, ModelFinished, RunFinished, RunStarted, Status, fold
from engine.runtime.context.run_results import as_dict
from tests.docs.build import small, written

AT = "2026-10-12T08:15:03+00:00"


def batch(number: int, **changes) -> BatchCommitted:
    known = {
        "rows_in": 10,
        "rows_out": 4,
        "late": number,
        "state_rows": 2,
        "watermark": f"2013-01-15T10:0{number}:00.000Z",
    }
    return BatchCommitted("model.hourly", number, snapshot_id=1, seconds=0.5, **known | changes)


def results() -> dict:
    finished = ModelFinished(
        Status.SUCCESS, node="model.hourly", index=1, total=3, kind="streaming_table", relation="lake.main.hourly",
        seconds=3.2144, rows_in=20, rows_out=8, late=3,
        bad_records={"ops.events": 2}, failed_checks={"plausible": 1}, quarantined=3, state_rows=2, batches=2,
        watermark="2013-01-15T10:01:00.000Z", snapshot_id=77, note="the next window closes at 11:00", at=AT,
    )  # fmt: skip
    unchanged = ModelFinished(
        Status.UNCHANGED,
        "no new data",
        node="model.daily",
        index=2,
        total=3,
        kind="table",
        relation="lake.main.daily",
        seconds=0.1,
        at=AT,
    )
    tested = events.TestFinished("test.not_null_hourly_window_start", 3, 3, Status.FAIL, 0.3, 2, "2 rows", AT)
    started = RunStarted("run-1", "build", "dev", 3, AT)
    return as_dict(fold([started, batch(0), batch(1), finished, unchanged, tested, RunFinished(5.0)]), "shop")


def test_what_a_run_wrote_is_read_back():
    run = read_results(results())
    assert (run.command, run.target, run.seconds) == ("build", "dev", 5.0)
    hourly = run.nodes["model.hourly"]
    assert (hourly.status, hourly.tone, hourly.seconds) == ("success", Tone.GOOD, 3.214)
    assert hourly.at == datetime(2026, 10, 12, 8, 15, 3, tzinfo=UTC)
    assert hourly.numbers == {"rows_in": 20, "rows_out": 8, "late": 3, "quarantined": 3, "state_rows": 2, "batches": 2}
    assert hourly.counted == (("Bad records", "ops.events", 2), ("Failed expectation", "plausible", 1))
    assert hourly.note == "the next window closes at 11:00"
    assert [(b.id, b.rows_in, b.late, b.watermark.minute) for b in hourly.progress] == [(0, 10, 0, 0), (1, 10, 1, 1)]
    assert run.nodes["model.daily"].status == "unchanged"
    assert run.nodes["test.not_null_hourly_window_start"].tone is Tone.BAD
    assert run.counted("model") == {"success": 1, "unchanged": 1}


def test_a_run_is_told_on_every_page(tmp_path):
    site = written(tmp_path, small(), results())
    assert site.index["run"]["models"] == [["success", 1], ["unchanged", 1]]
    assert site.index["run"]["tests"] == [["fail", 1]]
    short = site.short("model.hourly")["run"]
    assert (short["status"], short["rows_in"], short["late"]) == ("success", 20, 3)
    assert short["counted"] == [["Bad records", "ops.events", 2], ["Failed expectation", "plausible", 1]]
    mark = int(datetime(2013, 1, 15, 10, 1, tzinfo=UTC).timestamp() * 1000)
    assert site.node("model.hourly")["run"]["progress"][1] == [1, 10, 4, 1, 2, mark, 0]
    assert site.short("model.hourly")["watermark"] == site.node("model.hourly")["watermark"] == mark


def test_the_watermark_is_the_checkpoints_where_there_is_one(tmp_path):
    later = datetime(2013, 1, 15, 11, 0, tzinfo=UTC)
    site = written(tmp_path, small(), results(), watermarks={"model.hourly": later})
    assert site.short("model.hourly")["watermark"] == int(later.timestamp() * 1000)


def test_a_kind_tells_only_what_is_measured_for_it():
    response = {"rows_in": 0, "rows_out": 3, "late": 0, "batches": 0, "state_rows": 0, "watermark": None}

    def measured(kind: str) -> dict:
        item = {"unique_id": "model.shop.a", "status": "success", "adapter_response": {**response, "kind": kind}}
        return dict(read_results({"results": [item]}).nodes["model.a"].numbers)

    assert measured("table") == {"rows_out": 3}
    assert measured("view") == {}
    # Without a micro-batch nobody looked at the state.
    assert set(measured("streaming_table")) == {"rows_in", "rows_out", "late", "batches"}
    response |= {"batches": 1, "rows_updated": 2, "rows_deleted": 0}
    assert set(measured("streaming_table")) == {
        "rows_in", "rows_out", "rows_updated", "late", "batches", "state_rows",
    }  # fmt: skip


def test_what_was_skipped_has_no_numbers():
    skipped = {"unique_id": "model.a", "status": "skipped", "adapter_response": {"rows_in": 0}, "execution_time": 0}
    assert read_results({"results": [skipped]}).nodes["model.a"].numbers == {}


@pytest.mark.parametrize(
    "given",
    [
        None, {}, [], "text", {"results": None}, {"results": {}}, {"metadata": 3, "results": [3]},
        {"results": [None, 1, {}, {"unique_id": 3}, {"unique_id": "model.gone", "status": "success"}]},
        {"results": [{"unique_id": "model.daily"}]},
        {"results": [{"unique_id": "model.daily", "status": 3, "message": 4, "execution_time": "x", "adapter_response": []}]},
        {"results": [{"unique_id": "model.daily", "timing": [3, {}, {"completed_at": "soon"}], "adapter_response": {"rows_in": "many", "late": True, "watermark": 3}}]},
        {"results": [{"unique_id": "model.hourly", "adapter_response": {"watermark": "soon", "progress": [3, {}, {"batch_id": 1}]}}]},
    ],
)  # fmt: skip
def test_half_written_results_break_nothing(tmp_path, given):
    assert len(written(tmp_path, small(), given).index["nodes"]) == 3


def test_an_unknown_status_is_told_as_it_is():
    run = read_results({"results": [{"unique_id": "model.a", "status": "pondering"}]}).nodes["model.a"]
    assert (run.status, run.tone) == ("pondering", Tone.PLAIN)
