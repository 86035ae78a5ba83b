"""No regular expression of the package takes more than in proportion to the length of a text."""

from __future__ import annotations

import re

import pytest

from tests.security.regex_pumps import Use, is_slow, may_have_uses, pumps, uses

MODULES = may_have_uses("engine")


def module_of(use: Use) -> str:
    return use.place.partition(":")[0]


def test_the_patterns_of_the_package_are_found():
    found = uses("engine")
    assert len({use.place for use in found}) > 150
    assert any(use.place.startswith("engine.times") for use in found)
    assert {module_of(use) for use in found} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_four_times_the_text_takes_about_four_times_the_time(module):
    of_module = (use for use in uses("engine") if module_of(use) == module)
    assert [(use.place, text.__name__) for use in of_module for text in pumps(use.pattern) if is_slow(use, text)] == []


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
