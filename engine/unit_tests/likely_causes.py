"""Why a unit test usually fails: what the numbers of the query say about rows that are missing or too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode
from engine.times import duration_seconds
from engine.unit_tests.differences import Pair, TextTable
from engine.unit_tests.fixed_clock import shown
from engine.unit_tests.step_metrics import StepMetrics


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
