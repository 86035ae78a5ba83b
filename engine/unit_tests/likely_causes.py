"""Why a unit test usually fails: what the numbers of the query say about rows that are missing or too many.

Expected and actual rows side by side: which are missing, which are too many, and in which cells they differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode
from engine.times import duration_seconds
from engine.unit_tests.fixed_clock import shown
from engine.unit_tests.step_metrics import StepMetrics

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


def causes(model: Model, pairs: Sequence[Pair], table: TextTable, seen: StepMetrics) -> list[str]:
    """Return sentences on what may be the cause, the likeliest first; none if the numbers say nothing."""
    missing = [p.expected for p in pairs if p.expected is not None and not p.equal(table)]
    found = []
    if missing:
        found += [_open(model, row, table, seen) for row in missing]
        found += [_late(seen), _repeats(seen), _quarantined(seen), _dropped(seen)]
        if not any(found):
            found += [_held(model, seen), _filtered(model, seen)]
    elif seen.late or seen.duplicates:
        found += [_late(seen), _repeats(seen)]
    return list(dict.fromkeys(text for text in found if text))


def late_causes(model: Model, wanted: int, got: int, seen: StepMetrics) -> list[str]:
    """Return sentences on why another number of rows was late than expected; none if the cause is unknown."""
    if not model.stateful:
        return ["the query keeps no state: only windows, dedup and joins drop late rows"]
    behind = [(began, at) for began, at in seen.times if began is not None and at < began]
    if sum(item.watermark is not None for item in model.inputs if item.stream) != 1:
        return ["with several watermarks the lowest one applies to all rows"]
    if got < wanted:
        return _too_few_late(model, behind, seen)
    return [_behind(*behind[0]), *([_GROUPS] if any(_windows(model)) else [])] if behind else []


_GROUPS = "for a window Spark counts late groups of each micro-batch, not rows"


def _behind(began: int, earliest: int) -> str:
    return f"its micro-batch began with the watermark {shown(began)}, and the earliest event time was {shown(earliest)}"


def _too_few_late(model: Model, behind: Sequence[tuple[int, int]], seen: StepMetrics) -> list[str]:
    if not behind:
        moves = "the watermark advances only after a micro-batch: a row is compared with the rows of earlier steps"
        if not seen.times:
            return []
        began, earliest = max(seen.times, key=lambda times: times[0] or 0)
        if began is None:
            return [f"there was no watermark when the step began; {moves}"]
        return [f"no row arrived behind the watermark: {_behind(began, earliest)}; {moves}"]
    began, earliest = behind[0]
    ends = [size for _, _, size in _windows(model)]
    if ends and earliest - earliest % ends[0] + ends[0] > began:
        return [
            (
                f"{_behind(began, earliest)}, but its window was still open: a row is late only after its window "
                "has closed"
            )
        ]
    return [_behind(began, earliest), *([_GROUPS] if ends else [])]


def _open(model: Model, row: Sequence[str | None], table: TextTable, seen: StepMetrics) -> str:
    if model.write.output_mode not in {None, OutputMode.APPEND} or seen.state_rows == 0:
        return ""
    for name, part, size in _windows(model):
        if name not in table.names or (at := row[table.names.index(name)]) is None:
            continue
        try:
            begin = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
        end = begin if part == "end" else begin + size
        if seen.watermark is None or seen.watermark < end:
            return (
                f"the window that begins at {shown(end - size)} is still open: "
                f"{_mark(seen)}, and the window closes when it passes {shown(end)} "
                "(the step 'flush' closes every window)"
            )
    return ""


def _windows(model: Model) -> Iterator[tuple[str, str, int]]:
    """The columns that hold the start or end of a window, with its size in milliseconds."""
    for column in model.columns:
        name, _, part = column.window.partition(".")
        window = model.windows.get(name)
        if window is not None and window.kind != "session":
            yield column.name, part, round(duration_seconds(window.size) * 1000)


def _held(model: Model, seen: StepMetrics) -> str:
    if not seen.state_rows or not model.stateful:
        return ""
    rows = "a row is" if seen.state_rows == 1 else f"{seen.state_rows:,} rows are"
    if seen.flushed:
        return (
            f"{rows} still in state after the step 'flush': nothing in the query limits how long rows wait for others"
        )
    return (
        f"{rows} in state and {_mark(seen)}: windows, sessions and unmatched rows are written when the watermark "
        "passes them (add the step 'flush')"
    )


def _mark(seen: StepMetrics) -> str:
    return "there is no watermark yet" if seen.watermark is None else f"the watermark is {shown(seen.watermark)}"


def _late(seen: StepMetrics) -> str:
    return _counted(seen.late, "was dropped as late: it arrived behind the watermark",
                    "were dropped as late: they arrived behind the watermark")  # fmt: skip


def _repeats(seen: StepMetrics) -> str:
    return _counted(seen.duplicates, "was dropped as a duplicate, by 'dedup'", "were dropped as duplicates, by 'dedup'")


def _quarantined(seen: StepMetrics) -> str:
    return _counted(seen.quarantined, "is in the quarantine", "are in the quarantine")


def _dropped(seen: StepMetrics) -> str:
    failed = ", ".join(f"'{name}' ({count:,})" for name, count in seen.failed_checks.items() if count)
    return f"rows failed the expectations {failed}" if failed else ""


def _filtered(model: Model, seen: StepMetrics) -> str:
    if not model.stateful and seen.rows_in > seen.rows_out:
        return f"{seen.rows_in:,} rows came in and {seen.rows_out:,} went out: WHERE or a join leaves out the others"
    return ""


def _counted(number: int, one: str, several: str) -> str:
    if not number:
        return ""
    return f"1 row {one}" if number == 1 else f"{number:,} rows {several}"
