"""Two machines build one project: a catalog and a bucket are all that they share.

A machine is a copy of the project in a folder of its own, with its own target/ and caches, and a process with a Java
of its own for each build. Files to read lie in a folder that both see, as on a network disk.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import invoke
from engine.compile import Catalog
from engine.lake.lake_reader import Lake
from tests.catalogs.conftest import block, rest_catalog
from tests.lab import JAVA_OPTIONS, REPOSITORY, Result, event, run_alone
from tests.services.iceberg_rest import RestServer
from tests.services.process import family
from tests.services.s3 import S3Server

pytestmark = pytest.mark.spark
PROJECT = """
name: lab
targets:
  dev:
    catalog: {catalog}
    schema: {schema}
    state: s3a://{bucket}/engine-state
    s3: {s3}
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{java}"}}}}
"""
EVENTS = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: {landing}
        max_files_per_trigger: 1
        schema: "id int, at timestamp, kind string, amount double"
"""
MODELS = {
    "plain": "/*---\nstreams: [shop.events]\n---*/\nselect id, at, amount from {{ source('shop', 'events') }}\n",
    "latest": """/*---
streams: [shop.events]
unique_key: [id]
sequence_by: at
---*/
select id, at, amount from {{ source('shop', 'events') }}
""",
    "hourly": """/*---
streams:
  shop.events:
    watermark: at delay 0 minutes
windows:
  hour: tumbling(at, 1 hour)
output_mode: append
---*/
select hour.start as began, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by hour
""",
    "copied": "/*---\nstreams: [plain]\n---*/\nselect id from {{ ref('plain') }}\n",
    "counted": "select count(*) as n from {{ ref('latest') }}\n",
}
# A minute is long for a test: both machines agree on four seconds.
SHORT = "from engine.state import lease\nlease.GONE_AFTER, lease.RENEWED_EVERY = 4.0, 0.5\n"
DIE = """
import os, signal
from engine import kill_points
def die(point, table, batch, where):
    if (point, table, batch) == ({point!r}, {table!r}, {batch}):
        os.kill(os.getpid(), signal.SIGKILL)
kill_points.listen(die)
"""
# A chain that is rebuilt; each table says by which version of the first model it was made.
CHAIN = {
    "plain": "/*---\nstreams: [shop.events]\n---*/\n"
    "select id, at, VERSION as version from {{ source('shop', 'events') }}\n",
    "copied": "/*---\nstreams: {plain: {watermark: at delay 10 minutes, dedup: [id]}}\n---*/\n"
    "select id, at, version from {{ ref('plain') }}\n",
    "latest": "/*---\nstreams: [copied]\nunique_key: id\n---*/\nselect id, version from {{ ref('copied') }}\n",
    "counted": "select max(version) as version, count(*) as n from {{ ref('latest') }}\n",
}
# A table stops at a point until the file is there.
STOP_AT = """
import time
from pathlib import Path
from engine import kill_points
folder = Path({folder!r})
def stop(point, table, batch, where):
    if (point, table.partition("__")[0]) == ({point!r}, {table!r}) and not (folder / "go").exists():
        (folder / table.partition("__")[0]).touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
kill_points.listen(stop)
"""
# Each table stops once, between the look at its lease and its commit; all go on when the file is there.
STOP = """
import time
from pathlib import Path
from engine import kill_points
seen = set()
def stop(point, table, batch, where):
    folder = Path({folder!r})
    if point == "checked" and table not in seen:
        seen.add(table)
        (folder / table).touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
kill_points.listen(stop)
"""


# Each takes half a minute; ("checked", "plain") and ("noted", "plain") held as well.
TAKEN_OVER = [("replacing", "copied"), ("committing", "latest")]


@dataclass
class Machine:
    """A copy of the project."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Result:
        """A command in this process: no Java is started."""
        self.capsys.readouterr()
        code = invoke([*arguments, "--project-dir", str(self.root), "--log-format", "json"])
        captured = self.capsys.readouterr()
        return Result(code, captured.out, captured.err)

    def build(self, script: str = "", code: int = 0, *arguments: str) -> Result:
        """A build in a process of its own."""
        done = run_alone(self.root, "build", *arguments, script=SHORT + script)
        assert done.returncode == code, done.stdout + done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def building(self, script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A build that runs beside the test."""
        program = f"{SHORT}{script}\nimport sys\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))\n"
        command = [sys.executable, "-c", program, "build", *arguments, "--project-dir", str(self.root)]
        command += ["--log-format", "json"]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    for pid in family(process.pid):
                        os.kill(pid, signal.SIGCONT)
                    process.kill()

    @contextmanager
    def starting(self) -> Iterator[subprocess.Popen[bytes]]:
        """`engine start` beside the test."""
        program = f"{SHORT}\nimport sys\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))\n"
        command = [sys.executable, "-c", program, "start", "--project-dir", str(self.root), "--log-format", "json"]
        with (self.root / "output").open("wb") as output:
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output)
        try:
            yield process
        finally:
            for pid in family(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def leave_nothing(self) -> None:
        """Lose all that is not the project's text: another disk."""
        for name in ("target", ".engine"):
            shutil.rmtree(self.root / name, ignore_errors=True)


@dataclass
class Two:
    """The machines and what they share."""

    one: Machine
    other: Machine
    catalog: Catalog
    schema: str
    landing: Path
    store: S3Server
    bucket: str

    def land(self, name: str, *rows: dict[str, Any]) -> None:
        path = self.landing / f"{name}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        moment = time.time() - 100_000 + len(list(self.landing.iterdir())) * 10
        os.utime(path, (moment, moment))

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = Lake(self.catalog).rows(self.schema, name, None)
        assert found is not None
        return [dict(zip(found[0], row, strict=True)) for row in found[1]]

    def runs(self, name: str) -> list[str | None]:
        """The runs whose commits are in a table."""
        table = Lake(self.catalog).table(self.schema, name)
        assert table is not None
        return [snapshot.marker("run-id") for snapshot in table.history]


@pytest.fixture
def two(rest_server: RestServer, s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Two:
    catalog = rest_catalog(rest_server.start().url, rest_server)
    schema, bucket = f"s{uuid.uuid4().hex[:8]}", s3_server.start().bucket(f"state-{uuid.uuid4().hex[:8]}")
    landing = tmp_path / "shared" / "landing"
    landing.mkdir(parents=True)
    machines = []
    for name in ("one", "other"):
        root = tmp_path / name
        text = PROJECT.format(
            catalog=block(catalog), schema=schema, bucket=bucket, s3=json.dumps(s3_server.block()), java=JAVA_OPTIONS
        )
        for file, content in {
            "project.yml": text,
            "sources/shop.yml": EVENTS.format(landing=landing),
            **{f"models/{model}.sql": sql for model, sql in MODELS.items()},
        }.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        machines.append(Machine(root, capsys))
    return Two(machines[0], machines[1], catalog, schema, landing, s3_server, bucket)


def check(two: Two, ids: list[int], latest: dict[int, float], hours: dict[str, tuple[int, float]]) -> None:
    """The tables against what a calculation by hand gives."""
    assert sorted(row["id"] for row in two.rows("plain")) == ids
    assert sorted(row["id"] for row in two.rows("copied")) == ids
    assert {row["id"]: row["amount"] for row in two.rows("latest")} == latest
    assert len(two.rows("latest")) == len(latest)
    assert [row["n"] for row in two.rows("counted")] == [len(latest)]
    assert {f"{row['began']:%H}": (row["n"], row["amount"]) for row in two.rows("hourly")} == hours
    assert len(two.rows("hourly")) == len(hours)


def unchanged(machine: Machine) -> bool:
    """Whether a machine sees that nothing is new, by its plan and by a build without Java."""
    planned = machine.run("plan", "--output", "json")
    assert planned.code == 0, planned.text
    models = [
        line for line in map(json.loads, planned.out.splitlines()) if line.get("unique_id", "").startswith("model.")
    ]
    left = {line["name"]: (line["action"], line["reasons"]) for line in models if not line["unchanged"]}
    assert not left
    built = machine.run("build")
    assert built.code == 0, built.text
    told = {event["message"] for event in built.events if event["event"] == "ModelFinished"}
    return told == {"no new data"}


@pytest.mark.gate
def test_one_dies_and_the_other_takes_over(two: Two) -> None:
    one, other = two.one, two.other
    two.land("a", event(1, "10:05"), event(2, "10:10"))
    two.land("b", event(1, "10:40", amount=5.0), event(3, "11:30"))
    two.land("c", event(4, "12:10"))

    # The first dies in its second micro-batch, the rows of which are in one table.
    one.build(DIE.format(point="committed", table="hourly", batch=1), code=-signal.SIGKILL)
    one.leave_nothing()
    taken = other.build()
    assert "Traceback" not in taken.text
    first = ([1, 1, 2, 3, 4], {1: 5.0, 2: 1.0, 3: 1.0, 4: 1.0}, {"10": (3, 7.0), "11": (1, 1.0)})
    check(two, *first)
    assert unchanged(one)
    assert unchanged(other)
    assert not (one.root / ".engine").exists(), "all state is in the bucket"


@pytest.mark.gate
def test_one_that_wakes_up_after_the_other_took_over_writes_nothing(two: Two, tmp_path: Path) -> None:
    one, other = two.one, two.other
    two.land("a", event(1, "10:05"), event(2, "10:10"))
    two.land("b", event(1, "10:40", amount=5.0), event(3, "11:30"))
    two.land("c", event(4, "12:10"))
    other.build()

    # While one is between its last look at the leases and its commits, the other is rejected, with the name of the first.
    two.land("d", event(2, "12:20", amount=9.0), event(5, "13:05"))
    held = tmp_path / "held"
    held.mkdir()
    with one.building(STOP.format(folder=str(held))) as process:
        wait_for(held, {"plain", "latest"}, process)
        rejected = other.run("build")
        assert rejected.code == 1, rejected.text
        assert "table-locked" in rejected.codes(), rejected.text
        assert f"process {process.pid} on " in rejected.text
        assert other.run("plan").code == 0

        stopped = family(process.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        other.build()
        second = (
            [1, 1, 2, 2, 3, 4, 5], {1: 5.0, 2: 9.0, 3: 1.0, 4: 1.0, 5: 1.0},
            {"10": (3, 7.0), "11": (1, 1.0), "12": (2, 10.0)},
        )  # fmt: skip
        check(two, *second)
        before = {name: two.runs(name) for name in MODELS}

        (held / "go").touch()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, out + err
    woken = Result(process.returncode, out, err)
    assert "lease-lost" in woken.text, woken.text
    assert "Traceback" not in woken.text
    assert {name: two.runs(name) for name in MODELS} == before
    check(two, *second)
    assert unchanged(one)
    assert unchanged(other)


@pytest.mark.nightly
def test_two_machines_keep_one_project_running_and_one_goes_on_alone(two: Two) -> None:
    two.land("a", event(1, "10:00", amount=1.0), event(2, "11:00", amount=2.0))
    with two.one.starting() as one, two.other.starting() as other:
        until(two, lambda: [r["n"] for r in two.rows("counted")] == [2] and len(two.rows("copied")) == 2, other)
        two.land("b", event(2, "12:00", amount=5.0), event(3, "13:00", amount=3.0))
        # In the middle of what it does, with its Java.
        until(two, lambda: len(two.rows("plain")) == 4, other)
        for pid in family(one.pid):
            os.kill(pid, signal.SIGKILL)
        two.land("c", event(4, "14:00", amount=4.0))
        until(two, lambda: [r["n"] for r in two.rows("counted")] == [4] and len(two.rows("copied")) == 5, other)
        until(two, lambda: len(two.rows("hourly")) == 4, other)
        other.send_signal(signal.SIGTERM)
        said = (two.other.root / "output").read_text()
        assert other.wait(60) == 0, said[-3000:]
        assert "table-locked" not in said
        taken, waits = (said.count(text) for text in ('"took_over": true', '"state": "standby"'))
        assert taken <= waits, said[-3000:]
    hours = {"10": (1, 1.0), "11": (1, 2.0), "12": (1, 5.0), "13": (1, 3.0)}
    check(two, [1, 2, 2, 3, 4], {1: 1.0, 2: 5.0, 3: 3.0, 4: 4.0}, hours)
    assert unchanged(two.other)


def until(two: Two, true: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 240.0) -> None:
    """Wait until something is true of the tables."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(AssertionError):
            if true():
                return
        output = (two.other.root / "output").read_text()[-3000:]
        assert process.poll() is None, output
        assert time.monotonic() < deadline, output
        time.sleep(0.5)


def chain_is(two: Two, version: int, ids: list[int]) -> None:
    """Every table was made by one version of the first model, of all rows."""
    assert sorted(row["id"] for row in two.rows("plain")) == ids
    for name in ("copied", "latest"):
        assert sorted(row["id"] for row in two.rows(name)) == sorted(set(ids)), name
    for name in ("plain", "copied", "latest"):
        assert {row["version"] for row in two.rows(name)} == {version}, name
    assert two.rows("counted") == [{"version": version, "n": len(set(ids))}]


@pytest.mark.nightly
def test_a_refresh_that_is_taken_over_is_finished_and_the_one_that_wakes_up_says_why(two: Two, tmp_path: Path) -> None:
    for machine in (two.one, two.other):
        for name in MODELS:
            (machine.root / "models" / f"{name}.sql").unlink()

    def edit(version: int) -> None:
        for machine in (two.one, two.other):
            for name, text in CHAIN.items():
                (machine.root / "models" / f"{name}.sql").write_text(text.replace("VERSION", str(version)))

    edit(0)
    two.land("a", event(1, "10:05"), event(2, "10:10"))
    two.one.build()
    two.land("b", event(1, "10:05"), event(3, "10:30"))
    two.other.build()
    chain_is(two, 0, [1, 1, 2, 3])
    for version, (point, table) in enumerate(TAKEN_OVER, 1):
        edit(version)
        held = tmp_path / f"held{version}"
        held.mkdir()
        with two.one.building(STOP_AT.format(folder=str(held), point=point, table=table), "-f") as process:
            wait_for(held, {table}, process)
            stopped = family(process.pid)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            two.other.build()
            chain_is(two, version, [1, 1, 2, 3])
            before = {name: two.runs(name) for name in CHAIN}
            (held / "go").touch()
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            out, err = process.communicate(timeout=240)
        woken = Result(process.returncode, out, err)
        codes = {e["code"] for e in woken.events if e["event"] == "Diagnosed" and e["level"] == "error"}
        assert (woken.code, codes) == (1, {"lease-lost"}), (point, table, codes, woken.text[-3000:])
        assert {name: two.runs(name) for name in CHAIN} == before, (point, table)
        assert unchanged(two.one), (point, table)
        assert unchanged(two.other), (point, table)


def wait_for(folder: Path, names: set[str], process: subprocess.Popen[str], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not names <= {path.name for path in folder.iterdir()}:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, sorted(folder.iterdir())
        time.sleep(0.1)
