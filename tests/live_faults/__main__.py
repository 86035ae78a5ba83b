"""A project kept running on a broker while faults happen: python -m tests.live_faults --minutes 10 [--seed 1].

Faults, one every few seconds: kill -9 of the process, of Java alone; SIGTERM; the broker away, silent, or slow; a topic
that gets partitions, or is deleted and recreated; Java that stands still; a catalog that is locked; a full disk; a burst of orders; edits that add a column, and such that are
rejected; a model that is removed and comes back; a pause; a second start. `--only kill,kill_java` causes some of them.
One model fails all the time. In between `engine status` is compared with the tables. At the end all tables must be those
of the orders that were sent, and a build must find nothing to do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.processes import engine
from tests.cli.test_start import Starting
from tests.cli.test_watch import table
from tests.lab import wait_for_locks
from tests.live_faults.world import COLUMNS, MODELS, PAID, Sender, expected, write_project
from tests.services import kafka

_SETTLE_SECONDS = 600.0
# Five, and what a busy machine adds.
_END_SECONDS = 8.0
_MOST_PARTITIONS = 6


@dataclass(slots=True)
class Run:
    """A run with faults.

    Attributes:
        root: the project.
        broker: its broker.
        chance: of faults.
        sender: of what the broker gets.
        one: the process, which another replaces after a fault.
        caused: faults by name.
        samples: how often the status was compared.
        faults: what was wrong.
        small_disk: the project is on a disk of its own, which can be filled.
    """

    root: Path
    broker: kafka.Broker
    chance: random.Random
    sender: Sender
    one: Starting
    caused: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    faults: list[str] = field(default_factory=list)
    small_disk: bool = False
    _columns: int = 0
    # Whether the topic of clicks is another one than its stream has read.
    _replaced: bool = False

    def follow(self, seconds: float, only: Collection[str] = ()) -> None:
        """Cause faults for some time, all or some of them, and compare the status in between."""
        every = (
            self.kill, self.kill_java, self.terminate, self.broker_away, self.broker_silent, self.broker_slow,
            self.partitions_added, self.topic_recreated, self.java_silent, self.burst,
            self.catalog_locked, self.edit, self.pause, self.second, self.rejected_edit, self.removed,
            *((self.disk_full,) if self.small_disk else ()),
        )  # fmt: skip
        works = [work for work in every if not only or work.__name__ in only]
        deadline = time.monotonic() + seconds
        left: list[Callable[[], None]] = []
        while time.monotonic() < deadline:
            if not left:
                left = list(works)
                self.chance.shuffle(left)
            self.rest(self.chance.uniform(3.0, 12.0))
            work = left.pop()
            self.caused[work.__name__] += 1
            print(f"{time.strftime('%X')} {work.__name__}, {len(self.sender.orders)} orders", flush=True)
            work()

    def rest(self, seconds: float) -> None:
        """Wait, and compare the status with the tables now and then."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(1.0)
            if self.one.process.poll() is not None:
                self.faults.append(f"the process ended by itself with {self.one.process.returncode}")
                self.again()
            self.compare()

    def again(self) -> None:
        """Start another process in place of the one that is gone."""
        self.one.close()
        wait_for_locks(self.root)
        self.one = Starting(self.root, "--maintain-after", "20")

    # Faults.

    def kill(self) -> None:
        os.killpg(self.one.process.pid, signal.SIGKILL)
        self.one.process.wait()
        self.again()

    def kill_java(self) -> None:
        for pid in self.one.java():
            os.kill(pid, signal.SIGKILL)

    def terminate(self) -> None:
        begin = time.monotonic()
        self.one.process.send_signal(signal.SIGTERM)
        code = self.one.process.wait(60)
        took = time.monotonic() - begin
        if code or took > _END_SECONDS:
            self.faults.append(f"SIGTERM: ended with {code} after {took:.0f} s")
        self.again()

    def broker_away(self) -> None:
        self.broker.stop(kill=self.chance.random() < 0.5)
        self.rest(self.chance.uniform(3.0, 25.0))
        self.broker.start()

    def broker_silent(self) -> None:
        """It takes connections, and answers nothing."""
        with _stopped(self.broker.pid):
            self.rest(self.chance.uniform(3.0, 25.0))

    def broker_slow(self) -> None:
        """It answers for a moment, and then not for another, again and again."""
        deadline = time.monotonic() + self.chance.uniform(5.0, 20.0)
        while time.monotonic() < deadline:
            with _stopped(self.broker.pid):
                time.sleep(self.chance.uniform(0.1, 0.6))
            time.sleep(self.chance.uniform(0.05, 0.3))
        self.compare()

    def partitions_added(self) -> None:
        if self.sender.partitions < _MOST_PARTITIONS:
            self.broker.widen("orders", self.sender.partitions + 1)
            self.sender.partitions += 1

    def topic_recreated(self) -> None:
        """Its stream fails, the user keeps the rows, and reads the new topic."""
        self.sender.no_clicks.set()
        time.sleep(1.0)
        # What is unread when a topic goes is lost.
        if self._comes(lambda: self._has("clicks", sorted((click,) for click in self.sender.clicks))):
            self.broker.delete("clicks")
            self.broker.create("clicks")
            self._replaced = True
            self.sender.recreated.set()
        self.sender.no_clicks.clear()
        if not self._replaced:
            return
        if not self._comes(lambda: self._state("clicks") == "failed"):
            self.faults.append(f"a topic was recreated, and the status says {self._state('clicks')}")
        done = engine(self.root, "build", "-s", "clicks", "--reset-checkpoint", "earliest")
        if done.returncode:
            self.faults.append(f"reset: {done.stdout[-300:]} {done.stderr[-300:]}")
        elif not self._comes(lambda: self._state("clicks") in {"idle", "running", "queued"}):
            self.faults.append(f"a topic was read again, and the status says {self._state('clicks')}")
        self._replaced = False

    def _comes(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 150.0
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.rest(2.0)
        return True

    def _state(self, name: str) -> str | None:
        status = json.loads(engine(self.root, "status", "--output", "json").stdout or "{}")
        return next((n["state"] for n in status.get("nodes", ()) if n["node"] == f"model.{name}"), None)

    def java_silent(self) -> None:
        """Spark stands still in the middle of what it does."""
        with contextlib.ExitStack() as stack:
            for pid in self.one.java():
                stack.enter_context(_stopped(pid))
            self.rest(self.chance.uniform(3.0, 15.0))

    def catalog_locked(self) -> None:
        """Another program holds the catalog's database for itself."""
        path = self.root / ".engine/lake/catalog.db"
        with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as other:
            other.execute("begin exclusive")
            time.sleep(self.chance.uniform(3.0, 40.0))
            other.execute("rollback")

    def removed(self) -> None:
        path = self.root / "models/clicks.sql"
        text = path.read_text()
        path.unlink()
        self.rest(self.chance.uniform(3.0, 12.0))
        path.write_text(text)

    def disk_full(self) -> None:
        """Not a byte can be written for some time."""
        filler = self.root / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        self.rest(self.chance.uniform(5.0, 15.0))
        filler.unlink()

    def burst(self) -> None:
        self.sender.burst = 20_000

    def edit(self) -> None:
        self._columns += 1
        more = "".join(f", {number} as more{number}" for number in range(self._columns))
        (self.root / "models/paid.sql").write_text(PAID.format(more=more))

    def rejected_edit(self) -> None:
        path = self.root / "models/minutes.sql"
        path.write_text(MODELS["minutes"].replace("at, 1 minute", "at, 2 minutes"))
        self.rest(6.0)
        path.write_text(MODELS["minutes"])

    def pause(self) -> None:
        done = engine(self.root, "pause", "latest")
        self.rest(3.0)
        again = engine(self.root, "resume", "latest")
        # It may have been killed or not be there yet.
        for one in (done, again):
            if one.returncode and "[not-running]" not in one.stderr:
                self.faults.append(f"pause: {one.stderr[-300:]}")

    def second(self) -> None:
        done = engine(self.root, "start")
        if done.returncode != 1 or f"process {self.one.process.pid}" not in done.stderr:
            self.faults.append(f"second start: {done.returncode} {done.stderr[-300:]}")

    # What must hold.

    def compare(self) -> None:
        """What the status says of each table must have been true between two looks at it."""
        before = self._snapshots()
        done = engine(self.root, "status", "--output", "json")
        after = self._snapshots()
        try:
            status = json.loads(done.stdout)
        except ValueError:
            if "[not-running]" not in done.stderr:
                self.faults.append(f"status: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
            return
        self.samples += bool(status.get("nodes"))
        for node in status.get("nodes", ()):
            name = node["node"].partition(".")[2]
            said = _said(node)
            # Every other fault is over some time, and its models are tried again.
            if node["state"] == "failed" and name in COLUMNS and not (name == "clicks" and self._replaced):
                self.faults.append(f"{time.strftime('%X')} status says that {name} has failed: {node.get('error')}")
            # Written at most a second after the event; a snapshot may be a step of a turn that is under way.
            if before.get(name) == after.get(name) and node["state"] == "idle" and said not in {None, after.get(name)}:
                self._doubt(name)

    def _doubt(self, name: str) -> None:
        """A second look, when the status has had its second: a wrong one stays wrong."""
        time.sleep(2.0)
        now = self._snapshots().get(name)
        status = json.loads(engine(self.root, "status", "--output", "json").stdout or "{}")
        found = [n for n in status.get("nodes", ()) if n["node"] == f"model.{name}" and n["state"] == "idle"]
        if found and self._snapshots().get(name) == now and _said(found[0]) not in {None, now}:
            self.faults.append(f"status says {_said(found[0])} of {name}, whose table is at {now}")

    def _snapshots(self) -> dict[str, int | None]:
        found = {}
        for name in COLUMNS:
            try:
                found[name] = _snapshot(self.root, name)
            except (AssertionError, FileNotFoundError):
                continue
        return found

    def settle(self) -> None:
        """Wait until everything that was sent is in the tables."""
        wanted = expected(self.sender)
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            if self.one.process.poll() is not None:
                self.faults.append(f"the process ended by itself with {self.one.process.returncode}")
                return
            if all(self._has(name, rows) for name, rows in wanted.items()):
                return
            time.sleep(2.0)
        for name, rows in wanted.items():
            found = table(self.root, name, *COLUMNS[name])
            if found != rows:
                lost, more = Counter(rows) - Counter(found), Counter(found) - Counter(rows)
                some = f"{list(lost)[:3]} .. {list(more)[:3]}"
                self.faults.append(f"{name}: {lost.total()} rows are missing, {more.total()} are too many: {some}")

    def _has(self, name: str, rows: list[tuple[Any, ...]]) -> bool:
        try:
            return table(self.root, name, *COLUMNS[name]) == rows
        except AssertionError:
            return False


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """A process stands still; it may be gone afterwards."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _said(node: dict[str, Any]) -> int | None:
    """The snapshot that the status names: a text there, for it is too large for JavaScript's numbers."""
    return None if node["snapshot_id"] is None else int(node["snapshot_id"])


def _snapshot(root: Path, name: str) -> int | None:
    from types import SimpleNamespace

    from engine.lake.lake_reader import Lake

    place = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=root / ".engine" / "lake")
    found = Lake(place).table("main", name)
    assert found is not None
    return found.snapshot


@contextlib.contextmanager
def _disk(root: Path) -> Iterator[bool]:
    """A small disk for the project, where one may be mounted."""
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m", "tmpfs", root], check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", root], check=True)


def main() -> int:
    """Run it; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of faults, separated by commas")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="faults") as folder,
        kafka.running(Path(folder) / "broker") as broker,
        _disk(Path(folder) / "project") as small,
    ):
        root = Path(folder) / "project"
        broker.create("orders", partitions=2)
        broker.create("clicks", partitions=1)
        write_project(root, broker.address)
        sender = Sender(broker, random.Random(chosen.seed))
        run = Run(root, broker, random.Random(chosen.seed + 1), sender, Starting(root, "--maintain-after", "20"))
        run.small_disk = small
        sender.start()
        try:
            run.follow(chosen.minutes * 60, list(filter(None, chosen.only.split(","))))
            sender.end()
            run.settle()
            broken = [e for e in run.one.of("NodeStateChanged", node="model.broken") if e["state"] == "backing off"]
            if not broken:
                run.faults.append("the model that fails was not tried again")
            run.terminate()
            run.one.close()
            wait_for_locks(root)
            built = engine(root, "build", "--exclude", "broken")
            if built.returncode:
                run.faults.append(f"build: {built.stdout[-500:]} {built.stderr[-500:]}")
        finally:
            run.one.close()
            if kept := os.environ.get("LIVE_OUTPUT"):
                Path(kept).write_text("".join(json.dumps(event) + "\n" for event in run.one.events))
        print(f"{len(sender.orders)} orders, {run.samples} samples of the status, faults caused: {dict(run.caused)}")
        for fault in run.faults:
            print(f"WRONG: {fault}")
    return bool(run.faults)


if __name__ == "__main__":
    sys.exit(main())
