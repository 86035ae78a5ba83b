"""Why a unit test usually fails: what the numbers of the query say about rows that are missing or too many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from engine.compile import Model
from engine.compile.settings import OutputMode
from engine.project.section import duration_seconds
from engine.unit_tests.clock import shown
from engine.unit_tests.differences import Pair, Table
from engine.unit_tests.seen import Seen

_TIMED = re.compile(r"window\([^,]+, '(?P<size>[^']+)'")
_PART = re.compile(r"`?(?P<window>\w+)`?\s*\.\s*`?(?P<part>start|end)`?", re.IGNORECASE)


def causes(model: Model, pairs: Sequence[Pair], table: Table, seen: Seen) -> list[str]:
    """Sentences on what may be the cause, the likeliest first; none if the numbers say nothing.

    Args:
        model: under test.
        pairs: expected and actual rows.
        table: their columns.
        seen: the numbers of all steps so far.
    """
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


def _open(model: Model, row: Sequence[str | None], table: Table, seen: Seen) -> str:
    """The window of an expected row is not closed yet."""
    if model.write.output_mode not in {None, OutputMode.APPEND} or seen.state_rows == 0:
        return ""
    for name, part, size in _windows(model):
        if name not in table.names or (at := row[table.names.index(name)]) is None:
            continue
        try:
            begin = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
        end = begin if part == "end" else begin + size * 1000
        if seen.watermark is None or seen.watermark < end:
            return (
                f"the window that begins at {shown(end - size * 1000)} is still open: "
                f"{_mark(seen)}, and the window closes when it passes {shown(end)} "
                "(the step 'flush' closes every window)"
            )
    return ""


def _windows(model: Model) -> Iterator[tuple[str, str, int]]:
    """The columns that hold the start or end of a window, with its size in seconds."""
    for column in model.columns:
        match = _PART.fullmatch(column.sql.strip())
        sql = model.windows.get(match["window"]) if match else None
        size = _TIMED.match(sql) if sql else None
        if match and size:
            yield column.name, match["part"].lower(), duration_seconds(size["size"])


def _held(model: Model, seen: Seen) -> str:
    if not seen.state_rows or not model.stateful:
        return ""
    rows = "a row is" if seen.state_rows == 1 else f"{seen.state_rows:,} rows are"
    return (
        f"{rows} held in state and {_mark(seen)}: what waits for it to pass, a window, a "
        "session or a row without a partner, has not been written (the step 'flush' lets it pass)"
    )


def _mark(seen: Seen) -> str:
    return "there is no watermark yet" if seen.watermark is None else f"the watermark is {shown(seen.watermark)}"


def _late(seen: Seen) -> str:
    return _counted(seen.late, "was dropped as late: it came behind the watermark",
                    "were dropped as late: they came behind the watermark")  # fmt: skip


def _repeats(seen: Seen) -> str:
    return _counted(seen.duplicates, "was dropped as a repeat, by 'dedup'", "were dropped as repeats, by 'dedup'")


def _quarantined(seen: Seen) -> str:
    return _counted(seen.quarantined, "is in the quarantine", "are in the quarantine")


def _dropped(seen: Seen) -> str:
    failed = ", ".join(f"'{name}' ({count:,})" for name, count in seen.failed.items() if count)
    return f"rows failed the expectations {failed}" if failed else ""


def _filtered(model: Model, seen: Seen) -> str:
    if not model.stateful and seen.rows_in > seen.rows_out:
        return f"{seen.rows_in:,} rows came in and {seen.rows_out:,} went out: WHERE or a join leaves out the others"
    return ""


def _counted(number: int, one: str, several: str) -> str:
    if not number:
        return ""
    return f"1 row {one}" if number == 1 else f"{number:,} rows {several}"
