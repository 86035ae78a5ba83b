"""The comparison that rename commits are checked with: names may differ, and nothing else."""

from __future__ import annotations

import pytest

from tests.same_code.compare import DifferenceError, compare

OLD = '''
"""A module."""
def found(items, limit=3):
    """Return them."""
    kept = [item for item in items if item > limit]  # why
    return kept
'''


def test_names_docstrings_and_comments_may_differ() -> None:
    new = """
def first_items(items, limit=3):
    large_items = [item for item in items if item > limit]
    return large_items
"""
    assert compare(OLD, new) == {("found", "first_items"), ("kept", "large_items")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("limit=3", "limit=4"),
        ("item > limit", "item >= limit"),
        ("return kept", "return items"),
        ("    return kept\n", "    return kept\n    return kept\n"),
        ("items, limit", "limit, items"),
        ('"""Return them."""', '"""Return them."""; kept = None'),
    ],
)
def test_anything_else_is_a_difference(before: str, after: str) -> None:
    assert before in OLD
    with pytest.raises(DifferenceError):
        compare(OLD, OLD.replace(before, after))


def test_two_names_that_become_one_are_a_difference() -> None:
    with pytest.raises(DifferenceError, match="elsewhere"):
        compare("def f(a, b):\n    return a - b\n", "def f(a, a_):\n    return a - a\n")
    with pytest.raises(DifferenceError, match="stands for"):
        compare("x.a = x.b\n", "x.a = x.a\n")


def test_a_name_may_become_another_one_in_each_function() -> None:
    old = "def f():\n    found = 1\n    return found\ndef g():\n    found = 2\n    return found\n"
    new = "def f():\n    one = 1\n    return one\ndef g():\n    two = 2\n    return two\n"
    assert compare(old, new) == {("found", "one"), ("found", "two")}
