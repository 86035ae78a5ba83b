"""Alerts: what is wrong with a model is sent once, and once when it is over.

`Alerts.check` compares each status with the rules and with what is open; a thread of its own sends, so that a webhook
that does not answer delays nothing.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from engine.addresses import AddressError, WebAddress, web_address
from engine.bounds.http_exchange import BodyEncodingError, BodyTooLargeError, authorities, exchange
from engine.errors import ProjectError
from engine.live.node_status import Health
from engine.live.open_alerts import Key, OpenAlert, OpenAlerts
from engine.node_ids import shown_name
from engine.secrets.scrubber import scrub, without_secrets
from engine.times import duration_seconds, parse_duration

_WAITS = (1.0, 5.0, 25.0)
_ANSWER_BYTES = 64 * 1024
# Bad records are counted over ten minutes, in steps of one.
_STEP, _STEPS = 60.0, 10
_ERRORS = (OSError, HTTPException, ValueError, BodyTooLargeError, BodyEncodingError, subprocess.SubprocessError)
_TOO_MANY, _REDIRECT, _SERVER_ERROR = 429, 300, 500


@dataclass(frozen=True, slots=True)
class AlertRules:
    """When an alert is sent, and where to.

    Attributes:
        url: that gets a POST with JSON; None: none.
        token: sent as `Authorization: Bearer ..`.
        command: program and arguments; it gets the JSON on standard input. Empty: none.
        lag: seconds for which input may be unread; None: no alert.
        bad_records: how many there may be within ten minutes; None: no alert.
        restarts: how many turns may fail one after the other; None: no alert.
    """

    url: WebAddress | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    command: tuple[str, ...] = ()
    timeout: float = 10.0
    lag: float | None = None
    bad_records: int | None = None
    restarts: int | None = None


def alert_rules(settings: Mapping[str, Any]) -> AlertRules:
    """Return the rules of the block `alerts` of a target, whose secrets are resolved.

    Raises ProjectError: `bad-value`: a setting cannot be read.
    """
    command, url = settings.get("command") or (), str(settings.get("url") or "")
    try:
        address = web_address(url) if url else None
    except AddressError as error:
        hint = 'Write for example url: "https://hooks.example.org/shop".'
        raise ProjectError("bad-value", f"the url of 'alerts' {error}", hint) from error
    return AlertRules(
        url=address,
        token=str(settings.get("token") or ""),
        command=(command,) if isinstance(command, str) else tuple(map(str, command)),
        timeout=_seconds("timeout", settings) or AlertRules().timeout,
        lag=_seconds("lag", settings),
        bad_records=_count("bad_records", settings),
        restarts=_count("restarts", settings),
    )


def _seconds(key: str, settings: Mapping[str, Any]) -> float | None:
    """Seconds of a duration; None: there is none."""
    if (text := settings.get(key)) is None:
        return None
    if (duration := parse_duration(str(text))) is None:
        raise ProjectError("bad-value", f"'{key}' of 'alerts' is not a duration", f"Write {key}: 5 minutes.")
    return float(duration_seconds(duration))


def _count(key: str, settings: Mapping[str, Any]) -> int | None:
    """A whole number; None: there is none."""
    if (value := settings.get(key)) is None:
        return None
    if not str(value).isascii() or not str(value).isdecimal():
        message = f"'{key}' of 'alerts' is not a whole number, 0 or more"
        raise ProjectError("bad-value", message, f"Write for example {key}: 10.")
    return int(value)


@dataclass(slots=True)
class Alerts:
    """The alerts of one process; `close` sends what is left.

    `store`: what is open, also after this process. `failed`: why the last alert could not be sent or stored; empty if
    it could.
    """

    rules: AlertRules
    root: Path
    store: OpenAlerts = field(default_factory=OpenAlerts)
    failed: str = ""
    waits: tuple[float, ...] = _WAITS
    _open: dict[Key, OpenAlert] = field(default_factory=dict)
    _bad: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    _loaded: str | None = None
    _wake: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def check(self, status: Mapping[str, Any]) -> None:
        """Send what is newly wrong and what is over; before the process has its nodes, nothing is known."""
        if status["started_at"] is None or status["stopped_at"] is not None:
            return
        target = status["target"]
        if self._loaded != target and not self.load(target):
            return
        marks = {model: len(counts) and counts[-1] for model, counts in self._bad.items()}
        problems = {(alert, node): message for node, alert, message in self._problems(status)}
        problems |= self._undecided(status)
        current = {key: self._open.get(key) or OpenAlert(text, status["at"]) for key, text in problems.items()}
        messages = [_message(status, "firing", key, alert) for key, alert in current.items() if key not in self._open]
        messages += [
            _message(status, "resolved", key, alert) for key, alert in self._open.items() if key not in current
        ]
        if messages or marks != {model: counts[-1] for model, counts in self._bad.items()}:
            try:
                self.store.save(target, current, self._bad, messages)
            except sqlite3.Error as error:
                # What is not stored is not sent: it is tried again with the next status.
                self.failed = f"alerts cannot be stored: {error}"
                return
            self._open = current
        if messages:
            self._send()

    def load(self, target: str) -> bool:
        """Take the alerts of earlier processes, before this one has its first event; False: they cannot be read."""
        try:
            self._open, counts = self.store.load(target)
        except sqlite3.Error as error:
            self.failed = f"alerts cannot be read: {error}"
            return False
        self._bad = {model: deque(marks, maxlen=_STEPS + 1) for model, marks in counts.items()}
        self._loaded = target
        self._send()
        return True

    def _undecided(self, status: Mapping[str, Any]) -> dict[Key, str]:
        """The open alerts of which nobody knows now whether they are over."""
        unknown = {("lag", node["name"]) for node in status["nodes"] if node["lag_seconds"] is None}
        return {key: alert.message for key, alert in self._open.items() if key in unknown}

    def _problems(self, status: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        rules = self.rules
        for node in status["nodes"]:
            name = node["name"]
            if node["tests_of"] and node["health"] == Health.HEALTHY:
                # What fails in the tests of a model is wrong with the model.
                continue
            if node["health"] == Health.FAILED:
                tests = [f"test {shown_name(test)} fails: {why}" for test, why in node["tests_failing"].items()]
                error = node["last_error"] if node["failures"] or not tests else None
                yield name, "failed", "; ".join(filter(None, [error or "", *tests])) or node["reason"]
            if node["stalled"]:
                yield name, "stalled", node["stalled"]
            if rules.lag is not None and (node["lag_seconds"] or 0) > rules.lag:
                yield name, "lag", f"the oldest unread input is older than {rules.lag:g} seconds"
            bad = self._recent_bad(name, sum(node["bad_records"].values()), status["at"])
            if rules.bad_records is not None and bad > rules.bad_records:
                yield name, "bad_records", _bad_text(bad, node["bad_records"], node["bad_reasons"])
            if rules.restarts is not None and node["failures"] > rules.restarts:
                yield name, "restarts", f"more than {rules.restarts} turns failed one after the other"

    def _recent_bad(self, name: str, total: int, at: float) -> int:
        marks = self._bad.setdefault(name, deque([(at, 0)], maxlen=_STEPS + 1))
        while len(marks) > 1 and at - marks[1][0] >= _STEP * _STEPS:
            marks.popleft()
        recent = total - marks[0][1]
        if at - marks[-1][0] >= _STEP:
            marks.append((at, total))
        return recent

    def _send(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="engine-alerts", daemon=True)
            self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                waiting = self.store.unsent()
                for record in waiting:
                    if not self._deliver(record):
                        return
            except sqlite3.Error as error:
                self.failed = f"alerts cannot be read: {error}"
                waiting = []
            if waiting:
                self._wake.set()
            elif self._ended.is_set():
                return

    def _deliver(self, record: Mapping[str, Any]) -> bool:
        """Send a message; False: the process ends, and a later one sends it."""
        content = scrub(json.dumps(record)).encode()
        delivered = True
        if (address := self.rules.url) is not None:
            delivered = self._try(lambda: self._post(address, content))
        if self.rules.command:
            delivered = self._try(lambda: self._run(content)) and delivered
        if delivered:
            self.store.forget(record["id"])
        return delivered

    def _try(self, send: Callable[[], str]) -> bool:
        """Send, and try again after a while; what the other side rejects is not. False: the process ended meanwhile."""
        for wait in (*self.waits, None):
            try:
                self.failed = send()
            except _ERRORS as error:
                self.failed = scrub(f"an alert could not be sent: {error}")
            else:
                return True
            if wait is None:
                return True
            if self._ended.wait(wait):
                return False
        return True

    def _post(self, address: WebAddress, content: bytes) -> str:
        """Post to the webhook; the answer's error if it is final. Raises OSError: to be tried again."""
        headers = {"Content-Type": "application/json"}
        if self.rules.token:
            headers["Authorization"] = f"Bearer {self.rules.token}"
        deadline = time.monotonic() + self.rules.timeout
        response = exchange(
            "POST", address, headers, content,
            timeout=self.rules.timeout, deadline=deadline, most_bytes=_ANSWER_BYTES, ca=authorities(),
        )  # fmt: skip
        if response.status >= _SERVER_ERROR or response.status == _TOO_MANY:
            raise OSError(f"the webhook responded with {response.status}")
        # A redirect is not followed: the alert did not arrive.
        return f"the webhook rejects alerts with {response.status}" if response.status >= _REDIRECT else ""

    def _run(self, content: bytes) -> str:
        """Run the command, without secrets in its environment. Raises OSError, SubprocessError: to be tried again."""
        command = list(self.rules.command)
        subprocess.run(
            command, input=content, cwd=self.root, env=without_secrets(), timeout=self.rules.timeout, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return ""

    def close(self, patience: float = 5.0) -> None:
        """Send what is left, for a few seconds at most and without further waits; the next process sends the rest."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(patience)


def _message(status: Mapping[str, Any], event: str, key: Key, alert: OpenAlert) -> dict[str, Any]:
    name, model = key
    text = f"{model}: {alert.message}" if event == "firing" else f"{model}: over: {alert.message}"
    return {
        "version": 2, "id": str(uuid.uuid4()), "event": event, "alert": name, "model": model,
        "message": alert.message, "text": text, "target": status["target"], "run_id": status["run_id"],
        "since": alert.since, "at": status["at"],
    }  # fmt: skip


def _bad_text(count: int, by_input: Mapping[str, int], reasons: Mapping[str, str]) -> str:
    worst = max(by_input, key=lambda name: by_input[name], default="")
    reason = f", for example: {reasons[worst]}" if worst in reasons else ""
    if len(by_input) > 1:
        return f"{count:,} bad records within ten minutes; since the history began, most came from {worst}{reason}"
    return f"{count:,} bad records from {worst} within ten minutes{reason}"
