"""What is kept of turns, and what bounds it."""

from __future__ import annotations

import sqlite3
import stat
import time
from pathlib import Path

import pytest

from engine.errors import ProjectError
from engine.events import HeldInState, Status
from engine.live import turn_history
from engine.live.turn_history import HistoryLimits, TurnHistory
from tests.live.sequences import BEGIN, ORDERS, batch, turn


def fed(history: TurnHistory, *events: object) -> None:
    for event in events:
        history.add(event)  # type: ignore[arg-type]
    history.flush()


def test_a_turn_is_kept_with_what_it_waited_for_and_what_came_of_it(tmp_path: Path) -> None:
    history = TurnHistory(tmp_path)
    fed(history, *turn(rows=7, late=2, bad={"shop.orders": 3}, watermark="2026-01-01 00:00:00"))
    fed(history, *turn(number=2, at=BEGIN + 60, status=Status.ERROR, message="the broker is away"))
    second, first = turn_history.turns(history.path)
    assert first == {
        "node": ORDERS, "number": 1, "begin": BEGIN, "end": BEGIN + 2, "waited": 0.25,
        "reason": "new input in shop.orders", "status": "success", "rows_in": 7, "rows_out": 7, "late": 2, "bad": 3,
        "batches": 1, "watermark": "2026-01-01 00:00:00", "message": "", "duplicates": 0,
    }  # fmt: skip
    assert (second["status"], second["message"], second["rows_in"]) == ("error", "the broker is away", 0)
    assert [change["state"] for change in turn_history.state_changes(history.path, ORDERS)] == [
        "backing off", "running", "idle", "running",
    ]  # fmt: skip
    (minute,) = turn_history.series(history.path, ORDERS, since=time.time() - 3600, step=60)
    assert (minute["rows_in"], minute["late"], minute["bad"], minute["batches"]) == (7, 2, 3, 1)
    history.close()


def held(count: int, memory: int) -> tuple[HeldInState, ...]:
    return (HeldInState("dedupe", "keys of dedup", "", count, memory),)


def test_what_is_held_is_a_level_of_the_minute_and_not_a_sum(tmp_path: Path) -> None:
    history = TurnHistory(tmp_path)
    for count in (9, 4):
        fed(history, batch(rows_in=1, state_rows=count, held=held(count, count * 1000)))
        fed(history, batch(rows_in=1, state_rows=count - 1, held=held(count - 1, 5)))
    (hours,) = turn_history.series(history.path, ORDERS, since=time.time() - 3600, step=600)
    assert (hours["rows_in"], hours["held"], hours["state_memory"]) == (4, 3, 5)
    history.close()


def test_the_file_is_the_owners_alone_and_no_link(tmp_path: Path) -> None:
    TurnHistory(tmp_path / "target").close()
    assert stat.S_IMODE((tmp_path / "target/live").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "target/live/history.db").stat().st_mode) == 0o600
    other = tmp_path / "other"
    (other / "live").mkdir(parents=True)
    (other / "live/history.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(ProjectError, match="link"):
        TurnHistory(other)
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be one" * 99, None])
def test_a_corrupt_or_older_file_is_replaced_with_a_note(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "live/history.db"
    path.parent.mkdir()
    if content is None:
        with sqlite3.connect(path) as db:
            db.execute("create table turns (id integer)")
    else:
        path.write_bytes(content)
    history = TurnHistory(tmp_path)
    assert "begins again" in history.note
    fed(history, *turn())
    assert len(turn_history.turns(path)) == 1
    history.close()


def test_age_and_number_bound_what_is_kept(tmp_path: Path) -> None:
    history = TurnHistory(tmp_path, HistoryLimits(days=1, turns=20, minutes=5, states=30))
    for number in range(50):
        fed(history, *turn(number=number, at=BEGIN + number * 60))
    history.prune(BEGIN + 50 * 60)
    kept = turn_history.turns(history.path)
    assert [kept[0]["number"], kept[-1]["number"], len(kept)] == [49, 30, 20]
    assert len(turn_history.state_changes(history.path, ORDERS, limit=1000)) == 30
    history.prune(BEGIN + 45 * 60 + 86_400)
    assert [row["number"] for row in turn_history.turns(history.path)] == [49, 48, 47, 46, 45]
    history.close()


@pytest.mark.slow
def test_what_cannot_be_written_stays_for_the_next_time(tmp_path: Path) -> None:
    history = TurnHistory(tmp_path)
    with sqlite3.connect(history.path, isolation_level=None) as other:
        other.execute("begin immediate")
        fed(history, *turn())
        assert "cannot be written" in history.note
        assert turn_history.turns(history.path) == []
        other.execute("rollback")
    history.flush()
    assert len(turn_history.turns(history.path)) == 1
    history.close()
