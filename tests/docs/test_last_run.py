"""Results of the last run: shown where they are, missed nowhere."""

from __future__ import annotations

import pytest

from engine.compile import Materialized
from engine.docs.last_run import Tone, read_results
from tests.docs.build import manifest, model, small, written

FULL = {
    "metadata": {"generated_at": "2026-10-12T08:15:03.123Z"},
    "results": [
        {
            "unique_id": "model.hourly",
            "status": "success",
            "execution_time": 3.214,
            "message": "4 batches",
            "adapter_response": {
                "rows_in": 23456,
                "rows_out": 1234,
                "late": 17,
                "batches": 4,
                "watermark": "2013-01-15T10:05:00.000Z",
                "state_rows": 0,
            },
        },
        {"unique_id": "model.daily", "status": "error", "message": "it fell"},
        {"unique_id": "test.not_null_hourly_window_start", "status": "fail"},
    ],
}


def test_a_run_is_shown_with_its_numbers(tmp_path):
    page = written(tmp_path, small(), FULL)
    text = page.section("model.hourly")
    for part in (
        "Last run success 4 batches", "Rows in 23,456", "Rows out 1,234", "Late rows 17", "Micro-batches 4",
        "Rows in state 0", "Watermark 2013-01-15 10:05:00 UTC", "Took 3.2 s", "not null fail",
    ):  # fmt: skip
        assert part in text
    assert "Last run error it fell" in page.section("model.daily")
    assert "last run 2026-10-12 08:15:03 UTC: models: 1 error and 1 success; tests: 1 fail" in " ".join(
        page.one("header").text.split()
    )


def test_what_failed_is_marked_in_the_graph(tmp_path):
    page = written(tmp_path, small(), FULL)
    assert "table · error" in page.one("a", class_="box table bad").text
    assert page.one("a", class_="box streaming-table")


def test_a_kind_shows_only_what_is_measured_for_it(tmp_path):
    response = {"rows_in": 0, "rows_out": 3, "late": 0, "batches": 0, "state_rows": 0, "watermark": None}
    ids = ("model.a", "model.v")
    results = {"results": [{"unique_id": i, "status": "success", "adapter_response": response} for i in ids]}
    page = written(tmp_path, manifest(model("a"), model("v", materialized=Materialized.VIEW)), results)
    assert "Rows out 3" in page.section("model.a")
    for absent in ("Rows in", "Late", "Micro-batches"):
        assert absent not in page.section("model.a")
    assert "Rows" not in page.section("model.v")


def test_what_was_skipped_has_no_numbers():
    skipped = {
        "unique_id": "model.a",
        "status": "skipped",
        "adapter_response": {"rows_in": 0},
        "execution_time": 0,
    }
    assert read_results({"results": [skipped]}).nodes["model.a"].facts == ()


def test_ids_with_the_project_name_are_found(tmp_path):
    results = {"results": [{"unique_id": "model.shop.daily", "status": "success"}]}
    assert "Last run success" in written(tmp_path, small(), results).section("model.daily")


@pytest.mark.parametrize(
    "results",
    [
        None,
        {},
        {"results": None, "metadata": []},
        {"results": [None, 1, {}, {"unique_id": 3}, {"unique_id": "model.gone", "status": "success"}]},
        {"results": [{"unique_id": "model.daily"}]},
        {"results": [{"unique_id": "model.daily", "status": 3, "message": 4, "execution_time": "x", "adapter_response": []}]},
        {"results": [{"unique_id": "model.daily", "adapter_response": {"rows_in": "many", "late": True, "watermark": 3}}]},
        {"results": [{"unique_id": "model.hourly", "adapter_response": {"watermark": "soon"}}]},
    ],
)  # fmt: skip
def test_missing_and_odd_keys_are_tolerated(tmp_path, results):
    assert written(tmp_path, small(), results).section("model.daily")


def test_an_unknown_status_is_shown_without_judgement():
    run = read_results({"results": [{"unique_id": "model.a", "status": "pondering"}]}).nodes["model.a"]
    assert (run.status, run.tone) == ("pondering", Tone.PLAIN)
