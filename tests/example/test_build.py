"""The example project, built from landed files: its tables equal numbers computed in plain Python."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest

from engine.compile import Materialized, compile_project
from engine.project import load_project
from producer.__main__ import main as produce
from tests.example import golden
from tests.lab import REPOSITORY, Lab

pytestmark = pytest.mark.spark

HOURLY_FILES = 4
DEPARTED = "flight.departed"


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
        if model.materialized is not Materialized.VIEW:
            assert table is not None
            known = [
                (c.name, re.sub(r"decimal\((\d+),(\d+)\)", r"decimal(\1, \2)", str(c.type))) for c in model.columns
            ]
            assert [(name, ICEBERG_TYPES.get(kind, kind)) for name, kind in known] == list(table.columns), model.name


def hourly_replay() -> golden.Replay:
    return golden.Replay(timedelta(minutes=30), dedup="id", keep_unique=lambda row: row["type"] == DEPARTED)


def hourly_rows(lab: Lab) -> list[tuple[object, ...]]:
    rows = lab.rows("departures_hourly")
    return sorted((r["window_start"], r["origin"], r["departures"], round(r["mean_delay"], 6)) for r in rows)


def aircraft_rows(lab: Lab) -> dict[str, tuple[object, ...]]:
    rows = lab.rows("aircraft")
    assert len({r["tailnum"] for r in rows}) == len(rows)
    return {r["tailnum"]: (r["departed_at"], r["flight_id"], r["destination"]) for r in rows}


def golden_aircraft(events: Iterable[golden.Row]) -> dict[str, tuple[object, ...]]:
    """The newest departure of each aircraft, whatever the order in which they are told."""
    last: dict[str, tuple[object, ...]] = {}
    for row in events:
        told = (row["departed_at"], row["id"], row["destination"])
        if row["tailnum"] is not None and (row["tailnum"] not in last or told > last[row["tailnum"]]):
            last[row["tailnum"]] = told
    return last


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
    """The upsert and the ranking."""
    events = list(events)
    assert aircraft_rows(lab) == golden_aircraft(events)
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


def test_the_tables_equal_golden_numbers_also_after_a_second_landing(flights: Lab) -> None:
    departures = flights.root / "landing" / "departures"
    result = flights.build()
    batches = golden.read_batches(departures, HOURLY_FILES)
    replay = hourly_replay()
    expected = replay.run(batches)
    assert expected, "the landing closes no hour"
    assert replay.late.dedup > 0, "no row is late: the example would show nothing"
    assert replay.duplicates > 0
    hourly = result.model("departures_hourly")
    assert (hourly["rows_in"], hourly["late"]) == (sum(map(len, batches)), replay.late.dedup)
    assert hourly_rows(flights) == golden_hours(expected)

    events = {row["id"]: row for batch in batches for row in batch if row["type"] == DEPARTED}
    rows = flights.rows("flights")
    assert Counter(r["flight_id"] for r in rows) == Counter(events.keys())
    assert {r["flight_id"]: r["departure_delay"] for r in rows} == {i: e["departure_delay"] for i, e in events.items()}
    assert {r["flight_id"]: r["scheduled_at"] for r in rows} == {i: e["scheduled_at"] for i, e in events.items()}
    long = {i for i, e in events.items() if e["departure_delay"] >= 60}
    assert Counter(r["flight_id"] for r in flights.rows("long_delays")) == Counter(long)
    routes = Counter((e["origin"], e["destination"]) for e in events.values())
    assert {(r["origin"], r["destination"]): r["flights"] for r in flights.rows("routes")} == routes
    carriers = {r["carrier"]: (r["flights"], r["long_delays"]) for r in flights.rows("carriers")}
    per_carrier = Counter(e["carrier"] for e in events.values())
    late_per_carrier = Counter(events[i]["carrier"] for i in long)
    assert carriers == {c: (n, late_per_carrier[c]) for c, n in per_carrier.items()}

    check_columns(flights)
    check_latest(flights, events.values())
    check_streams_of_two(flights, events.values(), arrived(flights))
    assert result.model("journeys")["late"] == result.model("disruptions")["late"] == 0

    before = flights.snapshots()
    again = flights.build()
    assert flights.snapshots() == before
    assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}

    seen = golden.landed_files(departures)
    land(flights, "--more", "1")
    new = golden.read_batches(departures, HOURLY_FILES, after=seen)
    assert len(new) == 1
    third = flights.build()
    for model in ("flights", "departures_hourly"):
        assert third.model(model)["rows_in"] == len(new[0]), f"{model} read more than the new file"
    expected += replay.run(new)
    assert hourly_rows(flights) == golden_hours(expected)
    events |= {row["id"]: row for row in new[0] if row["type"] == DEPARTED}
    check_latest(flights, events.values())
    check_streams_of_two(flights, events.values(), arrived(flights))
