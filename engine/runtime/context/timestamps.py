"""Times of Spark as Python's, which has the years 1 to 9999."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_FIRST, _LAST = -62_135_596_800 * _SECOND, 253_402_300_799 * _SECOND


def moment(micros: int) -> datetime:
    """The time of some microseconds since 1970, in UTC; the nearest that Python has."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))
