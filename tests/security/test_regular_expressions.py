"""No regular expression of the packages takes more than in proportion to the length of a text."""

from __future__ import annotations

import re

import pytest

from tests.security.regex_pumps import Use, is_slow, may_have_uses, pumps, uses

pytestmark = pytest.mark.slow

PACKAGES = ("engine", "engine_import")
MODULES = [module for package in PACKAGES for module in may_have_uses(package)]


def module_of(use: Use) -> str:
    return use.place.partition(":")[0]


def test_the_patterns_of_the_packages_are_found():
    found = [use for package in PACKAGES for use in uses(package)]
    assert len({use.place for use in found}) > 150
    assert any(use.place.startswith("engine.times") for use in found)
    assert any(use.place.startswith("engine_import.dialects.") for use in found)
    assert {module_of(use) for use in found} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_four_times_the_text_takes_about_four_times_the_time(module):
    of_module = (use for use in uses(module.partition(".")[0]) if module_of(use) == module)
    assert [(use.place, text.__name__) for use in of_module for text in pumps(use.pattern) if is_slow(use, text)] == []


@pytest.mark.nightly_except("\\\\s+$-True", "(a+)+b-False")
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
