"""No regular expression of the package takes more than in proportion to the length of a text."""

from __future__ import annotations

import re

import pytest

from tests.security.regex_pumps import Use, is_slow, pumps, uses

USES = {use.place: use for use in uses("engine")}


def test_the_patterns_of_the_package_are_found():
    assert len(USES) > 150
    assert any(place.startswith("engine.times") for place in USES)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_four_times_the_text_takes_about_four_times_the_time(use):
    assert [text.__name__ for text in pumps(use.pattern) if is_slow(use, text)] == []


@pytest.mark.parametrize(
    ("pattern", "everywhere"),
    [
        (r"\s+$", True),
        (r"(a+)+b", False),
        (r"\s*(\w*)\s*x", True),
        (r"a*a*b", False),
        (r"/\*.*?\*/", True),
        (r"\[[^]]*\]x", True),
    ],
)
def test_patterns_that_are_known_to_be_slow_are_found(pattern, everywhere):
    use = Use("here", re.compile(pattern, re.DOTALL), everywhere, False)
    assert any(is_slow(use, text) for text in pumps(use.pattern))
