"""Expected and actual rows side by side: which are missing, which are too many, and in which cells they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Row = tuple[str | None, ...]

_NULL = "NULL"
_MARKED = "*{}*"
_LONG = 60
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows as text, with the names of their columns; `approximate` are those of columns that hold floats."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    approximate: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """An expected row and the actual one that stands for it; one of them is missing, or they differ, or are equal."""

    expected: Row | None
    actual: Row | None

    def equal(self, table: TextTable) -> bool:
        if self.expected is None or self.actual is None:
            return False
        return same_row(self.expected, self.actual, table.approximate)


def same(expected: str | None, actual: str | None, *, approximate: bool) -> bool:
    """Whether two cells are equal; floats are as long as a relative difference below 1e-9 parts them."""
    if expected == actual or expected is None or actual is None or not approximate:
        return expected == actual
    try:
        left, right = float(expected), float(actual)
    except ValueError:
        return False
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(left) and math.isnan(right))


def same_row(expected: Row, actual: Row, approximate: frozenset[int]) -> bool:
    cells = enumerate(zip(expected, actual, strict=True))
    return all(same(left, right, approximate=index in approximate) for index, (left, right) in cells)


def paired(expected: TextTable, actual: TextTable, *, ordered: bool) -> list[Pair]:
    """Which actual row stands for which expected one: equal rows first, then those that differ least."""
    if ordered:
        length = max(len(expected.rows), len(actual.rows))
        both = ((_at(expected.rows, i), _at(actual.rows, i)) for i in range(length))
        return [Pair(left, right) for left, right in both]
    left = list(actual.rows)
    pairs: dict[int, Pair] = {}
    for index, row in enumerate(expected.rows):
        found = next((a for a in left if same_row(row, a, actual.approximate)), None)
        if found is not None:
            left.remove(found)
            pairs[index] = Pair(row, found)
    # What is alone on both sides stands for each other, whatever it says.
    alone = len(left) == 1 and len(expected.rows) - len(pairs) == 1
    for index, row in enumerate(expected.rows):
        if index in pairs:
            continue
        near = max(left, key=lambda a: _equal_cells(row, a, actual.approximate), default=None)
        if near is not None and (alone or _equal_cells(row, near, actual.approximate)):
            left.remove(near)
            pairs[index] = Pair(row, near)
        else:
            pairs[index] = Pair(row, None)
    return [*(pairs[index] for index in sorted(pairs)), *(Pair(None, row) for row in left)]


def _at(rows: Sequence[Row], index: int) -> Row | None:
    return rows[index] if index < len(rows) else None


def _equal_cells(left: Row, right: Row, approximate: frozenset[int]) -> int:
    return sum(same(a, b, approximate=i in approximate) for i, (a, b) in enumerate(zip(left, right, strict=True)))


def drawn(pairs: Sequence[Pair], table: TextTable) -> list[str]:
    """The lines of a table: `-` an expected row, `+` an actual one, differing cells between asterisks."""
    lines: list[tuple[str, list[str]]] = []
    for pair in pairs:
        if pair.equal(table):
            lines.append((" ", [_cell(cell) for cell in pair.expected or ()]))
            continue
        marks = _marks(pair, table)
        for sign, row in (("-", pair.expected), ("+", pair.actual)):
            if row is not None:
                cells = zip(row, marks, strict=True)
                lines.append((sign, [_MARKED.format(_cell(c)) if marked else _cell(c) for c, marked in cells]))
    rest = len(lines) - _SHOWN
    lines = lines[:_SHOWN]
    widths = [max(len(name), *(len(row[i]) for _, row in lines)) if lines else len(name)
              for i, name in enumerate(table.names)]  # fmt: skip
    head = " | ".join(name.ljust(width) for name, width in zip(table.names, widths, strict=True))
    rule = "-+-".join("-" * width for width in widths)
    body = [f"{sign} | {' | '.join(c.ljust(w) for c, w in zip(row, widths, strict=True))} |" for sign, row in lines]
    more = [f"  ... and {rest} more lines"] if rest > 0 else []
    return [f"  | {head} |", f"  |-{rule}-|", *body, *more]


def _marks(pair: Pair, table: TextTable) -> list[bool]:
    if pair.expected is None or pair.actual is None:
        return [False] * len(table.names)
    cells = enumerate(zip(pair.expected, pair.actual, strict=True))
    return [not same(left, right, approximate=index in table.approximate) for index, (left, right) in cells]


def _cell(text: str | None) -> str:
    if text is None:
        return _NULL
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[: _LONG - 3]}..."
