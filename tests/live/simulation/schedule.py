"""A random schedule, and the comparison of all that is shown with the truth, after each step."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from threading import Event as Ended
from typing import Any
from unittest.mock import patch

from engine.api.keep_running.live_edits import ProjectEdit
from engine.errors import Diagnostic
from engine.events import Event
from engine.live import live_server, status_file
from engine.live.alerts import AlertRules, Alerts
from engine.live.lag import LagReader
from engine.live.metrics import exposition
from engine.live.observer import Observer
from engine.live.open_alerts import Key, OpenAlert, OpenAlerts
from engine.live.status import Clock, LiveStatus
from engine.live.turn_history import TurnHistory
from tests.live.simulation.truth import BAD, LAG, RESTARTS
from tests.live.simulation.world import NODES, TEST, A, B, C, D, Killed, World

SECONDS = 3600
RULES = AlertRules(lag=LAG, bad_records=BAD, restarts=RESTARTS)
COUNTERS = {
    "headrace_model_rows_read_total": "rows_in", "headrace_model_rows_written_total": "rows_out",
    "headrace_model_late_rows_total": "late", "headrace_model_batches_total": "batches",
    "headrace_model_turns_total": "turns", "headrace_model_failed_turns_total": "failed",
}  # fmt: skip


class Messages:
    """The store of alerts, with what it was given to send."""

    def __init__(self, store: OpenAlerts, sent: list[dict[str, Any]]) -> None:
        self.load = store.load
        self._save, self._sent = store.save, sent

    def save(
        self, target: str, alerts: Mapping[Key, OpenAlert], counts: Mapping[str, Any], messages: Iterable[Any]
    ) -> None:
        given = list(messages)
        self._save(target, alerts, counts, given)
        self._sent += given

    def unsent(self) -> list[dict[str, Any]]:
        return []


class Play:
    """The processes of a schedule."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.world = World(seed, folder)
        self.folder = folder
        self.checks = 0
        self.sent: list[dict[str, Any]] = []
        self.polled = 0
        self.passed = b""  # the truth of the last pass: what a kill leaves
        self.observer: Observer
        self.alerts: Alerts
        self.page: dict[str, Any] = {}

    def process(self) -> None:
        """Run one process until it is stopped or killed."""
        world, draw = self.world, self.world.random
        history = TurnHistory(self.folder)
        clock = Clock(lambda: float(world.now), lambda: float(world.awake))
        status = LiveStatus({TEST: A}, clock=clock, restored_nodes=history.stored_nodes, stall_rules=world.rule)
        self.observer = Observer(self.folder, status, history)
        self.alerts = Alerts(RULES, self.folder, Messages(OpenAlerts(history.path), self.sent))  # type: ignore[arg-type]
        self.page, self.polled = {}, 0
        self._answers = live_server._LivePages(self.observer, Ended())
        live = world.new_process()
        world.truth.rejected = None
        self.alerts.load("dev")
        live.listeners = (self.hear,)
        world.settled = self.settle
        self.plan_process(killed=draw.random() < 0.6)
        with world.played(), suppress(Killed):
            live.follow(world.compiled(), list(world.nodes))
        if live.listeners:
            self.observer.write(self.observer.status.to_json())
        history._connection.close()

    def hear(self, event: Event) -> None:
        if type(event).__name__ == "LiveStarted":
            self.first_plan()
        self.observer.on_event(event)

    def first_plan(self) -> None:
        """What failed before and has nothing to do any more is over."""
        for model in self.world.truth.models.values():
            if not model.unread and not model.needs_edit:
                model.good()

    def plan_process(self, *, killed: bool) -> None:
        """Draw what happens in the life of a process."""
        world, draw = self.world, self.world.random
        begin, length = world.now, draw.randint(300, SECONDS // 2)
        for source in ("source.s1", "source.s2"):
            at = begin + draw.randint(0, 60)
            while at < begin + length:
                if draw.random() < 0.1:
                    at += draw.randint(300, 1500)  # a silence
                world.at(at, lambda source=source: world.arrive(source, draw.randint(1, 9)))
                at += draw.choice((1, 5, 20, 90))
        for _ in range(draw.randint(1, 8)):
            at = begin + draw.randint(1, length)
            world.at(at, draw.choice((self.pause, self.edit, self.sleep, self.storm, self.tests)))
        # A turn that ended in the same moment has been reported.
        world.at(begin + length, lambda: world.at(world.now, self.kill if killed else self.stop))

    def pause(self) -> None:
        world, node = self.world, self.world.random.choice((A, B, C, D))
        world.live.pause([node])
        world.at(world.now + world.random.randint(10, 900), lambda: world.live.resume([node]))

    def sleep(self) -> None:
        self.world.pass_(self.world.random.randint(60, 4000), asleep=True)

    def storm(self) -> None:
        self.world.weather = self.world.random.choice((0.5, 1.0))
        self.world.at(self.world.now + self.world.random.randint(20, 600), self.calm, of_process=False)

    def calm(self) -> None:
        self.world.weather = 0.0

    def tests(self) -> None:
        self.world.tests_fail = not self.world.tests_fail

    def edit(self) -> None:
        """An edit that heals, one that is rejected, one of which a part is used, one that removes or adds a model."""
        world, kind = self.world, self.world.random.randrange(4)

        def used() -> ProjectEdit:
            error = Diagnostic("bad-value", "line 3 is wrong")
            if kind == 1:
                world.truth.rejected = "the edited project is not used: line 3 is wrong"
                return ProjectEdit((error,))
            if kind == 3 and (B in world.nodes or not world.truth.models[B].running):
                world.nodes = {name: node for name, node in NODES.items() if name != B or B not in world.nodes}
            changed = [name for name in world.nodes if name in world.truth.models]
            healed = [name for name in changed if world.truth.models[name].needs_edit and (kind != 2 or name != A)]
            for name in healed:
                world.truth.models[name].needs_edit = False
            world.truth.rejected = None
            if kind == 2:
                world.truth.rejected = "the edit is used but for 'a', which continues as it was: line 3 is wrong"
            rejected, unused = ((error,), (A,)) if kind == 2 else ((), ())
            return ProjectEdit(rejected, world.compiled(), tuple(world.nodes), tuple(healed), unused)

        world.edit = used

    def stop(self) -> None:
        self.world.live._inbox.put(lambda: self.world.live.stop("the schedule ends"))

    def kill(self) -> None:
        self.world.live.listeners = ()
        self.world.truth.models = pickle.loads(self.passed)
        raise Killed

    def was_stalled(self, name: str) -> bool:
        """Whether a model was stalled when the process ended; where the truth is not certain, as the product has it."""
        world = self.world
        stalled = world.truth.models[name].stalled(expected=name in world.nodes and world.expected(name))
        if stalled is not None:
            return stalled
        with closing(sqlite3.connect(self.folder / "live/history.db")) as db:
            (record,) = db.execute("select record from nodes where node = ?", (name,)).fetchone()
        return bool(json.loads(record)["stalled"])

    # The pass of each second, and the comparison.

    def settle(self) -> None:
        world = self.world
        if world.now - self.polled >= 5:
            self.polled = world.now
            self.observer.status.note_lags(LagReader().lags(world.live.plan_now(), None))  # type: ignore[arg-type]
            for model in (world.truth.models[name] for name in world.nodes if name in world.truth.models):
                model.polled = (len(model.unread), min(model.unread, default=None))
                model.stalled_before = model.stalled_before and bool(model.unread)
        status = self.observer.status.to_json()
        self.observer.history.keep(*self.observer.status.to_keep())
        self.observer.history.flush()
        self.alerts.check(status)
        self.compare(status)
        self.passed = pickle.dumps(world.truth.models)

    def compare(self, status: Any) -> None:
        self.checks += 1
        world = self.world
        assert self.alerts.failed == "", self.alerts.failed
        self._follow_page()
        metrics = samples(exposition(status)) if self.checks % 4 == 0 else None
        if self.checks % 40 == 0:
            status_file.write(self.folder, status)
            assert status_file.read(self.folder) == json.loads(json.dumps(status))
        page = {node["node"]: node for node in self.page["nodes"].values()}
        self.same("nodes", set(world.nodes), {node["node"] for node in status["nodes"]}, set(page))
        self.same("rejected", world.truth.rejected, status["rejected"], self.page["rejected"])
        for node in status["nodes"]:
            if node["tests_of"]:
                self.same(f"health of {node['name']}", "healthy", node["health"])
                continue
            for shown in (node, page[node["node"]]):
                self._node(shown)
            if metrics is not None:
                self._metrics(node["node"], metrics)
        self._alerts()

    def _node(self, node: Mapping[str, Any]) -> None:
        name, model = node["node"], self.world.truth.models[node["node"]]
        what = f"{name} at {self.world.now}"
        for key in ("rows_in", "rows_out", "late", "batches", "turns"):
            self.same(f"{key} of {what}", model.sums[key], node[key])
        self.same(f"bad records of {what}", model.sums["bad"], sum(node["bad_records"].values()))
        self.same(f"bad reasons of {what}", {"input": model.reason} if model.reason else {}, node["bad_reasons"])
        self.same(f"failed turns of {what}", model.sums["failed"], node["failed_turns"])
        self.same(f"state of {what}", self.world.live.queue.entries[name].state.value, node["state"])
        self.same(f"running of {what}", model.running, node["state"] == "running")
        self.same(f"last commit of {what}", model.last_commit, node["last_commit"])
        self.same(f"error of {what}", model.error, node["last_error"])
        self.same(f"past error of {what}", model.past, node["past_error"])
        self.same(f"failing tests of {what}", model.tests, node["tests_failing"])
        expected = self.world.expected(name)
        if (health := self.world.truth.health(name, expected=expected)) is not None:
            self.same(f"health of {what} (idle for {model.idle} s)", health, node["health"])
        counts = [lag["count"] for lag in node["lag"]]
        self.same(f"lag of {what}", [] if model.polled is None else [model.polled[0]], counts)

    def _metrics(self, name: str, metrics: Mapping[tuple[str, str], float]) -> None:
        model, short = self.world.truth.models[name], name.partition(".")[2]
        for metric, key in COUNTERS.items():
            self.same(f"{metric} of {name}", float(model.sums[key]), metrics[metric, short])
        lag = metrics.get(("headrace_model_lag_seconds", short))
        self.same(f"lag in seconds of {name} at {self.world.now}", model.lag_seconds(self.world.now), lag)
        health = self.world.truth.health(name, expected=self.world.expected(name))
        if health is not None:
            self.same(f"healthy of {name}", float(health == "healthy"), metrics["headrace_model_healthy", short])

    def _alerts(self) -> None:
        """Each alert is open or not as the truth says, and was sent and resolved in turn."""
        is_open: dict[tuple[str, str], bool] = {}
        for message in self.sent:
            key = message["model"], message["alert"]
            now = message["event"] == "firing"
            assert is_open.get(key, False) is not now, f"{key} is {message['event']} twice at {message['at']}"
            is_open[key] = now
            if message["alert"] == "bad_records":
                assert "from input within ten minutes, for example: reason " in message["message"], message
        for name in self.world.truth.models:
            short = name.partition(".")[2]
            if name not in self.world.nodes:
                wanted: dict[str, bool | None] = dict.fromkeys(("failed", "stalled", "lag", "bad_records"), False)
            else:
                wanted = self.world.truth.alerts(name, self.world.now, expected=self.world.expected(name))
            for alert, value in wanted.items():
                if value is not None:
                    self.same(f"alert {alert} of {name} at {self.world.now}", value, is_open.get((short, alert), False))
        tests = {key: value for key, value in is_open.items() if key[0].startswith("tests")}
        self.same("alerts of tests", {}, tests)

    def _follow_page(self) -> None:
        """Take what the page gets, as its script does: all nodes first, then those that changed."""
        if not self.page:
            self._events = self._answers._events()
        record = json.loads(next(self._events).decode().removeprefix("data: "))
        nodes = {} if not self.page else self.page["nodes"]
        for gone in record["gone"]:
            nodes.pop(gone, None)
        for node in record["nodes"]:
            nodes[node["node"]] = node
        self.page = {**record, "nodes": nodes}

    def same(self, what: str, expected: Any, *shown: Any) -> None:
        for one in shown:
            assert one == expected, f"{what}: {one!r} in place of {expected!r}"


def samples(text: str) -> dict[tuple[str, str], float]:
    """The metrics that have no other label than target and model."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        labels, _, number = rest.rpartition("} ")
        if not line.startswith("#") and labels.count("=") == 2:
            found[name, labels.rpartition('model="')[2].rstrip('"')] = float(number)
    return found


def run(seed: int, folder: Path, seconds: int = SECONDS) -> int:
    """Play a schedule; return how many statuses were compared.

    Raises:
        AssertionError: something was shown that is not true.
    """
    play = Play(seed, folder)
    world = play.world
    end = world.now + seconds
    with (
        patch.multiple(live_server, _EACH=0.0, _BEAT=-1.0),
        patch.object(Alerts, "_send", lambda _: None),
    ):
        while world.now < end:
            play.process()
            stalled = {name: play.was_stalled(name) for name in world.truth.models}
            down = world.random.choice((0, 3, 60, 2000))
            world.now += down
            world.awake += down
            for name, model in world.truth.models.items():
                model.restart(world.now, was_stalled=stalled[name])
    return play.checks
