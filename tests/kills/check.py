"""The tables after the kills: those of an undisturbed build, and where rows are late those that Spark's rule gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from tests.example import golden
from tests.kills.project import LAST, TABLES, WITH_LATE_ROWS, Example, copy_landed
from tests.lab import Lab


def differences(example: Example, other: Lab, build: Callable[[Lab], object]) -> list[str]:
    """How the tables differ from those of one build over the same files; which rows are late is decided apart.

    Args:
        example: the project whose builds were killed; it is built to its end now.
        other: where to build it in one go.
        build: builds a project.
    """
    # What a query did not write because it was killed before its micro-batch without rows, or because one of two inputs
    # held the watermark, it writes when both have rows again.
    assert example.land(LAST, left=0) == LAST
    build(example.lab)
    copy_landed(example, other)
    build(other)
    found = []
    for name in TABLES:
        ours, theirs = _rows(example.lab, name), _rows(other, name)
        if ours != theirs:
            more, less = ours - theirs, theirs - ours
            found.append(f"{name}: {more.total()} rows too many, {less.total()} missing; {[*more][:2]} {[*less][:2]}")
    return found + _hours(example) + _written_twice(example.lab)


def _rows(lab: Lab, name: str) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in lab.rows(name))


def _hours(example: Example) -> list[str]:
    """Late rows depend on where micro-batches end: a kill before the one without rows leaves that one out."""
    example.note_batches()
    replay = golden.Replay(timedelta(minutes=30), keep_unique=lambda row: row["type"] == "flight.departed")
    for files in example.batches():
        replay.batch([row for path in files for row in golden.read_file(path)])
    rows = example.lab.rows("hours")
    found = Counter((r["window_start"], r["origin"], r["departures"], round(r["mean_delay"], 6)) for r in rows)
    wanted = Counter((r["window_start"], r["origin"], r["count"], round(r["mean"], 6)) for r in replay.rows)
    if found == wanted:
        return []
    more, less = found - wanted, wanted - found
    return [f"hours: {more.total()} too many, {less.total()} missing; {[*more][:3]} {[*less][:3]}"]


def _written_twice(lab: Lab) -> list[str]:
    """Windows that are in a table more than once."""
    found = []
    for name, time in zip(WITH_LATE_ROWS, ("window_start", "window_start", "ended_at"), strict=True):
        counts = Counter((row[time], row["origin"]) for row in lab.rows(name))
        twice = [key for key, count in counts.items() if count > 1]
        found += [f"{name}: windows written twice: {twice[:3]}"] if twice else []
    return found
