"""`stalled_after`: of a model, of a target, and where neither has it; in the status, the metrics and the alerts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.api.keep_running.live_project import LiveProject
from engine.cli.main import invoke
from engine.events import NodeState
from engine.live.alerts import AlertRules, Alerts
from engine.live.lag import Lag
from engine.live.metrics import exposition
from engine.live.node_status import StallRule
from engine.live.stall_seconds import stall_rule, stalled_after
from engine.live.status import Clock, LiveStatus
from tests.live.sequences import BEGIN, started, state
from tests.project.small_projects import PROJECT, STREAM, clean, compiled, lines, model

FILES = model(STREAM, name="usual") | model(f"{STREAM}stalled_after: 2 hours", name="slow")
SLOW, USUAL = "model.slow", "model.usual"


@pytest.mark.parametrize(("target", "usual"), [("", 300), ("    stalled_after: 20 minutes\n", 1200)])
def test_a_models_own_wins_over_the_targets(tmp_path: Path, target: str, usual: int) -> None:
    result = compiled(tmp_path, {"project.yml": PROJECT + target, **FILES})
    assert lines(result.manifest.errors) == []
    assert [stalled_after(result, node) for node in (SLOW, USUAL, "tests.model.slow")] == [7200, usual, usual]


def test_folders_have_defaults(tmp_path: Path) -> None:
    project = f"{PROJECT}models: {{+stalled_after: 1 hour}}\n"
    result = compiled(tmp_path, {"project.yml": project, **FILES})
    assert [stalled_after(result, node) for node in (SLOW, USUAL)] == [7200, 3600]


@pytest.mark.parametrize(
    ("project", "header", "expected"),
    [
        ("    stalled_after: soon\n", "", "bad-duration project.yml:6:20 'soon' is not a duration"),
        ("    stalled_after: 0 minutes\n", "", "bad-value project.yml:6:20 'stalled_after' must be greater than zero"),
        ("", "stalled_after: 0 hours\n", "bad-value models/a.sql:3:16 'stalled_after' must be greater than zero"),
        ("", "stalled_after: 600\n", "bad-duration models/a.sql:3:16 '600' is not a duration"),
    ],
)
def test_what_is_no_length_of_time_is_an_error(tmp_path: Path, project: str, header: str, expected: str) -> None:
    result = compiled(tmp_path, {"project.yml": PROJECT + project, **model(STREAM + header)})
    assert lines(result.manifest.errors) == [expected]


def test_status_metrics_and_alerts_count_by_it() -> None:
    status = LiveStatus(stall_rules={SLOW: StallRule(7200.0), USUAL: StallRule(300.0)}.__getitem__)
    status.add(started(SLOW, USUAL), BEGIN)
    lag = (Lag("shop.orders", "files", 3),)
    status.note_lags({SLOW: lag, USUAL: lag}, BEGIN)
    alerts = Alerts(AlertRules(), Path())

    def stalled(at: float) -> list[str]:
        found = status.to_json(at)
        text = exposition(found)
        names = [node["name"] for node in found["nodes"]]
        by_status = [node["name"] for node in found["nodes"] if node["health"] == "stalled"]
        by_metric = [name for name in names if f'headrace_model_stalled{{target="dev",model="{name}"}} 1.0\n' in text]
        by_alert = [name for name, alert, _ in alerts._problems(found) if alert == "stalled"]
        assert by_status == by_metric == by_alert
        return by_status

    assert stalled(BEGIN + 299) == []
    assert stalled(BEGIN + 300) == ["usual"]
    assert stalled(BEGIN + 7199) == ["usual"]
    assert stalled(BEGIN + 7200) == ["slow", "usual"]
    assert [node["stalled_after"] for node in status.to_json(BEGIN)["nodes"]] == [7200, 300]


def test_what_waits_for_its_schedule_or_trigger_is_not_stalled(tmp_path: Path) -> None:
    files = model(f"{STREAM}schedule: 0 * * * *", name="hourly") | model(
        f"{STREAM}trigger: every 20 minutes", name="slow"
    )
    result = compiled(tmp_path, files)
    assert lines(result.manifest.errors) == []
    hour = BEGIN // 3600 * 3600
    hourly, slow = (stall_rule(result, f"model.{name}") for name in ("hourly", "slow"))
    assert [hourly.due_at(hour + minute * 60) - hour for minute in (0, 1, 59)] == [3600, 3600, 3600]
    assert slow.due_at(hour) == hour + 1200
    assert (hourly.on_schedule, slow.on_schedule) == (True, False)
    status = LiveStatus(stall_rules=lambda _: hourly)
    status.add(started("model.hourly", at=hour), hour)
    status.note_lags({"model.hourly": (Lag("shop.orders", "files", 3),)}, hour + 60)
    shown = [status.to_json(hour + seconds)["health"] for seconds in (3599, 3600 + 299, 3600 + 300)]
    assert shown == ["healthy", "healthy", "stalled"]


@pytest.mark.parametrize("slept", [0, 5000])
def test_a_turn_that_its_schedule_has_queued_is_due_whenever_a_poll_noticed_the_input(slept: int) -> None:
    """Input that came a moment before the hour is found a moment after it, when the turn has been queued."""
    hour, now = BEGIN // 3600 * 3600, [0.0, 0.0]
    rule = StallRule(300, lambda at: at // 3600 * 3600 + 3600, on_schedule=True)
    status = LiveStatus(clock=Clock(lambda: hour + now[0], lambda: now[1]), stall_rules=lambda _: rule)

    def health(awake: float, asleep: float = 0.0) -> str:
        now[0], now[1] = now[0] + awake + asleep, now[1] + awake
        return status.to_json()["health"]

    status.add(started("model.hourly", at=hour))
    status.add(state("model.hourly", NodeState.QUEUED, at=hour))
    health(4)
    status.note_lags({"model.hourly": (Lag("shop.orders", "files", 3),)})
    assert [health(96), health(0, slept), health(203), health(1)] == ["healthy", "healthy", "healthy", "stalled"]
    status.add(state("model.hourly", NodeState.IDLE, at=hour))
    assert health(0) == "healthy"


def test_a_schedule_that_the_machine_slept_through_is_due_after_it() -> None:
    hour, now = BEGIN // 3600 * 3600, [-500.0, 0.0]
    rule = StallRule(300, lambda at: at // 3600 * 3600 + 3600, on_schedule=True)
    status = LiveStatus(clock=Clock(lambda: hour + now[0], lambda: now[1]), stall_rules=lambda _: rule)

    def health(awake: float, asleep: float = 0.0) -> str:
        now[0], now[1] = now[0] + awake + asleep, now[1] + awake
        return status.to_json()["health"]

    status.add(started("model.hourly", at=hour - 500))
    status.note_lags({"model.hourly": (Lag("shop.orders", "files", 3),)})
    assert [health(400), health(0, 200)] == ["healthy", "healthy"]
    status.add(state("model.hourly", NodeState.QUEUED, at=hour + 100))
    assert [health(299), health(1)] == ["healthy", "stalled"]


def test_a_turn_that_waits_for_its_trigger_is_queued_and_not_due(tmp_path: Path) -> None:
    result = compiled(tmp_path, model(f"{STREAM}trigger: every 20 minutes", name="slow"))
    status = LiveStatus(stall_rules=lambda node: stall_rule(result, node))
    status.add(started(SLOW), BEGIN)
    status.add(state(SLOW, NodeState.QUEUED), BEGIN)
    status.note_lags({SLOW: (Lag("shop.orders", "files", 3),)}, BEGIN)
    shown = [status.to_json(BEGIN + seconds)["health"] for seconds in (1200 + 299, 1200 + 300)]
    assert shown == ["healthy", "stalled"]


@pytest.mark.slow
def test_start_uses_it_and_what_an_edit_makes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    clean(root, {"project.yml": f"{PROJECT}    stalled_after: 10 minutes\n", **FILES})
    edited = compiled(tmp_path / "edited", {**FILES, **model(f"{STREAM}stalled_after: 3 hours", name="slow")})

    def seconds() -> dict[str, float]:
        assert invoke(["start", "--project-dir", str(root)]) == 0
        found = json.loads((root / "target/live/status.json").read_text())
        return {node["name"]: node["stalled_after"] for node in found["nodes"]}

    def follow(self: LiveProject, *_: object) -> None:
        self.listeners[0](started(SLOW, USUAL))

    def follow_edit(self: LiveProject, *_: object) -> None:
        follow(self)
        self._compiled = edited

    monkeypatch.setattr(LiveProject, "follow", follow)
    assert seconds() == {"slow": 7200, "usual": 600}
    monkeypatch.setattr(LiveProject, "follow", follow_edit)
    assert seconds() == {"slow": 10800, "usual": 300}
