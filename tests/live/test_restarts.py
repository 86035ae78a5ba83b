"""What a process knew is known to the next one: sums, last values, errors, the log, and alerts that are not over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.addresses import web_address
from engine.events import UP_TO_DATE, HeldInState, NodeState, Status
from engine.live.alerts import AlertRules, Alerts
from engine.live.lag import Lag
from engine.live.observer import Observer
from engine.live.open_alerts import OpenAlerts
from engine.live.status import LiveStatus
from engine.live.turn_history import TurnHistory
from tests.live.sequences import BEGIN, ORDERS, batch, started, state, turn
from tests.live.test_alerts import Hook, hook, sent

__all__ = ["hook"]
RULES = AlertRules(lag=60, restarts=5, bad_records=10)


@contextmanager
def process(folder: Path, at: float, *, killed: bool = False) -> Iterator[Observer]:
    """One process after the other; a killed one has written what it knew a moment ago."""
    history = TurnHistory(folder)
    observer = Observer(folder, LiveStatus(restored_nodes=history.stored_nodes), history)
    observer.log.extend(history.lines())
    observer.status.add(started(at=at), at)
    yield observer
    observer.write(observer.status.to_json(at))
    if not killed:
        history.close()


def node(observer: Observer, at: float) -> dict[str, Any]:
    return dict(observer.status.to_json(at)["nodes"][0])


def test_sums_and_last_values_continue(tmp_path: Path) -> None:
    held = (HeldInState("dedupe", "keys of dedup", "", 3, 9),)
    with process(tmp_path, BEGIN, killed=True) as first:
        for event in turn(rows=7, late=2, bad={"shop.orders": 3}, watermark="2026-01-01T00:00:00"):
            first.on_event(replace(event, held=held) if hasattr(event, "held") else event)
        before = node(first, BEGIN + 5)
        lines = list(first.log)
    with process(tmp_path, BEGIN + 60) as second:
        after = node(second, BEGIN + 60)
        assert list(second.log) == lines
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {"since", "watermark_age_seconds", "rows_per_second_1m", "rows_per_second_5m"}
    assert (after["late"], after["bad_records"], after["watermark"]) == (2, {"shop.orders": 3}, "2026-01-01T00:00:00")
    assert after["last_commit"] is not None
    with process(tmp_path, BEGIN + 90) as third:
        third.status.add(batch(number=9, rows_in=1, late=1), BEGIN + 91)
        assert node(third, BEGIN + 91)["late"] == 3


def test_another_target_has_its_own(tmp_path: Path) -> None:
    with process(tmp_path, BEGIN) as first:
        first.on_event(batch(late=4))
    history = TurnHistory(tmp_path)
    status = LiveStatus(restored_nodes=history.stored_nodes)
    status.add(replace(started(), target="prod"), BEGIN)
    assert status.to_json(BEGIN)["nodes"][0]["late"] == 0
    history.close()


def test_a_model_that_failed_fails_until_a_turn_or_a_plan_says_otherwise(tmp_path: Path) -> None:
    with process(tmp_path, BEGIN) as first:
        for event in turn(status=Status.ERROR, message="no broker"):
            first.status.add(event)
    with process(tmp_path, BEGIN + 60) as second:
        assert (node(second, BEGIN + 61)["health"], node(second, BEGIN + 61)["last_error"]) == ("failed", "no broker")
        second.status.add(state(ORDERS, NodeState.IDLE, UP_TO_DATE, BEGIN + 62))
        found = node(second, BEGIN + 62)
        assert (found["health"], found["last_error"], found["past_error"]) == ("healthy", None, "no broker")


def looked(folder: Path, hook: Hook, observer: Observer, *times: float) -> None:
    alerts = Alerts(replace(RULES, url=web_address(hook.url)), folder, OpenAlerts(observer.history.path))
    alerts.load("dev")
    for at in times:
        alerts.check(observer.status.to_json(at))
    alerts.close()


def test_alerts_are_sent_once_over_restarts(tmp_path: Path, hook: Hook) -> None:
    lag = {ORDERS: (Lag("shop.orders", "files", 4, BEGIN - 90),)}
    with process(tmp_path, BEGIN, killed=True) as first:
        first.status.note_lags(lag, BEGIN)
        first.status.add(batch(number=1, rows_in=99, bad_records={"shop.orders": 11}), BEGIN)
        looked(tmp_path, hook, first, BEGIN, BEGIN + 301)
        for event in turn(status=Status.ERROR, message="no broker", at=BEGIN + 302):
            first.status.add(event)
        looked(tmp_path, hook, first, BEGIN + 304)
    assert sent(hook) == [
        ("firing", "lag", "orders"), ("firing", "bad_records", "orders"), ("firing", "stalled", "orders"),
        ("firing", "failed", "orders"), ("resolved", "stalled", "orders"),
    ]  # fmt: skip
    hook.asked.clear()
    for number in range(3):
        with process(tmp_path, BEGIN + 310 + number, killed=True) as later:
            looked(tmp_path, hook, later, BEGIN + 310 + number)
    assert sent(hook) == []
    with process(tmp_path, BEGIN + 330) as last:
        for event in turn(number=2, at=BEGIN + 330):
            last.status.add(event)
        last.status.note_lags({ORDERS: (Lag("shop.orders", "files", None),)}, BEGIN + 331)
        looked(tmp_path, hook, last, BEGIN + 331)
        last.status.note_lags({ORDERS: (Lag("shop.orders", "files", 0),)}, BEGIN + 332)
        looked(tmp_path, hook, last, BEGIN + 332, BEGIN + 902)
    assert sent(hook) == [
        ("resolved", "failed", "orders"), ("resolved", "lag", "orders"), ("resolved", "bad_records", "orders")
    ]  # fmt: skip


def test_a_model_that_was_stalled_is_so_until_it_makes_progress(tmp_path: Path, hook: Hook) -> None:
    unread = {ORDERS: (Lag("shop.orders", "offsets", 4),)}
    with process(tmp_path, BEGIN, killed=True) as first:
        first.status.note_lags(unread, BEGIN)
        looked(tmp_path, hook, first, BEGIN + 301)
        first.history.keep(
            "dev", {ORDERS: first.status.nodes[ORDERS].persistent_record(BEGIN + 301, first.status.stall_rules(""))}
        )
        first.history.flush()
        first.history.keep = lambda *_: None  # type: ignore[method-assign]
    with process(tmp_path, BEGIN + 400) as second:
        looked(tmp_path, hook, second, BEGIN + 401)
        second.status.note_lags(unread, BEGIN + 402)
        looked(tmp_path, hook, second, BEGIN + 403)
        second.status.add(batch(number=1), BEGIN + 404)
        looked(tmp_path, hook, second, BEGIN + 405)
    assert sent(hook) == [("firing", "stalled", "orders"), ("resolved", "stalled", "orders")]


def test_an_alert_that_was_not_sent_before_a_kill_is_sent_by_the_next_process(tmp_path: Path, hook: Hook) -> None:
    url = web_address(hook.url)
    with process(tmp_path, BEGIN, killed=True) as first:
        for event in turn(status=Status.ERROR, message="no broker"):
            first.status.add(event)
        hook.answers = [503] * 9
        alerts = Alerts(replace(RULES, url=url), tmp_path, OpenAlerts(first.history.path))
        alerts.check(first.status.to_json(BEGIN + 3))
        alerts.close()
        assert sent(hook)[0] == ("firing", "failed", "orders")
    ids = {record["id"] for record, _ in hook.got}
    hook.asked.clear()
    hook.answers = []
    with process(tmp_path, BEGIN + 60) as second:
        looked(tmp_path, hook, second, BEGIN + 61)
    assert sent(hook) == [("firing", "failed", "orders")]
    assert {record["id"] for record, _ in hook.got} == ids
    assert OpenAlerts(second.history.path).unsent() == []
