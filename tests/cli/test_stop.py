"""`engine start` ends within five seconds of being asked, whatever it waits for at that moment."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.processes import engine
from tests.cli.test_start import Starting, ids
from tests.cli.test_watch import FILES, land
from tests.lab import event, wait_for_locks
from tests.project.small_projects import clean

# The time that the process takes itself is three; a busy machine takes some of the rest.
SECONDS = 5.0
SILENT = {
    "project.yml": "name: silent\ntargets: {{dev: {{schema: main, connections: "
    "{{main: {{bootstrap_servers: '127.0.0.1:{port}'}}}}}}}}\n",
    "sources/shop.yml": "sources: [{{name: shop, tables: [{{name: events, format: kafka, connection: main, "
    "topic: events, schema: id int}}]}}]\n",
    "models/copied.sql": "/*---\nstreams: [shop.events]\n---*/\nselect id from {{{{ source('shop', 'events') }}}}\n",
}


@pytest.fixture
def silent_broker() -> Iterator[int]:
    """A server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield server.getsockname()[1]


def test_it_does_not_wait_for_a_broker_that_does_not_answer(tmp_path: Path, silent_broker: int) -> None:
    clean(tmp_path, {name: text.format(port=silent_broker) for name, text in SILENT.items()})
    one = Starting(tmp_path)
    try:
        one.until(lambda: one.of("LiveStarted"))
        assert seconds_to_end(one, lambda: one.process.send_signal(signal.SIGTERM)) < SECONDS
        assert one.process.returncode == 0
    finally:
        one.kill()
        one.close()
    assert [end["reason"] for end in one.of("LiveStopped")] == ["terminated"]
    # What it was at is known afterwards, and nothing keeps the next one from starting.
    assert engine(tmp_path, "status").returncode == 3
    wait_for_locks(tmp_path)


@pytest.mark.nightly
@pytest.mark.spark
def test_it_does_not_wait_for_java_that_starts_or_stands_still(tmp_path: Path) -> None:
    clean(tmp_path, FILES)
    land(tmp_path, "1", *(event(n, n) for n in range(3)))
    for still in (False, True):
        one = Starting(tmp_path)
        try:
            one.until(one.java)
            if still:
                one.until(lambda one=one: one.of("NodeTurnStarted", node="model.paid") and ids(tmp_path))
                for pid in one.java():
                    os.kill(pid, signal.SIGSTOP)
            java = one.java()
            assert seconds_to_end(one, lambda one=one: one.process.send_signal(signal.SIGTERM)) < SECONDS
            assert not [pid for pid in java if Path(f"/proc/{pid}").exists()]
        finally:
            one.close()
        wait_for_locks(tmp_path)
    assert engine(tmp_path, "build", "-s", "paid").returncode == 0
    assert ids(tmp_path) == [0, 1, 2]


def seconds_to_end(one: Starting, ask: Callable[[], object]) -> float:
    """Ask a process to end, and return how long that took."""
    begin = time.monotonic()
    ask()
    one.process.wait(60)
    return time.monotonic() - begin
