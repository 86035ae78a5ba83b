"""`engine start` as a process: new files become rows, edits and pauses take effect, it survives kills and leaves no Java."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import children, engine, start
from tests.cli.test_watch import FILES, PAID, build, land, table
from tests.lab import LabSession, event, wait_for_locks
from tests.project.small_projects import clean

pytestmark = pytest.mark.spark

SECONDS = 240.0


class Starting:
    """A process that keeps a project running, and the events that it printed."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root = root
        self.process = start(root, "start", "--log-format", "json", *options)
        self.events: list[dict[str, Any]] = []
        # Both are read: a process whose output nobody takes stands still.
        self.stderr: deque[str] = deque(maxlen=200)
        assert self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self.stderr.extend, args=(self.process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line) if line.startswith("{") else {"event": "", "line": line})

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, (self.events[-20:], list(self.stderr))
            assert time.monotonic() < deadline, self.events[-20:]
            # A look at a table takes a tenth of a second of processor time from what is looked at.
            time.sleep(0.4)

    def of(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        return [one for one in list(self.events) if one["event"] == kind and fields.items() <= one.items()]

    def java(self) -> list[int]:
        return [p for p in children(self.process.pid) if Path(f"/proc/{p}/comm").read_text().strip() == "java"]

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for reader in self._readers:
            reader.join(60)

    def close(self) -> None:
        self.kill()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    clean(tmp_path, FILES)
    land(tmp_path, "1", *(event(n, n) for n in range(3)))
    return tmp_path


@pytest.fixture
def starting(root: Path) -> Iterator[Starting]:
    # Streams without a common upstream model begin side by side, in a lake that is made by the first.
    for number in range(3):
        (root / f"models/beside{number}.sql").write_text(PAID)
    one = Starting(root, "--maintain-after", "4")
    yield one
    one.close()


def ids(root: Path) -> list[Any]:
    database = root / ".engine" / "lake"
    try:
        return sorted(id_ for (id_,) in table(root, "paid", "id"))
    except AssertionError:  # it does not exist yet
        assert not (database / "main" / "paid" / "data").exists()
        return []


def test_a_project_is_kept_up_to_date(root: Path, starting: Starting, lab_session: LabSession) -> None:
    done = "NodeTurnFinished"
    # Everything has a first turn, in the order of references.
    starting.until(lambda: starting.of(done, node="model.kinds") and starting.of(done, node="model.totals"))
    assert ids(root) == [0, 1, 2]
    first = [one["node"] for one in starting.of(done) if one["node"].startswith("model.")]
    assert first.index("model.paid") < first.index("model.totals")
    starting.until(lambda: all(starting.of(done, node=f"model.beside{number}") for number in range(3)))
    assert not [one for one in starting.of(done) if one["status"] in {"error", "fail"}]
    assert not starting.of("SessionRestarted")

    # A file becomes rows, and what reads the table follows by itself.
    land(root, "2", event(3, "11:30", kind="new"), event(4, "12:30"))
    starting.until(lambda: ids(root) == [0, 1, 2, 3, 4])
    starting.until(lambda: ("new",) in table(root, "kinds", "kind"))
    # Hours that the watermark has passed.
    starting.until(lambda: {total for (total,) in table(root, "totals", "total")} == {3.0, 1.0})

    # A paused model has no turn.
    assert engine(root, "pause", "paid").returncode == 0
    starting.until(lambda: starting.of("NodeStateChanged", node="model.paid", state="paused"))
    land(root, "3", event(5, "12:40"))
    time.sleep(3)
    assert ids(root) == [0, 1, 2, 3, 4]
    assert engine(root, "resume", "paid").returncode == 0
    starting.until(lambda: ids(root) == [0, 1, 2, 3, 4, 5])
    wrong = engine(root, "pause", "paied")
    assert (wrong.returncode, "not a model or sink that is kept running" in wrong.stderr) == (1, True)

    # A second one says who has the project; another command's turn is not disturbed.
    second = engine(root, "start")
    assert second.returncode == 1
    assert f"process {starting.process.pid}" in second.stderr

    _edited(root, starting)

    # Tables that had some commits were maintained.
    starting.until(lambda: starting.of("MaintenanceFinished", node="model.paid"))
    assert not starting.of("MaintenanceFinished", failed=True)

    (java,) = starting.java()
    stopped = engine(root, "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert starting.process.wait(30) == 0
    assert not Path(f"/proc/{java}").exists()
    assert starting.of("LiveStopped")[0]["reason"] == "engine stop"
    gone = engine(root, "stop")
    assert (gone.returncode, "[not-running]" in gone.stderr) == (1, True)

    # The tables are those of a build: nothing is left to do.
    build(lab_session, root)
    assert ids(root) == list(range(8))


def _edited(root: Path, starting: Starting) -> None:
    """Edits while it runs, of which two are not used."""
    # A broken project is shown and not used; a sound edit is.
    (root / "models/paid.sql").write_text(PAID.replace("amount from", "amuont from"))
    starting.until(lambda: [one for one in starting.of("ProjectReloaded") if one["rejected"]])
    land(root, "4", event(6, "12:41"))
    starting.until(lambda: 6 in ids(root))
    (root / "models/paid.sql").write_text(PAID.replace("amount from", "amount + 0 as amount from"))
    starting.until(lambda: [one for one in starting.of("ProjectReloaded") if not one["rejected"]])
    land(root, "5", event(7, "12:42", amount=2.0))
    starting.until(lambda: 7 in ids(root))

    # An edit over old state is rejected, and its model continues as it was.
    totals = (root / "models/totals.sql").read_text()
    (root / "models/totals.sql").write_text(totals.replace("at, 1 hour", "at, 2 hours"))
    starting.until(lambda: [one for one in starting.of("ProjectReloaded") if "totals" in one["rejected"]])
    # What else is edited is used.
    (root / "models/beside.sql").write_text("select 1 as n\n")
    starting.until(lambda: [one for one in starting.of("ProjectReloaded") if one["changed"] and one["rejected"]])
    starting.until(lambda: starting.of("NodeTurnFinished", node="model.beside", status="success"))
    (root / "models/totals.sql").write_text(totals)


# Seconds after a turn began; `make test` kills once, the night at three times.
@pytest.mark.gate
@pytest.mark.nightly_cases("often")
@pytest.mark.parametrize("kills", [(0.7,), (0.0, 0.7, 1.4)], ids=["once", "often"])
def test_it_may_be_killed_at_any_time_and_ends_in_seconds_on_sigterm(root: Path, kills: tuple[float, ...]) -> None:
    landed = 3
    for turn, seconds in enumerate(kills):
        one = Starting(root)
        try:
            one.until(lambda one=one: one.of("NodeTurnStarted", node="model.paid"))
            land(root, f"more{turn}", *(event(landed + n, "11:00") for n in range(2)))
            landed += 2
            time.sleep(seconds)
        finally:
            one.close()
        wait_for_locks(root)
    # Java that has grown too large is restarted between turns.
    one = Starting(root, "--max-java-memory", "0.1")
    try:
        one.until(lambda: ids(root) == list(range(landed)))
        one.until(lambda: one.of("SessionClosed", reason="it used more than 102 MB"))
        land(root, "last", event(landed, "11:00"))
        landed += 1
        one.until(lambda: ids(root) == list(range(landed)))
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(30) == 0
        assert one.of("LiveStopped")[0]["reason"] == "terminated"
    finally:
        one.close()
    assert ids(root) == list(range(landed))


def test_nothing_runs_where_the_project_has_errors(root: Path) -> None:
    (root / "models/paid.sql").write_text(PAID.replace("amount from", "amuont from"))
    done = engine(root, "start")
    assert done.returncode == 1
    assert "amuont" in done.stderr
    assert subprocess.run(["ls", root / ".engine"], check=False, capture_output=True).returncode != 0
