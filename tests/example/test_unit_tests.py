"""The example's unit tests: they pass, and breaking a model on purpose turns the right ones red."""

from __future__ import annotations

import shutil

import pytest

from tests.lab import REPOSITORY, Lab, Result

pytestmark = pytest.mark.spark

HOURLY, FLIGHTS = "departures_hourly", "flights"
FIRST, TWELVE_HOURS = "the_first_waits_for_the_other", "twelve_hours_are_the_bound"
LATE = "a_late_flight_joins_two_of_them"
WRITTEN = "it_is_written_when_the_watermark_has_reached_its_end"


def copied(lab: Lab) -> None:
    for folder in ("models", "macros", "sources", "tests/models"):
        shutil.copytree(REPOSITORY / folder, lab.root / folder.replace("tests/models", "tests"))
    lab.write("project.yml", lab_text(lab) + "vars: {long_delay_minutes: 60}\n")


def lab_text(lab: Lab) -> str:
    """The project of the lab, with the target that the example's sources name."""
    text = (lab.root / "project.yml").read_text()
    return text + f"  kafka: {{catalog: {{type: sqlite, name: lake, path: '{lab.lake_path}'}}, schema: {lab.schema}}}\n"


def broken(lab: Lab, file: str, old: str, new: str) -> None:
    text = (lab.root / "models" / file).read_text()
    assert text.count(old) == 1, f"{old!r} stands not once in {file}"
    lab.write(f"models/{file}", text.replace(old, new))


def red(result: Result) -> set[str]:
    ended = [e for e in result.events if e["event"] == "TestFinished"]
    assert {e["status"] for e in ended} <= {"pass", "fail"}, result.text
    return {e["node"].removeprefix("unit_test.") for e in ended if e["status"] == "fail"}


@pytest.mark.nightly
def test_they_pass_and_a_broken_model_turns_the_right_one_red(lab: Lab) -> None:
    copied(lab)
    whole = lab.run("test", "-s", "test_type:unit")
    assert whole.code == 0, whole.text
    names = {e["node"].split(".")[1] for e in whole.events if e["event"] == "TestFinished"}
    assert names >= {HOURLY, FLIGHTS, "aircraft", "long_delays", "top_destinations", "journeys", "disruptions"}

    broken(lab, "marts/departures_hourly.sql", "1 hour)", "2 hours)")
    broken(lab, "staging/flights.sql", "dedup: [id]", "dedup: [type]")
    broken(lab, "marts/aircraft.sql", "sequence_by: [departed_at, flight_id]", "sequence_by: [flight_id]")
    broken(lab, "marts/journeys.sql", "f.departed_at + interval 12 hours\n", "f.departed_at + interval 11 hours\n")
    broken(lab, "marts/disruptions.sql", "session(departed_at, 30 minutes)", "session(departed_at, 20 minutes)")
    stateful = f"test_type:unit,{HOURLY} test_type:unit,{FLIGHTS}"
    others = f"test_type:unit,aircraft {FIRST} {TWELVE_HOURS} {LATE}"
    assert red(lab.run("test", "-s", f"{stateful} {others}")) == {
        f"{HOURLY}.an_hour_is_written_when_the_watermark_has_passed_it",
        f"{FLIGHTS}.a_duplicate_event_is_one_flight",
        f"{FLIGHTS}.more_than_a_day_behind_is_late",
        f"{FLIGHTS}.an_implausible_delay_goes_to_the_quarantine",
        "aircraft.the_newest_departure_stays",
        f"journeys.{TWELVE_HOURS}",
        f"disruptions.{LATE}",
    }

    broken(lab, "marts/departures_hourly.sql", "2 hours)", "1 hour)")
    broken(lab, "marts/departures_hourly.sql", "delay 30 minutes", "delay 90 minutes")
    broken(lab, "staging/flights.sql", "dedup: [type]", "dedup: [id]")
    broken(lab, "staging/flights.sql", "delay 1 day", "delay 2 days")
    broken(lab, "marts/disruptions.sql", "session(departed_at, 20 minutes)", "session(departed_at, 30 minutes)")
    broken(lab, "marts/disruptions.sql", "delay 9 hours", "delay 10 hours")
    assert red(lab.run("test", "-s", f"{stateful} {LATE} {WRITTEN}")) == {
        f"{HOURLY}.an_hour_is_written_when_the_watermark_has_passed_it",
        f"{HOURLY}.behind_the_watermark_is_dropped",
        f"{FLIGHTS}.more_than_a_day_behind_is_late",
        f"disruptions.{WRITTEN}",
    }
