"""The ranges of times of partitions, beside those of Python's calendar and beyond its last year."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from engine.relations import Partition
from engine.runtime.batch.affected_partitions import PartitionValues

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTH = {"hour": 13, "day": 10, "month": 7, "year": 4}


def _value(transform: str, at: datetime) -> int:
    """The value of a partition transform, as Iceberg defines it."""
    months = (at.year - 1970) * 12 + at.month - 1
    return {
        "hour": (at - _EPOCH) // timedelta(hours=1), "day": (at - _EPOCH).days, "month": months, "year": at.year - 1970,
    }[transform]  # fmt: skip


def _range(transform: str, value: int, kind: str = "timestamp") -> tuple[str, str] | None:
    found = PartitionValues((Partition(transform, "at"),), ("int",), ((str(value),),)).ranges([kind]).get("at")
    return found[0] if found else None


def _begin(transform: str, at: datetime) -> datetime:
    text = (
        at.isoformat()[: _LENGTH[transform]] + {"hour": ":00", "day": "", "month": "-01", "year": "-01-01"}[transform]
    )
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("transform", _LENGTH)
def test_a_range_is_from_the_begin_of_a_partition_to_that_of_the_next(transform: str) -> None:
    chance = random.Random(9)
    for _ in range(1_000):
        at = datetime(1, 2, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(315_000_000_000))
        low, high = _range(transform, _value(transform, at)) or ("", "")
        begin = _begin(transform, at)
        after = begin + {"hour": timedelta(hours=1), "day": timedelta(days=1)}.get(transform, timedelta(days=1))
        if transform in {"month", "year"}:
            after = _begin(transform, begin + timedelta(days=32 if transform == "month" else 367))
        expected = tuple(f"timestamp_micros({(one - _EPOCH) // timedelta(microseconds=1)})" for one in (begin, after))
        assert (low, high) == expected, (transform, at)


def test_partitions_beyond_the_year_9999_have_ranges_and_those_beyond_spark_none() -> None:
    # Each 400 years have 146,097 days; 54000 is a leap year, as 2000 is.
    begin = ((datetime(2000, 1, 1, tzinfo=UTC) - _EPOCH).days + 130 * 146_097) * 86_400_000_000
    after = begin + 366 * 86_400_000_000
    assert _range("year", 54_000 - 1970) == (f"timestamp_micros({begin})", f"timestamp_micros({after})")
    assert _range("day", 20_000_000, "date") == ("date_from_unix_date(20000000)", "date_from_unix_date(20000001)")
    # The last year of a time in microseconds is not whole.
    assert _range("year", 294_247 - 1970) is None
    assert _range("day", -200_000_000) is None
