"""The fold of events: it says what a reader of the events would."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from engine import events
from engine.events import Event, HeldInState, NodeState, ProjectReloaded, Status
from engine.live.lag import Lag
from engine.live.node_status import StallRule
from engine.live.status import LiveStatus, healthy
from engine.live.status_record import aged
from tests.live.sequences import BEGIN, ORDERS, batch, started, state, text, turn

BEGIN_TEXT = text(BEGIN)


def folded(*happened: Event, at: float = BEGIN) -> LiveStatus:
    status = LiveStatus({"test.orders_positive": ORDERS}, stall_rules=lambda _: StallRule(300))
    for event in happened:
        status.add(event, at)
    return status


def node(status: LiveStatus, at: float = BEGIN + 10) -> dict:
    return status.to_json(at)["nodes"][0]


def test_sums_state_and_last_values() -> None:
    found = node(folded(started(), *turn(rows=30, late=2, bad={"shop.orders": 1}), *turn(number=2, rows=30)))
    assert (found["rows_in"], found["rows_out"], found["late"], found["bad_records"]) == (60, 60, 2, {"shop.orders": 1})
    assert (found["state"], found["turns"], found["batches"]) == ("idle", 2, 2)
    assert (found["last_commit"], found["snapshot_id"], found["health"]) == (BEGIN, "2", "healthy")


def test_of_bad_records_the_last_reason_of_each_input_is_shown() -> None:
    def bad(**reasons: str) -> dict[str, dict]:
        return {"bad_records": dict.fromkeys(reasons, 1), "bad_reasons": reasons}

    status = folded(started(), batch(**bad(a="one", b="two")), batch(number=1, **bad(a="three")), batch(number=2))
    assert node(status)["bad_reasons"] == {"a": "three", "b": "two"}
    again = LiveStatus(restored_nodes=lambda _: json.loads(json.dumps(status.to_keep()[1])))
    again.add(started(), BEGIN)
    assert node(again)["bad_reasons"] == {"a": "three", "b": "two"}


def test_duplicates_are_counted() -> None:
    status = folded(started(), batch(rows_in=5, duplicates=2), batch(number=1, rows_in=1, duplicates=1))
    assert node(status)["duplicates"] == 3


def test_what_a_query_holds_is_what_its_last_micro_batch_says() -> None:
    def held(count: int) -> tuple[HeldInState, ...]:
        return (HeldInState("dedupe", "keys of dedup", "keys that were read", count, 2048),)

    status = folded(
        started(), batch(rows_in=1, state_rows=3, held=held(3)), batch(number=1, state_rows=2, held=held(2))
    )
    found = node(status)
    assert (found["state_rows"], found["held"]) == (
        2,
        [
            {
                "operator": "dedupe", "meaning": "keys of dedup", "explanation": "keys that were read", "count": 2,
                "memory_bytes": 2048,
            }
        ],
    )  # fmt: skip
    assert json.loads(json.dumps(found)) == found
    assert node(folded(started(), *turn()))["held"] == []


def test_rows_per_second_are_those_of_the_last_minutes() -> None:
    status = folded(started(), *turn(rows=600))
    assert (node(status, BEGIN + 4)["rows_per_second_1m"], node(status, BEGIN + 4)["rows_per_second_5m"]) == (10, 2)
    later = node(status, BEGIN + 120)
    assert (later["rows_per_second_1m"], later["rows_per_second_5m"]) == (0, 2)
    assert node(status, BEGIN + 400)["rows_per_second_5m"] == 0


def test_a_replayed_batch_counts_once() -> None:
    once = batch(number=4, rows_in=5, rows_out=5)
    assert node(folded(started(), once, replace(once, replayed=True)))["rows_in"] == 5


def test_failures_and_restarts_in_a_row() -> None:
    bad = {"status": Status.ERROR, "message": "the broker is away"}
    found = node(folded(started(), *turn(**bad), *turn(number=2, **bad)))
    assert (found["health"], found["failed_turns"], found["restarts"]) == ("failed", 2, 1)
    assert (found["last_error"], found["last_error_at"]) == ("the broker is away", BEGIN + 2)
    found = node(folded(started(), *turn(**bad), *turn(number=2, **bad), *turn(number=3)))
    assert (found["health"], found["restarts"], found["past_error"]) == ("healthy", 2, "the broker is away")


def files(count: int | None, oldest: float | None = None) -> dict[str, tuple[Lag, ...]]:
    return {ORDERS: (Lag("shop.orders", "files", count, oldest),)}


def test_lag_is_the_age_of_the_oldest_unread_input_and_none_if_it_is_not_known() -> None:
    status = folded(started())
    assert node(status)["lag_seconds"] is None
    for number, (count, oldest, seconds) in enumerate(
        [(4, BEGIN - 50, 60.0), (0, None, 0.0), (None, None, None), (3, None, None), (3, BEGIN + 99, 0.0)]
    ):
        status.note_lags(files(count, oldest), BEGIN + number)
        assert node(status)["lag_seconds"] == seconds, number
    both = {ORDERS: (Lag("a", "files", None), Lag("b", "offsets", 1, BEGIN))}
    status.note_lags(both, BEGIN)
    assert node(status)["lag_seconds"] == 10
    aged_node = aged(status.to_json(BEGIN + 10), BEGIN + 30)["nodes"][0]
    assert aged_node["lag_seconds"] == 30


def test_an_error_that_is_over_is_the_past_one() -> None:
    found = node(folded(started(), *turn(status=Status.ERROR, message="no"), *turn(number=2, at=BEGIN + 9)))
    assert [found[key] for key in ("last_error", "last_error_at", "past_error", "past_error_at")] == [
        None, None, "no", BEGIN + 2,
    ]  # fmt: skip


def test_of_two_causes_within_a_minute_the_first_is_named() -> None:
    def failed(number: int, message: str, at: float) -> list[Event]:
        return turn(number=number, status=Status.ERROR, message=message, at=BEGIN + at)

    status = folded(started(), *failed(1, "disk full", 0), *failed(2, "state cannot be written", 50))
    assert (node(status)["last_error"], node(status)["reason"]) == ("disk full", "disk full")
    for event in failed(3, "state cannot be written", 70):
        status.add(event)
    assert node(status)["last_error"] == "state cannot be written"
    for event in (*turn(number=4, at=BEGIN + 80), *failed(5, "no broker", 82)):
        status.add(event)
    assert (node(status)["last_error"], node(status)["past_error"]) == ("no broker", "state cannot be written")


def test_tests_are_no_models() -> None:
    status = folded(started(ORDERS, f"tests.{ORDERS}"), state(ORDERS, NodeState.RUNNING))
    found = status.to_json(BEGIN)
    assert (found["states"], found["healths"]) == ({"running": 1}, {"healthy": 1})
    assert [one["tests_of"] for one in found["nodes"]] == [None, ORDERS]


def test_a_failing_test_is_the_models_until_it_passes() -> None:
    result = events.TestFinished("test.orders_positive", 1, 1, Status.FAIL, 0.1, 3, "3 rows")
    status = folded(started(), result)
    assert node(status)["tests_failing"] == {"test.orders_positive": "3 rows"}
    assert not healthy(status.to_json(BEGIN))
    status.add(replace(result, status=Status.PASS))
    assert healthy(status.to_json(BEGIN))


@pytest.mark.parametrize(
    ("unused", "text"),
    [
        (("model.a",), "the edit is used but for 'a', which continues as it was: error"),
        (("model.a", "model.b"), "the edit is used but for 'a' and 'b', which continue as they were: error"),
    ],
)
def test_an_edit_that_is_used_in_part_is_called_so(unused: tuple[str, ...], text: str) -> None:
    status = folded(started(), ProjectReloaded(("a.sql",), (), "error", BEGIN_TEXT, (ORDERS,), unused))
    assert (status.to_json(BEGIN)["rejected"], healthy(status.to_json(BEGIN))) == (text, False)


def test_a_rejected_edit_is_not_healthy() -> None:
    status = folded(started(), ProjectReloaded(("models/a.sql",), (), "a.sql:3: error", text(BEGIN)))
    assert status.to_json(BEGIN)["rejected"] == "the edited project is not used: a.sql:3: error"
    assert not healthy(status.to_json(BEGIN))


@pytest.mark.slow
@pytest.mark.parametrize("turns", [10, 1000])
def test_memory_does_not_grow_with_turns(turns: int) -> None:
    status = folded(started())
    for number in range(turns):
        for event in turn(number=number, bad={"shop.orders": 1}):
            status.add(event, BEGIN + number)
    found = status.nodes[ORDERS]
    values = [getattr(found, name) for name in found.__slots__]
    assert sum(len(value) for value in values if isinstance(value, dict | list | tuple)) == 1
    assert sys.getsizeof(json.dumps(status.to_json(BEGIN))) < 2500


def test_the_tests_of_a_model_are_called_that() -> None:
    status = folded(started(ORDERS, f"tests.{ORDERS}"))
    assert [item["name"] for item in status.to_json(BEGIN)["nodes"]] == ["orders", "tests of orders"]
