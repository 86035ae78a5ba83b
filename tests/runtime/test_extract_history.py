"""`history: true` of a batch table: the versions of full extracts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from engine import kill_points
from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCE = sources_yaml(
    "crm", people={"full_extracts": "by_name", "schema": "id int, name string, city string, at timestamp"}
)
MODEL = """/*---
materialized: table
history: true
unique_key: id
{keys}
---*/
select id, name, city, at from {{{{ source('crm', 'people') }}}}
"""
Row = dict[str, Any]


@pytest.fixture
def crm(lab: Lab) -> Lab:
    lab.write("sources/crm.yml", SOURCE)
    return lab


def model(lab: Lab, keys: str = "check: all\ndeletes: close") -> None:
    lab.model("people", MODEL.format(keys=keys))


def dump(lab: Lab, day: int, people: Mapping[Any, tuple[Any, ...]]) -> None:
    rows = [dict(zip(("id", "name", "city", "at"), (key, *values), strict=False)) for key, values in people.items()]
    lab.land(f"people_2024-05-{day:02}", rows, "landing/people")


def versions(lab: Lab) -> list[tuple[Any, ...]]:
    """id, name, city, and the days from and to which a version is valid."""
    found = [
        (r["id"], r["name"], r["city"], r["valid_from"].day, r["valid_to"] and r["valid_to"].day, r["is_current"])
        for r in lab.rows("people")
    ]
    return sorted(found, key=lambda row: (row[0] or -1, row[3]))


def expected(days: Mapping[int, Mapping[Any, tuple[Any, ...]]], *, close: bool = True) -> list[tuple[Any, ...]]:
    """The versions in plain Python."""
    current: dict[Any, list[Any]] = {}
    found: list[list[Any]] = []
    for day, people in sorted(days.items()):
        for key in [key for key in current if close and key not in people]:
            current.pop(key)[4:] = [day, False]
        for key, values in people.items():
            if key in current and tuple(current[key][1:3]) == values:
                continue
            if key in current:
                current[key][4:] = [day, False]
            current[key] = [key, *values, day, None, True]
            found.append(current[key])
    return sorted(map(tuple, found), key=lambda row: (row[0] or -1, row[3]))


@pytest.mark.nightly
def test_dumps_that_arrive_at_once_are_taken_one_after_another_and_once(crm):
    chance = random.Random(7)
    days = {
        day: {
            key: (chance.choice(["a", "b", None]), chance.choice(["x", None]))
            for key in (None, 1, 2, 3, 4)
            if chance.random() < 0.7
        }
        or {1: ("a", "x")}
        for day in range(1, 4)
    }
    for day, people in days.items():
        dump(crm, day, people)
    model(crm)
    crm.build()
    assert versions(crm) == expected(days)
    snapshot = crm.snapshot("people")
    assert crm.build().model("people")["status"] == "unchanged"
    dump(crm, 11, days[3])
    crm.build()
    assert crm.snapshot("people") == snapshot
    days |= {11: days[3], 12: {1: ("new", "x")}}
    dump(crm, 12, days[12])
    crm.build()
    assert versions(crm) == expected(days)


def test_a_day_is_taken_whole_or_not_at_all_and_what_does_not_fit_shows_its_keys(crm):
    model(crm)
    dump(crm, 1, {1: ("a", "x"), 2: ("b", "y")})
    crm.build()
    snapshot = crm.snapshot("people")
    two = crm.land("people_2024-05-02", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], "landing/people")
    failed = crm.run("build")
    assert failed.codes() == ["duplicate-key"]
    assert '{"id":1}' in failed.model("people")["message"]
    two.write_text("")
    assert crm.run("build").codes() == ["extract-empty"]
    assert crm.snapshot("people") == snapshot
    two.unlink()
    late = crm.land("people_2024-04-30", [{"id": 1, "name": "a"}], "landing/people")
    assert crm.run("build").codes() == ["extract-order"]
    late.unlink()
    assert crm.run("build", "-f").codes()[0] == "full-refresh-protected"
    # A changed list of compared columns applies from the next extract on; another key is another table.
    model(crm, "check: [city]\ndeletes: close")
    dump(crm, 3, {1: ("other", "x"), 2: ("b", "z")})
    crm.build()
    assert versions(crm) == [
        (1, "a", "x", 1, None, True), (2, "b", "y", 1, 3, False), (2, "b", "z", 3, None, True),
    ]  # fmt: skip
    crm.model("people", MODEL.format(keys="check: [city]").replace("unique_key: id", "unique_key: name"))
    assert "model-changed" in crm.run("build").codes()


def test_versions_by_a_column_begin_at_its_value_and_never_overlap(crm):
    model(crm, "sequence_by: at\ndeletes: close")
    dump(crm, 10, {1: ("a", "x", "2024-05-01T00:00:00Z"), 2: ("b", "y", "2024-05-02T00:00:00Z")})
    dump(crm, 11, {1: ("ignored", "x", "2024-05-01T00:00:00Z")})
    # A row that comes back with the time that it had begins when it is seen again.
    dump(crm, 12, {1: ("new", "x", "2024-05-09T00:00:00Z"), 2: ("b", "y", "2024-05-02T00:00:00Z")})
    crm.build()
    assert versions(crm) == [
        (1, "a", "x", 1, 9, False), (1, "new", "x", 9, None, True),
        (2, "b", "y", 2, 11, False), (2, "b", "y", 12, None, True),
    ]  # fmt: skip


@pytest.mark.nightly
def test_a_build_that_ends_at_any_point_is_repeated_without_a_version_twice(crm):
    """Each dump in turn: the build ends at a point of it, and the next one continues."""
    model(crm)
    days: dict[int, dict[Any, tuple[Any, ...]]] = {}
    for day, point in enumerate(("replaced", "merging", "committing", "checked", "committed"), 1):
        days[day] = {1: (str(day), "x"), **({2: ("b", "y")} if day % 2 else {})}
        dump(crm, day, days[day])
        passed = []

        def end(reached: str, table: str, *_: object, point: str = point, passed: list[str] = passed) -> None:
            if reached == point and table == "people":
                passed.append(reached)
                raise RuntimeError("ended by the test")

        stop = kill_points.listen(end)
        try:
            crm.run("build")
        finally:
            stop()
        assert passed
    crm.build()
    assert versions(crm) == expected(days)
