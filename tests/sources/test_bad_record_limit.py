"""`max_bad_records`: what it may be, and from which record on it is exceeded."""

from __future__ import annotations

import pytest

from engine.sources.spec import BadRecordLimit, read_limit

DECISIONS = [
    # limit, bad, records, exceeded
    (None, 19, 19, False),
    (None, 20, 20, True),
    (None, 20, 21, False),
    (0, 1, 1000, True),
    (3, 3, 3, False),
    (3, 4, 1000, True),
    ("1%", 1, 100, False),
    ("1%", 2, 100, True),
    ("1%", 1, 20, True),
    ("1%", 1, 19, False),
    ("0%", 1, 20, True),
    ("100%", 500, 500, False),
]


@pytest.mark.parametrize(("said", "bad", "records", "exceeded"), DECISIONS)
def test_a_limit_is_exceeded_from_one_record_on(said: object, bad: int, records: int, exceeded: bool) -> None:
    limit = BadRecordLimit() if said is None else read_limit(said)
    assert limit is not None
    assert limit.exceeded(bad, records) is exceeded


@pytest.mark.parametrize("said", [-1, True, 0.5, "", "%", "101%", "-1%", "1 percent", "few", None, [1]])
def test_what_is_no_limit(said: object) -> None:
    assert read_limit(said) is None


def test_limits_are_shown_as_they_are_written() -> None:
    assert [str(read_limit(said)) for said in (7, "1%", "0.5 %")] == ["7", "1%", "0.5%"]
