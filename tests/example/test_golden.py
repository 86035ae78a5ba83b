from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from tests.example.golden import Late, Replay, disruptions, journeys, project, read_batches, totals, unique_events

TEN_MINUTES = timedelta(minutes=10)
HOUR = timedelta(hours=1)


def at(clock):
    return datetime.strptime(f"2013-03-01 {clock}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def row(clock, name="", origin="EWR", delay=None):
    return {"id": name or clock, "scheduled_at": at(clock), "origin": origin, "departure_delay": delay}


def windows(rows):
    return {f"{one['window_start']:%H:%M}": one["count"] for one in rows}


# streaming-rules.md §11, measured on Spark 3.5.9, 4.1.4 and 4.3.0
MEASURED = [[row("12:00"), row("12:40")], [row("12:01")], [row("13:30"), row("12:02")], [row("13:31")]]


def ten_minutes(**settings):
    return Replay(TEN_MINUTES, window=TEN_MINUTES, **{"dedup": None} | settings)


def test_one_run_over_four_batches_drops_one_row():
    replay = ten_minutes()
    assert windows(replay.run(MEASURED)) == {"12:00": 2, "12:40": 1}
    assert replay.late == Late(window_rows=1, window_groups=1)
    assert replay.open_windows == [(at("13:30"), "EWR", 2)]
    assert replay.watermark == at("13:21")
    assert replay.batches == 5


def test_four_runs_of_one_batch_drop_two_rows():
    replay = ten_minutes()
    added = [windows(replay.run([batch])) for batch in MEASURED]
    assert added == [{"12:00": 1}, {}, {"12:40": 1}, {}]
    assert replay.late.window_rows == 2
    assert replay.batches == 4 + 3


def test_a_run_without_rows_changes_nothing():
    replay = ten_minutes()
    replay.run(MEASURED)
    assert replay.run([]) == []
    assert replay.batches == 5


def test_a_late_group_counts_once_per_batch():
    replay = ten_minutes()
    replay.run([[row("13:00")], [row("13:01")], [row("12:01"), row("12:02"), row("12:03", origin="JFK")]])
    assert replay.late == Late(window_rows=3, window_groups=2)


def test_a_row_behind_the_watermark_counts_while_its_window_is_open():
    replay = Replay(TEN_MINUTES, dedup=None)
    replay.run([[row("12:05"), row("12:40")], [row("12:41")], [row("12:06")], [row("14:00")]])
    assert windows(replay.rows) == {"12:00": 4}
    assert replay.late.window_rows == 0


def test_dedup_drops_that_row_because_it_compares_the_event_time():
    replay = Replay(TEN_MINUTES)
    replay.run([[row("12:05"), row("12:40")], [row("12:41")], [row("12:06")], [row("14:00")]])
    assert windows(replay.rows) == {"12:00": 3}
    assert replay.late == Late(dedup=1)


def test_a_row_exactly_at_the_watermark_is_late():
    replay = Replay(TEN_MINUTES, window=None)
    replay.run([[row("12:30")], [], [row("12:20"), row("12:21")]])
    assert [one["id"] for one in replay.rows] == ["12:30", "12:21"]


def test_only_the_watermark_is_cut_to_milliseconds():
    replay = Replay(TEN_MINUTES, window=None)
    newest = row("12:30") | {"scheduled_at": at("12:30") + timedelta(microseconds=777)}
    above = row("12:20", "above") | {"scheduled_at": at("12:20") + timedelta(microseconds=1)}
    replay.run([[newest], [], [row("12:20", "at"), above]])
    assert replay.watermark == at("12:20")
    assert [one["id"] for one in replay.rows] == ["12:30", "above"]


def test_repeats_are_dropped_within_and_across_batches():
    replay = Replay(HOUR, window=None)
    replay.run([[row("12:00", "a"), row("12:00", "a")], [row("12:00", "a"), row("12:01", "b")]])
    assert [one["id"] for one in replay.rows] == ["a", "b"]
    assert replay.duplicates == 2


def test_an_id_is_forgotten_once_its_time_and_the_delay_have_passed():
    replay = Replay(TEN_MINUTES, window=None)
    batches = [[row("12:00", "a")], [row("12:20", "b")], [row("12:21", "a")], [row("12:22", "a")]]
    assert [one["id"] for one in replay.run(batches)] == ["a", "b", "a"]


def test_the_watermark_sees_repeats_but_not_what_the_filter_removed():
    rows = [[row("12:00", "a"), row("13:00", "b", origin="JFK")]]
    kept, unique = (
        Replay(TEN_MINUTES, window=None, **{name: lambda one: one["origin"] == "EWR"})
        for name in ("keep", "keep_unique")
    )
    assert kept.run(rows) == unique.run(rows)
    assert (kept.watermark, unique.watermark) == (at("11:50"), at("12:50"))


def test_the_mean_leaves_out_missing_delays():
    replay = Replay(TEN_MINUTES)
    rows = [
        row("12:00", delay=4), row("12:01", delay=-1), row("12:02"), row("12:03", origin="JFK"), row("14:00"),
    ]  # fmt: skip
    shared = {"window_start": at("12:00"), "window_end": at("13:00")}
    assert replay.run([rows]) == [
        {**shared, "count": 3, "origin": "EWR", "mean": 1.5},
        {**shared, "count": 1, "origin": "JFK", "mean": None},
    ]


def test_a_row_is_in_every_sliding_window_around_it():
    replay = Replay(TEN_MINUTES, window=HOUR, slide=timedelta(minutes=30))
    assert windows(replay.run([[row("12:40"), row("15:00")]])) == {"12:00": 1, "12:30": 1}
    assert windows(replay.run([[row("18:00")]])) == {"14:30": 1, "15:00": 1}


def test_a_unique_model_has_one_row_per_event():
    batches = [[row("12:00", "a"), row("12:01", "b")], [row("12:00", "a")]]
    assert [one["id"] for one in unique_events(batches)] == ["a", "b"]


def test_a_stateless_model_keeps_every_row():
    batches = [[row("12:00", "a", delay=3)], [row("12:00", "a", delay=3)]]
    found = project(batches, event_id="id", seconds=lambda one: one["departure_delay"] * 60)
    assert found == [{"event_id": "a", "seconds": 180}] * 2


def test_a_journey_without_a_landing_is_known_once_the_watermark_has_passed_its_bound():
    departures = [{"id": "a", "departed_at": at("00:00")}, {"id": "b", "departed_at": at("00:01")}]
    departures.append({"id": "c", "departed_at": at("22:00")})
    newest = {"flight_id": "x", "landed_at": at("12:00") + timedelta(hours=9, minutes=1)}
    assert journeys(departures, [newest]) == {"a": None}
    landing = {"flight_id": "b", "landed_at": at("12:01")}
    assert journeys(departures, [newest, landing]) == {"a": None, "b": at("12:01")}
    landing = {"flight_id": "b", "landed_at": at("12:02")}
    assert journeys(departures, [newest, landing]) == {"a": None}


def test_a_disruption_lasts_as_long_as_half_an_hour_never_passes_without_a_long_delay():
    delays = [
        ("10:00", "JFK", 60),
        ("10:30", "JFK", 75),
        ("10:40", "LGA", 60),
        ("10:45", "JFK", 59),
        ("11:01", "JFK", 60),
    ]
    rows = [{"departed_at": at(clock), "origin": origin, "departure_delay": n} for clock, origin, n in delays]
    assert disruptions(rows) == []
    newest = {"departed_at": at("20:10"), "origin": "EWR", "departure_delay": 60}
    assert disruptions([*reversed(rows), newest]) == [
        ("JFK", at("10:00"), at("11:00"), 2, 75),
        ("LGA", at("10:40"), at("11:10"), 1, 60),
    ]


@pytest.fixture
def landed(tmp_path):
    """Five files whose modification times do not follow their names."""
    for name, stamp in {"c": 1.0, "a": 2.0, "b": 3.0, "e": 3.5, "d": 4.0}.items():
        event = {
            "id": name, "source": "/airports/EWR", "type": "flight.cancelled", "subject": None,
            "time": "2013-03-01T12:00:00Z", "data": {"scheduled_at": "2013-03-01T12:00:00Z", "departed_at": None},
        }  # fmt: skip
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(event) + "\n")
        os.utime(path, (stamp, stamp))
    (tmp_path / "_draft").write_text("{}")
    return tmp_path


def test_batches_follow_modification_time(landed):
    assert [[one["id"] for one in batch] for batch in read_batches(landed, 2)] == [
        ["c", "a"],
        ["b", "e"],
        ["d"],
    ]


def test_equal_modification_times_are_refused(landed):
    os.utime(landed / "a.json", (1.0, 1.0))
    with pytest.raises(ValueError, match="the same modification time"):
        read_batches(landed, 2)


def test_files_of_an_earlier_run_are_left_out(landed):
    earlier = [landed / "c.json", landed / "b.json"]
    assert [[one["id"] for one in batch] for batch in read_batches(landed, 2, earlier)] == [["a", "e"], ["d"]]


def test_times_are_read_as_utc(landed):
    (first, *_), *_ = read_batches(landed, 1)
    assert (first["time"], first["scheduled_at"], first["departed_at"]) == (at("12:00"), at("12:00"), None)


def test_totals_count_what_landed():
    rows = [row("12:00", "a") | {"type": "flight.cancelled"}, row("12:01", "b") | {"type": "flight.departed"}]
    assert totals([rows, rows[:1]]) == {"rows": 3, "unique": 2, "duplicates": 1, "cancelled": 1}
