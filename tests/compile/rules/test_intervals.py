"""Lengths of time that a query writes: what Spark reads, and what is no length."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from engine.compile.sql.dialect import DIALECT
from engine.compile.sql.intervals import has_months, is_no_interval, seconds


def length(text: str) -> exp.Expr:
    return parse_one(text, dialect=DIALECT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'10 minutes'", 600),
        ("'1 hour 10 minutes'", 4200),
        ("'interval 1 day'", 86400),
        ("'-5 minutes'", -300),
        ("'1.5 hours'", 5400),
        ("'1 week'", 604800),
        ("interval 10 minutes", 600),
        ("interval '5' minute", 300),
        ("interval -5 minutes", -300),
        ("interval '01:30' hour to minute", 5400),
        ("interval '1 00:00:01' day to second", 86401),
        ("interval '-00:10' hour to minute", -600),
        # Months have no length that is always the same.
        ("'1 month'", None),
        ("'1 month 1 day'", None),
        ("'1 day 1 year'", None),
        ("interval '1-6' year to month", None),
        # What is no length.
        ("'10 parsecs'", None),
        ("'1 hour 10 parsecs'", None),
        ("'1 hour and 10 minutes'", None),
        ("'x 1 hour'", None),
        ("'1 hour x'", None),
        ("'hour'", None),
        ("''", None),
        ("10", None),
        ("interval '1:2:3' hour to minute", None),
    ],
)
def test_the_seconds_of_a_length(text: str, expected: float | None) -> None:
    assert seconds(length(text)) == expected


@pytest.mark.parametrize(("text", "months"), [("'1 month'", True), ("'2 days 1 quarter'", True), ("'30 days'", False)])
def test_months_are_told_from_days(text: str, months: bool) -> None:
    assert has_months(length(text)) is months


@pytest.mark.parametrize(
    ("text", "none"),
    [
        ("'10 parsecs'", True), ("'1 hour and 10 minutes'", True), ("'hour'", True), ("'10'", True), ("''", True),
        ("'10 minutes'", False), ("'10 nanoseconds'", False), ("'interval 1 day'", False), ("id", False), ("10", False),
    ],
)  # fmt: skip
def test_a_text_that_certainly_is_no_length(text: str, none: bool) -> None:
    assert is_no_interval(length(text)) is none
