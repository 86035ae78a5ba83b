"""The example project, built from landed files: its tables equal numbers computed in plain Python."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest

from engine.compile import Materialized, compile_project
from engine.project import load_project
from producer.__main__ import main as produce
from tests.example import golden
from tests.lab import REPOSITORY, Lab

pytestmark = pytest.mark.spark

FILES = 96  # in a micro-batch of departures
DELAY = timedelta(minutes=30)


@pytest.fixture
def flights(lab: Lab) -> Lab:
    """The example project over two days of flights, in a schema of its own."""
    for folder in ("models", "macros", "sources"):
        shutil.copytree(REPOSITORY / folder, lab.root / folder)
    text = (REPOSITORY / "project.yml").read_text()
    text = re.sub(r"path: \.engine/lake", f"path: {lab.lake_path}", text)
    lab.write("project.yml", re.sub(r"schema: flights\b", f"schema: {lab.schema}", text))
    land(lab, "--days", "2")
    return lab


def land(lab: Lab, *arguments: str) -> None:
    assert produce(["--out", str(lab.root / "landing"), *arguments]) == 0


ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz"}


def check_columns(lab: Lab) -> None:
    """The compiler's columns and types are those of the tables."""
    manifest = compile_project(load_project(lab.root)).manifest
    for model in manifest.models:
        table = lab.table(model.name)
        if model.materialized not in {Materialized.VIEW, Materialized.EPHEMERAL}:
            assert table is not None
            known = [
                (c.name, re.sub(r"decimal\((\d+),(\d+)\)", r"decimal(\1, \2)", str(c.type))) for c in model.columns
            ]
            assert [(name, ICEBERG_TYPES.get(kind, kind)) for name, kind in known] == list(table.columns), model.name


def departed_once() -> golden.Replay:
    """What `flights` does: an event once, without those that are cancelled or quarantined."""
    return golden.Replay(timedelta(days=1), window=None, keep_unique=golden.is_flight)


def hourly_replay() -> golden.Replay:
    """What `departures_hourly` does; each build reads in one micro-batch what `flights` gained."""
    return golden.Replay(DELAY, dedup=None)


def trend_replay() -> golden.Replay:
    return golden.Replay(DELAY, dedup=None, window=timedelta(hours=3), slide=timedelta(hours=1))


def hourly_rows(lab: Lab) -> list[tuple[object, ...]]:
    rows = lab.rows("departures_hourly")
    return sorted((r["window_start"], r["origin"], r["departures"], round(r["mean_delay"], 6)) for r in rows)


def trend_rows(lab: Lab) -> list[tuple[object, ...]]:
    return sorted((r["ended_at"], r["origin"], r["departures"], r["mean_delay"]) for r in lab.rows("delay_trend"))


def golden_trend(rows: list[golden.Row]) -> list[tuple[object, ...]]:
    return sorted((r["window_end"], r["origin"], r["count"], half_up(r["mean"])) for r in rows)


def half_up(mean: float) -> float:
    """One decimal, as SQL rounds."""
    return float(Decimal(repr(mean)).quantize(Decimal("0.1"), ROUND_HALF_UP))


def aircraft_rows(lab: Lab) -> dict[str, tuple[object, ...]]:
    rows = lab.rows("aircraft")
    assert len({r["tailnum"] for r in rows}) == len(rows)
    return {r["tailnum"]: (r["departed_at"], r["flight_id"], r["destination"]) for r in rows}


def golden_aircraft(events: Iterable[golden.Row]) -> dict[str, tuple[object, ...]]:
    """The newest departure of each aircraft, whatever the order in which they arrive."""
    last: dict[str, tuple[object, ...]] = {}
    for row in events:
        told = (row["departed_at"], row["id"], row["destination"])
        if row["tailnum"] is not None and (row["tailnum"] not in last or told > last[row["tailnum"]]):
            last[row["tailnum"]] = told
    return last


def golden_history(events: Iterable[golden.Row]) -> list[tuple[object, ...]]:
    """Each departure of an aircraft with the next one, the newest without; of equal times the last id counts."""
    departures: dict[tuple[str, object], str] = {}
    for row in sorted(events, key=lambda row: row["id"]):
        if row["tailnum"] is not None:
            departures[row["tailnum"], row["departed_at"]] = row["id"]
    found: list[tuple[object, ...]] = []
    following: dict[str, object] = {}
    for (tailnum, at), event in sorted(departures.items(), key=lambda item: item[0], reverse=True):
        until = following.get(tailnum)
        found.append((tailnum, event, at, until, until is None))
        following[tailnum] = at
    return sorted(found, key=lambda row: (str(row[0]), str(row[2])))


def history_rows(lab: Lab) -> list[tuple[object, ...]]:
    columns = ("tailnum", "flight_id", "valid_from", "valid_to", "is_current")
    rows = [tuple(row[column] for column in columns) for row in lab.rows("aircraft_history")]
    return sorted(rows, key=lambda row: (str(row[0]), str(row[2])))


def golden_destinations(events: Iterable[golden.Row]) -> set[tuple[str, int, int]]:
    counts: Counter[str] = Counter()
    longest: dict[str, int] = {}
    for row in events:
        where = row["destination"]
        counts[where] += 1
        longest[where] = max(row["departure_delay"], longest.get(where, row["departure_delay"]))
    first = sorted(counts, key=lambda where: (-counts[where], where))[:10]
    return {(where, counts[where], longest[where]) for where in first}


def check_latest(lab: Lab, events: Iterable[golden.Row]) -> None:
    """The upsert, the history and the ranking."""
    events = list(events)
    assert aircraft_rows(lab) == golden_aircraft(events)
    assert history_rows(lab) == golden_history(events)
    found = {(r["destination"], r["departures"], r["longest_delay"]) for r in lab.rows("top_destinations")}
    assert found == golden_destinations(events)


def arrived(lab: Lab) -> list[golden.Row]:
    (rows,) = golden.read_batches(lab.root / "landing" / "arrivals", 10_000)
    return rows


def check_streams_of_two(lab: Lab, events: Iterable[golden.Row], arrivals: Iterable[golden.Row]) -> None:
    """The join and the sessions."""
    events = list(events)
    rows = lab.rows("journeys")
    journeys = golden.journeys(events, arrivals)
    assert Counter((r["flight_id"], r["landed_at"]) for r in rows) == Counter(journeys.items())
    assert None in journeys.values(), "every flight landed: the outer join would show nothing"
    assert len(journeys) < len(events), "no flight is under way"
    found = [tuple(r.values()) for r in lab.rows("disruptions")]
    disruptions = golden.disruptions(events)
    assert sorted(found) == disruptions
    assert any(flights > 1 for *_, flights, _ in disruptions)


def golden_hours(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((r["window_start"], r["origin"], r["count"], round(r["mean"], 6)) for r in rows)  # type: ignore[call-overload]


def check_flights(lab: Lab, events: Mapping[str, golden.Row]) -> None:
    """The staged departures, and what is a filter or a count of them."""
    rows = lab.rows("flights")
    assert Counter(r["flight_id"] for r in rows) == Counter(events.keys())
    assert {r["flight_id"]: r["departure_delay"] for r in rows} == {i: e["departure_delay"] for i, e in events.items()}
    assert {r["flight_id"]: r["scheduled_at"] for r in rows} == {i: e["scheduled_at"] for i, e in events.items()}
    long = {i for i, e in events.items() if e["departure_delay"] >= 60}
    assert Counter(r["flight_id"] for r in lab.rows("long_delays")) == Counter(long)
    routes = Counter((e["origin"], e["destination"]) for e in events.values())
    assert {(r["origin"], r["destination"]): r["flights"] for r in lab.rows("routes")} == routes
    carriers = {r["carrier"]: (r["flights"], r["long_delays"]) for r in lab.rows("carriers")}
    per_carrier = Counter(e["carrier"] for e in events.values())
    late_per_carrier = Counter(events[i]["carrier"] for i in long)
    assert carriers == {c: (n, late_per_carrier[c]) for c, n in per_carrier.items()}


def test_the_tables_equal_golden_numbers_also_after_a_second_landing(flights: Lab) -> None:
    departures = flights.root / "landing" / "departures"
    result = flights.build()
    batches = golden.read_batches(departures, FILES)
    once, replay, trend = departed_once(), hourly_replay(), trend_replay()
    first = once.run(batches)
    expected, expected_trend = replay.run([first]), trend.run([first])
    assert expected, "the landing closes no hour"
    assert once.duplicates > 0
    assert once.late.dedup == 0
    hourly = result.model("departures_hourly")
    assert (hourly["rows_in"], hourly["late"]) == (len(first), 0)
    assert hourly_rows(flights) == golden_hours(expected)
    assert trend_rows(flights) == golden_trend(expected_trend)

    events = {row["id"]: row for row in first}
    assert result.model("flights")["quarantined"] == sum(map(golden.is_implausible, golden.unique(batches)))
    check_flights(flights, events)
    check_columns(flights)
    check_latest(flights, events.values())
    check_streams_of_two(flights, events.values(), arrived(flights))
    assert result.model("journeys")["late"] == result.model("disruptions")["late"] == 0

    before = flights.snapshots()
    again = flights.build()
    assert flights.snapshots() == before
    assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}

    seen = golden.landed_files(departures)
    land(flights, "--more", "12")
    new = golden.read_batches(departures, FILES, after=seen)
    assert len(new) == 1
    third = flights.build()
    assert third.model("flights")["rows_in"] == len(new[0]), "flights read more than the new files"
    second = once.run(new)
    expected += replay.run([second])
    expected_trend += trend.run([second])
    assert replay.late.window_groups > 0, "no row is late: the example would show nothing"
    hourly = third.model("departures_hourly")
    assert (hourly["rows_in"], hourly["late"]) == (len(second), replay.late.window_groups)
    assert hourly_rows(flights) == golden_hours(expected)
    assert trend_rows(flights) == golden_trend(expected_trend)
    events |= {row["id"]: row for row in second}
    check_latest(flights, events.values())
    check_streams_of_two(flights, events.values(), arrived(flights))
