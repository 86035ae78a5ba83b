"""How expected and actual rows are set against each other."""

from __future__ import annotations

import pytest

from engine.unit_tests.likely_causes import Pair, TextTable, difference_lines, pair_rows, same_cell

NAMES = ("id", "total")


def table(*rows: tuple[str | None, ...]) -> TextTable:
    return TextTable(NAMES, rows, frozenset({1}))


@pytest.mark.parametrize(
    ("expected", "actual", "approximate", "equal"),
    [
        ("0.3", "0.30000000000000004", True, True),
        ("0.3", "0.30000000000000004", False, False),
        ("0.3", "0.3001", True, False),
        ("NaN", "NaN", True, True),
        ("Infinity", "Infinity", True, True),
        ("1", None, True, False),
        (None, None, False, True),
        ("1.0", "1", True, True),
        ("a", "b", True, False),
    ],
)
def test_cells(expected: str | None, actual: str | None, approximate: bool, equal: bool) -> None:
    assert same_cell(expected, actual, approximate=approximate) is equal


def test_rows_are_paired_with_the_nearest_and_a_row_counts_once() -> None:
    actual = table(("2", "5.0"), ("1", "1.0"), ("3", "9.0"))
    pairs = pair_rows(table(("1", "1"), ("2", "6"), ("1", "1")), actual, ordered=False)
    assert pairs == [
        Pair(("1", "1"), ("1", "1.0")),
        Pair(("2", "6"), ("2", "5.0")),
        Pair(("1", "1"), None),
        Pair(None, ("3", "9.0")),
    ]
    assert [pair.equal(actual) for pair in pairs] == [True, False, False, False]
    assert difference_lines(pairs, actual) == [
        "  | id | total |",
        "  |----+-------|",
        "  | 1  | 1     |",
        "- | 2  | *6*   |",
        "+ | 2  | *5.0* |",
        "- | 1  | 1     |",
        "+ | 3  | 9.0   |",
    ]


def test_order_counts_only_where_it_is_asked_for() -> None:
    expected, actual = table(("1", None), ("2", None)), table(("2", None), ("1", None))
    assert all(pair.equal(actual) for pair in pair_rows(expected, actual, ordered=False))
    assert not any(pair.equal(actual) for pair in pair_rows(expected, actual, ordered=True))


def test_one_row_on_either_side_stands_for_the_other() -> None:
    assert pair_rows(table(("1", "2")), table(("3", "4")), ordered=False) == [Pair(("1", "2"), ("3", "4"))]


def test_a_long_table_and_a_long_text_are_cut() -> None:
    rows = [(str(number), "x" * 100) for number in range(50)]
    lines = difference_lines([Pair(row, None) for row in rows], table(*rows))
    assert len(lines) == 2 + 40 + 1
    assert lines[-1] == "  ... and 10 more lines"
    assert max(map(len, lines)) < 80
