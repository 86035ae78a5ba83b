"""The list of the night names tests that there are, and `make test` leaves out these only."""

from __future__ import annotations

from tests.lab import REPOSITORY
from tests.nightly_tests import LIST, listed
from tests.slow_tests import file_of, function_of
from tests.test_slow_tests import functions


def test_each_of_the_list_exists() -> None:
    files = {file_of(name) for name in listed()}
    assert {path for path in files if not (REPOSITORY / path).is_file()} == set()
    there = {name for path in files for name in (path, *functions(path))}
    assert {name for name in listed() if function_of(name) not in there} == set()


def test_each_group_says_what_stays() -> None:
    """A comment above a group says what `make test` still sees of it."""
    groups = LIST.read_text(encoding="utf-8").strip().split("\n\n")
    assert [group for group in groups if not group.startswith("# ")] == []


def test_make_test_leaves_them_to_make_nightly() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert "\nNIGHTLY ?= and not nightly\n" in text
    nightly = next(rule for rule in text.split("\n\n") if "\nnightly: " in rule)
    assert "test NIGHTLY=\n" in nightly
