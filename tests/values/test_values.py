"""A small part of `make values`: random texts of every type in files, each as it is written or a bad record."""

from __future__ import annotations

import pytest

from tests.lab import Lab
from tests.values.cases import cases
from tests.values.compare import Count, built, declare, faults, land
from tests.values.oracle import BAD

pytestmark = pytest.mark.spark
WAYS = ("json", "csv", "folder")


def test_each_value_is_as_it_is_written_or_a_bad_record(lab: Lab) -> None:
    made = [case for case in cases(7, 900) if case.way in WAYS]
    declare(lab, WAYS)
    land(lab, made)
    lab.build()
    count = Count()
    found = faults(made, {way: built(lab, way) for way in WAYS}, count)
    assert not found, "\n".join(found)
    assert all(count.ways[way] > 50 for way in WAYS)
    assert len(made) / 4 < count.bad < len(made) * 3 / 4
    # Texts of which Spark makes another value are among them.
    assert sum(case.expected is BAD and case.type.startswith("date") for case in made) > 5
