"""Alerts reach a real web server and a real program: once each, and once when they are over."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import events
from engine.addresses import web_address
from engine.errors import ProjectError
from engine.events import Event, NodeState, Status
from engine.live.alerts import AlertRules, Alerts, alert_rules
from engine.live.lag import Lag
from engine.live.status import LiveStatus
from tests.lab import wait_until
from tests.live.sequences import BEGIN, ORDERS, batch, started, state, turn
from tests.security.answering import Answering, answer, answering, redirect


class Hook:
    """A webhook that answers with these statuses first, then with 200."""

    def __init__(self, server: Answering) -> None:
        self.answers: list[int] = []
        self.asked, self.url = server.asked, f"{server.url}/hook"
        server.answers["POST /hook"] = lambda handler: answer(handler, self.answers.pop(0) if self.answers else 200)

    @property
    def got(self) -> list[tuple[dict[str, Any], str | None]]:
        return [(json.loads(request.body), request.headers.get("Authorization")) for request in self.asked]


@pytest.fixture
def hook() -> Iterator[Hook]:
    with answering() as server:
        yield Hook(server)


def status_of(*happened: Event, at: float = BEGIN) -> LiveStatus:
    status = LiveStatus()
    for event in (started(), *happened):
        status.add(event, at)
    return status


def sent(hook: Hook) -> list[tuple[str, str, str]]:
    return [(record["event"], record["alert"], record["model"]) for record, _ in hook.got]


def test_an_alert_is_sent_once_and_once_when_it_is_over(hook: Hook, tmp_path: Path) -> None:
    alerts = Alerts(AlertRules(url=web_address(hook.url), token="secret-of-hook"), tmp_path)
    status = status_of(*turn(status=Status.ERROR, message="the broker is away"))
    for _ in range(3):
        alerts.check(status.to_json(BEGIN))
    for event in turn(number=2):
        status.add(event, BEGIN + 60)
    alerts.check(status.to_json(BEGIN + 60))
    alerts.check(status.to_json(BEGIN + 61))
    alerts.close()
    assert sent(hook) == [("firing", "failed", "orders"), ("resolved", "failed", "orders")]
    record, authorization = hook.got[0]
    assert (record["text"], record["target"]) == ("orders: the broker is away", "dev")
    assert authorization == "Bearer secret-of-hook"
    assert alerts.failed == ""


@pytest.mark.slow
def test_lag_stall_and_restarts_have_limits(hook: Hook, tmp_path: Path) -> None:
    alerts = Alerts(AlertRules(url=web_address(hook.url), lag=60, restarts=1), tmp_path)
    status = status_of(state(ORDERS, NodeState.IDLE))
    status.note_lags({ORDERS: (Lag("shop.orders", "files", 2, BEGIN),)}, BEGIN)
    alerts.check(status.to_json(BEGIN + 60))
    alerts.check(status.to_json(BEGIN + 61))
    alerts.check(status.to_json(BEGIN + 301))
    for number in (1, 2):
        for event in turn(number=number, status=Status.ERROR, message="no", at=BEGIN + 302):
            status.add(event, BEGIN + 302)
        alerts.check(status.to_json(BEGIN + 304))
    alerts.close()
    assert sent(hook) == [
        ("firing", "lag", "orders"), ("firing", "stalled", "orders"),
        # A failed model is not reported as stalled, too.
        ("firing", "failed", "orders"), ("resolved", "stalled", "orders"), ("firing", "restarts", "orders"),
    ]  # fmt: skip


def test_a_lag_that_is_not_known_is_no_alert(hook: Hook, tmp_path: Path) -> None:
    alerts = Alerts(AlertRules(url=web_address(hook.url), lag=0), tmp_path)
    status = status_of()
    status.note_lags({ORDERS: (Lag("shop.orders", "", None),)}, BEGIN)
    alerts.check(status.to_json(BEGIN + 9999))
    alerts.close()
    assert sent(hook) == []


def test_a_failing_test_is_one_alert_until_it_passes(hook: Hook, tmp_path: Path) -> None:
    """Neither the turns of its model nor a test that was skipped or cut off end it."""
    alerts = Alerts(AlertRules(url=web_address(hook.url)), tmp_path)
    tests = f"tests.{ORDERS}"
    status = LiveStatus({"test.positive": ORDERS})
    result = events.TestFinished("test.positive", 1, 1, Status.FAIL, 0.1, 3, "3 rows")
    failing = turn(tests, status=Status.FAIL, message="3 rows")
    happened = [
        started(ORDERS, tests), *turn(), result, *failing, *turn(number=2), replace(result, status=Status.SKIPPED),
        replace(result, status=Status.ERROR, message="interrupted"), result, *failing,
    ]  # fmt: skip
    for event in happened:
        status.add(event, BEGIN)
        alerts.check(status.to_json(BEGIN))
    status.add(replace(result, status=Status.PASS), BEGIN)
    for event in turn(tests, number=2):
        status.add(event, BEGIN)
    alerts.check(status.to_json(BEGIN))
    alerts.close()
    assert sent(hook) == [("firing", "failed", "orders"), ("resolved", "failed", "orders")]


@pytest.mark.slow
def test_bad_records_count_within_ten_minutes(hook: Hook, tmp_path: Path) -> None:
    alerts = Alerts(AlertRules(url=web_address(hook.url), bad_records=15), tmp_path)
    status = status_of()
    for minute in range(40):
        bad, reason = 9 if minute == 20 else 1, f"reason of minute {minute}"
        counted = {"bad_records": {"shop.orders": bad}, "bad_reasons": {"shop.orders": reason}}
        status.add(batch(number=minute, rows_in=1, **counted), BEGIN)
        alerts.check(status.to_json(BEGIN + minute * 60))
    alerts.close()
    assert sent(hook) == [("firing", "bad_records", "orders"), ("resolved", "bad_records", "orders")]
    message = "18 bad records from shop.orders within ten minutes, for example: reason of minute 20"
    assert hook.got[0][0]["message"] == message


@pytest.mark.slow
def test_a_webhook_that_is_away_is_tried_again_and_one_that_rejects_is_not(hook: Hook, tmp_path: Path) -> None:
    bad = status_of(*turn(status=Status.ERROR, message="no")).to_json(BEGIN)
    hook.answers = [503, 429]
    alerts = Alerts(AlertRules(url=web_address(hook.url)), tmp_path, waits=(0.01, 0.01, 0.01))
    alerts.check(bad)
    assert wait_until(lambda: len(hook.got) == 3)
    alerts.close()
    assert alerts.failed == ""
    hook.asked.clear()
    hook.answers = [403, 403]
    rejected = Alerts(AlertRules(url=web_address(hook.url)), tmp_path, waits=(0.01, 0.01))
    rejected.check(bad)
    rejected.close()
    assert (len(hook.got), "403" in rejected.failed) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_carries_no_token_elsewhere_and_is_no_delivery(tmp_path: Path, status: int) -> None:
    bad = status_of(*turn(status=Status.ERROR, message="no")).to_json(BEGIN)
    with answering() as elsewhere, answering({"POST /hook": redirect(f"{elsewhere.url}/hook", status)}) as server:
        alerts = Alerts(AlertRules(url=web_address(f"{server.url}/hook"), token="secret-of-hook"), tmp_path, waits=())
        alerts.check(bad)
        alerts.close()
    assert "secret-of-hook" in server.seen()
    assert elsewhere.asked == []
    assert f"rejects alerts with {status}" in alerts.failed


@pytest.mark.slow
def test_a_command_gets_the_alert_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET_HOOK", "the-secret-value")
    code = "import os, sys; open('got', 'a').write(sys.stdin.read() + str('ENGINE_SECRET_HOOK' in os.environ))"
    alerts = Alerts(alert_rules({"command": [sys.executable, "-c", code], "timeout": "20 seconds"}), tmp_path)
    alerts.check(status_of(*turn(status=Status.ERROR, message="no $(touch x)")).to_json(BEGIN))
    alerts.close(20)
    content = (tmp_path / "got").read_text()
    assert json.loads(content.removesuffix("False"))["message"] == "no $(touch x)"
    assert [path.name for path in tmp_path.iterdir()] == ["got"]


def test_rules_of_a_target() -> None:
    rules = alert_rules({"url": "https://h.example", "lag": "10 minutes", "bad_records": 0, "restarts": "5"})
    assert (rules.lag, rules.bad_records, rules.restarts, rules.timeout) == (600, 0, 5, 10)
    assert alert_rules({"command": "notify"}).command == ("notify",)


@pytest.mark.parametrize(
    "settings", [{"url": "file:///etc/passwd"}, {"url": "https://h.example", "lag": "soon"}, {"restarts": "-1"}]
)
def test_what_cannot_be_read_is_an_error(settings: dict[str, str]) -> None:
    with pytest.raises(ProjectError):
        alert_rules(settings)
