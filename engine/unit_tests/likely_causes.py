"""Likely causes of a failing unit test, and its expected and actual rows side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode
from engine.times import duration_seconds
from engine.unit_tests.fixed_clock import mark_text
from engine.unit_tests.step_metrics import StepMetrics

Row = tuple[str | None, ...]

_NULL = "NULL"
_MARKED = "*{}*"
_LONG = 60
_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows as text with the names of their columns; `approximate` are the columns that hold floats."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    approximate: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """An expected row and the actual row matched with it; either may be missing."""

    expected: Row | None
    actual: Row | None

    def equal(self, table: TextTable) -> bool:
        if self.expected is None or self.actual is None:
            return False
        return same_row(self.expected, self.actual, table.approximate)


def same_cell(expected: str | None, actual: str | None, *, approximate: bool) -> bool:
    """Return whether two cells are equal; floats are up to a relative difference of 1e-9."""
    if expected == actual or expected is None or actual is None or not approximate:
        return expected == actual
    try:
        unpaired, right = float(expected), float(actual)
    except ValueError:
        return False
    return math.isclose(unpaired, right, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(unpaired) and math.isnan(right))


def same_row(expected: Row, actual: Row, approximate: frozenset[int]) -> bool:
    cells = enumerate(zip(expected, actual, strict=True))
    return all(same_cell(unpaired, right, approximate=index in approximate) for index, (unpaired, right) in cells)


def pair_rows(expected: TextTable, actual: TextTable, *, ordered: bool) -> list[Pair]:
    """Match actual rows with expected ones: equal rows first, then those that differ least."""
    if ordered:
        length = max(len(expected.rows), len(actual.rows))
        row_pairs = ((_at(expected.rows, i), _at(actual.rows, i)) for i in range(length))
        return [Pair(unpaired, right) for unpaired, right in row_pairs]
    unpaired = list(actual.rows)
    pairs: dict[int, Pair] = {}
    for index, row in enumerate(expected.rows):
        likely = next((a for a in unpaired if same_row(row, a, actual.approximate)), None)
        if likely is not None:
            unpaired.remove(likely)
            pairs[index] = Pair(row, likely)
    # What is alone on both sides stands for each other, whatever it says.
    alone = len(unpaired) == 1 and len(expected.rows) - len(pairs) == 1
    for index, row in enumerate(expected.rows):
        if index in pairs:
            continue
        nearest = max(unpaired, key=lambda a: _equal_cells(row, a, actual.approximate), default=None)
        if nearest is not None and (alone or _equal_cells(row, nearest, actual.approximate)):
            unpaired.remove(nearest)
            pairs[index] = Pair(row, nearest)
        else:
            pairs[index] = Pair(row, None)
    return [*(pairs[index] for index in sorted(pairs)), *(Pair(None, row) for row in unpaired)]


def _at(rows: Sequence[Row], index: int) -> Row | None:
    return rows[index] if index < len(rows) else None


def _equal_cells(unpaired: Row, right: Row, approximate: frozenset[int]) -> int:
    return sum(
        same_cell(a, b, approximate=i in approximate) for i, (a, b) in enumerate(zip(unpaired, right, strict=True))
    )


def difference_lines(pairs: Sequence[Pair], table: TextTable) -> list[str]:
    """Render a table: `-` an expected row, `+` an actual one, differing cells between asterisks."""
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
    omitted = len(lines) - _MOST_LINES
    lines = lines[:_MOST_LINES]
    widths = [max(len(name), *(len(row[i]) for _, row in lines)) if lines else len(name)
              for i, name in enumerate(table.names)]  # fmt: skip
    head = " | ".join(name.ljust(width) for name, width in zip(table.names, widths, strict=True))
    rule = "-+-".join("-" * width for width in widths)
    body = [f"{sign} | {' | '.join(c.ljust(w) for c, w in zip(row, widths, strict=True))} |" for sign, row in lines]
    omitted_line = [f"  ... and {omitted} more lines"] if omitted > 0 else []
    return [f"  | {head} |", f"  |-{rule}-|", *body, *omitted_line]


def _marks(pair: Pair, table: TextTable) -> list[bool]:
    if pair.expected is None or pair.actual is None:
        return [False] * len(table.names)
    cells = enumerate(zip(pair.expected, pair.actual, strict=True))
    return [
        not same_cell(unpaired, right, approximate=index in table.approximate) for index, (unpaired, right) in cells
    ]


def _cell(text: str | None) -> str:
    if text is None:
        return _NULL
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[: _LONG - 3]}..."


def causes(model: Model, pairs: Sequence[Pair], table: TextTable, metrics: StepMetrics) -> list[str]:
    """Return sentences on likely causes, the likeliest first; none if the numbers reveal nothing."""
    missing = [p.expected for p in pairs if p.expected is not None and not p.equal(table)]
    likely = []
    if missing:
        likely += [_open_window(model, row, table, metrics) for row in missing]
        likely += [
            _late_rows(metrics),
            _duplicate_rows(metrics),
            _quarantined_rows(metrics),
            _failed_expectations(metrics),
        ]
        if not any(likely):
            likely += [_rows_in_state(model, metrics), _filtered_rows(model, metrics)]
    elif metrics.late or metrics.duplicates:
        likely += [_late_rows(metrics), _duplicate_rows(metrics)]
    return list(dict.fromkeys(text for text in likely if text))


def late_causes(model: Model, expected_count: int, actual_count: int, metrics: StepMetrics) -> list[str]:
    """Return sentences on why another number of rows was late than expected; none if the cause is unknown."""
    if not model.stateful:
        return ["the query keeps no state: only windows, dedup and joins drop late rows"]
    late_times = [
        (watermark_at_start, at)
        for watermark_at_start, at in metrics.times
        if watermark_at_start is not None and at < watermark_at_start
    ]
    if sum(item.watermark is not None for item in model.inputs if item.stream) != 1:
        return ["with several watermarks the lowest one applies to all rows"]
    if actual_count < expected_count:
        return _too_few_late(model, late_times, metrics)
    return [_late_text(*late_times[0]), *([_GROUPS] if any(_windows(model)) else [])] if late_times else []


_GROUPS = "for a window Spark counts late groups of each micro-batch, not rows"


def _late_text(watermark_at_start: int, earliest: int) -> str:
    begin, earliest_text = mark_text(watermark_at_start), mark_text(earliest)
    return f"its micro-batch began with the watermark {begin}, and the earliest event time was {earliest_text}"


def _too_few_late(model: Model, late_times: Sequence[tuple[int, int]], metrics: StepMetrics) -> list[str]:
    if not late_times:
        moves = "the watermark advances only after a micro-batch: a row is compared with the rows of earlier steps"
        if not metrics.times:
            return []
        watermark_at_start, earliest = max(metrics.times, key=lambda times: times[0] or 0)
        if watermark_at_start is None:
            return [f"there was no watermark when the step began; {moves}"]
        return [f"no row arrived behind the watermark: {_late_text(watermark_at_start, earliest)}; {moves}"]
    watermark_at_start, earliest = late_times[0]
    ends = [size for _, _, size in _windows(model)]
    if ends and earliest - earliest % ends[0] + ends[0] > watermark_at_start:
        return [
            (
                f"{_late_text(watermark_at_start, earliest)}, but its window was still open: a row is late only after "
                "its window has closed"
            )
        ]
    return [_late_text(watermark_at_start, earliest), *([_GROUPS] if ends else [])]


def _open_window(model: Model, row: Sequence[str | None], table: TextTable, metrics: StepMetrics) -> str:
    if model.write.output_mode not in {None, OutputMode.APPEND} or metrics.state_rows == 0:
        return ""
    for name, part, size in _windows(model):
        if name not in table.names or (at := row[table.names.index(name)]) is None:
            continue
        try:
            begin = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
        end = begin if part == "end" else begin + size
        if metrics.watermark is None or metrics.watermark < end:
            return (
                f"the window that begins at {mark_text(end - size)} is still open: "
                f"{_watermark_text(metrics)}, and the window closes when it passes {mark_text(end)} "
                "(the step 'flush' closes every window)"
            )
    return ""


def _windows(model: Model) -> Iterator[tuple[str, str, int]]:
    """Yield the columns that hold the start or end of a window, with its size in milliseconds."""
    for column in model.columns:
        name, _, part = column.window.partition(".")
        window = model.windows.get(name)
        if window is not None and window.kind != "session":
            yield column.name, part, round(duration_seconds(window.size) * 1000)


def _rows_in_state(model: Model, metrics: StepMetrics) -> str:
    if not metrics.state_rows or not model.stateful:
        return ""
    rows = "a row is" if metrics.state_rows == 1 else f"{metrics.state_rows:,} rows are"
    if metrics.flushed:
        return (
            f"{rows} still in state after the step 'flush': nothing in the query limits how long rows wait for others"
        )
    return (
        f"{rows} in state and {_watermark_text(metrics)}: windows, sessions and unmatched rows are written when the "
        "watermark passes them (add the step 'flush')"
    )


def _watermark_text(metrics: StepMetrics) -> str:
    return (
        "there is no watermark yet" if metrics.watermark is None else f"the watermark is {mark_text(metrics.watermark)}"
    )


def _late_rows(metrics: StepMetrics) -> str:
    return _count_text(metrics.late, "was dropped as late: it arrived behind the watermark",
                    "were dropped as late: they arrived behind the watermark")  # fmt: skip


def _duplicate_rows(metrics: StepMetrics) -> str:
    return _count_text(
        metrics.duplicates, "was dropped as a duplicate, by 'dedup'", "were dropped as duplicates, by 'dedup'"
    )


def _quarantined_rows(metrics: StepMetrics) -> str:
    return _count_text(metrics.quarantined, "is in the quarantine", "are in the quarantine")


def _failed_expectations(metrics: StepMetrics) -> str:
    failed = ", ".join(f"'{name}' ({count:,})" for name, count in metrics.failed_checks.items() if count)
    return f"rows failed the expectations {failed}" if failed else ""


def _filtered_rows(model: Model, metrics: StepMetrics) -> str:
    if not model.stateful and metrics.rows_in > metrics.rows_out:
        return (
            f"{metrics.rows_in:,} rows came in and {metrics.rows_out:,} went out: WHERE or a join leaves out the others"
        )
    return ""


def _count_text(number: int, singular: str, plural: str) -> str:
    if not number:
        return ""
    return f"1 row {singular}" if number == 1 else f"{number:,} rows {plural}"
