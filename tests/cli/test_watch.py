"""`engine build --watch` as a process: edits of all kinds, one session, and nothing of one turn in the next."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli.main import invoke
from engine.lake.lake_reader import Lake
from tests.cli.processes import arguments, children, start
from tests.lab import EVENTS, JAVA_OPTIONS, LabSession, event, share_session
from tests.project.small_projects import clean

PROJECT = f"""\
name: lab
targets:
  dev:
    catalog: {{type: sqlite, name: lake, path: .engine/lake}}
    schema: main
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{JAVA_OPTIONS}", spark.scheduler.revive.interval: 1s}}}}
"""
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount from {{ source('shop', 'events') }}\n"
TOTALS = """\
/*---
streams: {paid: {watermark: at delay 5 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
columns: {kind: {tests: [not_null]}}
---*/
select hour.start as starts_at, kind, sum(amount) as total from {{ ref('paid') }} group by hour, kind
"""
KINDS = "select distinct {{ word() }} as kind from {{ ref('paid') }}\n"
UNITS = """\
unit_tests:
  - name: doubles
    model: paid
    given: {shop.events: [{id: 1, amount: 2.0}]}
    expect: [{id: 1, amount: 2.0}]
"""
FILES: dict[str, str | bytes] = {
    "project.yml": PROJECT,
    "sources/shop.yml": EVENTS,
    "models/paid.sql": PAID,
    "models/totals.sql": TOTALS,
    "models/kinds.sql": KINDS,
    "macros/word.sql": "{% macro word() %}kind{% endmacro %}\n",
    "tests/units.yml": UNITS,
}


class Watching:
    """A process that watches a project, and the events that it prints."""

    def __init__(self, root: Path, *command: str) -> None:
        self.root = root
        self.process = start(root, *command, "--watch", "--log-format", "json")
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def turn(self) -> Turn:
        """The events of the next turn, to its end."""
        found: list[dict[str, Any]] = []
        while not found or found[-1]["event"] != "TurnFinished":
            one = self._events.get(timeout=240)
            assert one is not None, (found, self.process.communicate())
            found.append(one)
        return Turn(found)

    def edit(self, name: str, text: str) -> Turn:
        """Write a file as editors do, and wait for what comes of it."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.with_name(f"{path.name}~").write_text(text)
        path.with_name(f"{path.name}~").replace(path)
        turn = self.turn()
        assert turn.files == [name]
        return turn

    @property
    def java(self) -> int:
        """The process of Java."""
        (found,) = [p for p in children(self.process.pid) if Path(f"/proc/{p}/comm").read_text().strip() == "java"]
        return found

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it as a terminal does, and return its exit code and what it printed to standard error."""
        os.killpg(self.process.pid, number)
        with self.process:
            code = self.process.wait(60)
            self._reader.join(60)
            assert self.process.stderr is not None
            return code, self.process.stderr.read()


class Turn:
    """The events of one turn."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def files(self) -> list[str]:
        return list(self.of("TurnStarted")[0]["files"])

    @property
    def due(self) -> int | None:
        due: int | None = self.of("TurnStarted")[0]["due"]
        return due

    @property
    def ended(self) -> dict[str, str]:
        """Models and tests with how they ended; a test that did not run is `cached`."""
        tests = {e["node"]: "cached" if e["passed_at"] else e["status"] for e in self.of("TestFinished")}
        return tests | {e["node"]: e["status"] for e in self.of("ModelFinished")}

    @property
    def found(self) -> list[tuple[str, str]]:
        """Diagnostics: code and place."""
        return [(e["code"], f"{e['file']}:{e['line']}" if e["file"] else "") for e in self.of("Diagnosed")]

    @property
    def restarts(self) -> list[str]:
        return [e["reason"] for e in self.of("SessionRestarted")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    clean(tmp_path, FILES)
    land(tmp_path, "1", *(event(n, n) for n in range(3)))
    return tmp_path


@pytest.fixture
def watching(root: Path) -> Iterator[Watching]:
    one = Watching(root, "build")
    yield one
    if one.process.poll() is None:
        os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()
    for stream in (one.process.stdout, one.process.stderr):
        assert stream is not None
        stream.close()


def land(root: Path, name: str, *rows: dict[str, Any]) -> None:
    folder = root / "landing" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def table(root: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, as readers see them."""
    found = Lake(
        SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=root / ".engine" / "lake")
    ).rows("main", name, None)
    assert found is not None
    rows = [dict(zip(found[0], row, strict=True)) for row in found[1]]
    return sorted(tuple(row[column] for column in columns) for row in rows)


def build(session: LabSession, root: Path, *options: str) -> None:
    """Build beside the process that watches, in this one."""
    with share_session(session, own_lakes=True):
        assert invoke(["build", *options, "--project-dir", str(root)]) == 0


@pytest.mark.nightly
@pytest.mark.spark
def test_edits_are_built_in_one_session(watching: Watching, root: Path) -> None:
    first = watching.turn()
    assert (first.files, set(first.ended.values())) == ([], {"success", "pass"})
    assert table(root, "paid", "id", "amount") == [(0, 1.0), (1, 1.0), (2, 1.0)]
    java = watching.java

    # A model: its unit test runs, and new rows get the new query.
    land(root, "2", event(3, 20, amount=4.0))
    turn = watching.edit("models/paid.sql", PAID.replace("amount from", "amount * 2 as amount from"))
    assert turn.ended["unit_test.paid.doubles"] == "fail"
    assert turn.ended["model.paid"] == "skipped"
    turn = watching.edit("tests/units.yml", UNITS.replace("expect: [{id: 1, amount: 2.0}]", "expect: [{amount: 4.0}]"))
    assert turn.ended["unit_test.paid.doubles"] == "pass"
    assert turn.ended["model.paid"] == turn.ended["model.kinds"] == "success"
    assert table(root, "paid", "id", "amount") == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 8.0)]

    # An error, at its place; then the text of before: nothing to do.
    turn = watching.edit("models/totals.sql", TOTALS.replace("sum(amount)", "sum(amonut)"))
    assert (turn.found, turn.due, turn.ended) == ([("unknown-column", "models/totals.sql:6")], None, {})
    turn = watching.edit("models/totals.sql", TOTALS)
    assert (turn.found, turn.due, turn.ended) == ([], 0, {})

    # An edit that does not fit the state is rejected with the ways to go on, and changes nothing.
    turn = watching.edit("models/totals.sql", TOTALS.replace("1 hour", "30 minutes"))
    assert "model-changed" in dict(turn.found)
    assert turn.ended == {}
    (rejected,) = [e for e in turn.of("Diagnosed") if e["code"] == "model-changed"]
    assert "engine build -f -s totals" in rejected["hint"]
    turn = watching.edit("models/totals.sql", TOTALS)
    assert (turn.found, turn.ended) == ([], {})

    # A macro: the model that calls it; then it is gone.
    turn = watching.edit("macros/word.sql", "{% macro word() %}upper(kind){% endmacro %}\n")
    assert turn.ended == {"model.kinds": "success"}
    assert table(root, "kinds", "kind") == [("PAID",)]
    (root / "macros" / "word.sql").unlink()
    turn = watching.turn()
    assert ("jinja-undefined" in dict(turn.found), turn.ended) == (True, {})
    watching.edit("macros/word.sql", "{% macro word() %}kind{% endmacro %}\n")
    assert table(root, "kinds", "kind") == [("paid",)]

    # A new model is a new lock.
    turn = watching.edit("models/late.sql", "select count(*) as n from {{ ref('paid') }}\n")
    assert turn.ended == {"model.late": "success"}
    assert watching.java == java

    # Another session.
    turn = watching.edit("project.yml", PROJECT.replace("interval: 1s", "interval: 2s"))
    assert turn.restarts == ["spark.scheduler.revive.interval changed"]
    assert watching.java != java

    assert watching.stop() == (0, "")


@pytest.mark.nightly
@pytest.mark.spark
def test_what_others_do_between_two_turns_counts(watching: Watching, root: Path, lab_session: LabSession) -> None:
    watching.turn()
    java = watching.java
    assert table(root, "kinds", "kind") == [("paid",)]

    # Nobody holds a lock while the watch waits: another process reads a file, and rebuilds a table.
    land(root, "2", event(7, 40, kind="open"))
    build(lab_session, root, "-s", "paid")
    build(lab_session, root, "-f", "-s", "kinds")
    turn = watching.edit("models/kinds.sql", f"{KINDS} -- again")
    assert turn.found == []
    assert table(root, "kinds", "kind") == [("open",), ("paid",)]
    turn = watching.edit("models/count.sql", "select count(*) as n from {{ ref('kinds') }}\n")
    assert table(root, "count", "n") == [(2,)]

    # What a hook leaves in the session is not there in the next turn.
    hook = "pre_hook: \"create or replace global temporary view odd as select 'odd' as kind\"\n"
    turn = watching.edit("models/hooked.sql", f"/*---\n{hook}---*/\nselect kind from {{{{ ref('kinds') }}}}\n")
    assert turn.ended == {"model.hooked": "success"}
    cache = "pre_hook: cache table lake.main.kinds\n"
    watching.edit("models/hooked.sql", f"/*---\n{cache}---*/\nselect kind from {{{{ ref('kinds') }}}}\n")
    assert watching.java == java
    land(root, "3", event(8, 50, kind="new"))
    build(lab_session, root, "-s", "paid", "kinds")
    watching.edit("models/hooked.sql", "select kind from {{ ref('kinds') }}\n")
    assert table(root, "hooked", "kind") == [("new",), ("open",), ("paid",)]

    # What cannot be removed ends the session.
    function = "pre_hook: create function default.own as 'org.apache.spark.sql.functions'\n"
    watching.edit("models/hooked.sql", f"/*---\n{function}---*/\nselect kind from {{{{ ref('kinds') }}}}\n")
    assert not Path(f"/proc/{java}").exists()

    # A lock that is taken: said as ever, and the watch goes on.
    taken = locked_by_somebody(root, "count")
    turn = watching.edit("models/count.sql", "select count(*) + 1 as n from {{ ref('kinds') }}\n")
    taken.kill()
    taken.wait()
    assert dict(turn.found).keys() == {"table-locked"}
    turn = watching.edit("models/count.sql", "select count(*) + 2 as n from {{ ref('kinds') }}\n")
    assert table(root, "count", "n") == [(5,)]

    # Java is killed while nobody looks: another is there for the next edit.
    os.kill(watching.java, signal.SIGKILL)
    turn = watching.edit("models/count.sql", "select count(*) + 3 as n from {{ ref('kinds') }}\n")
    assert table(root, "count", "n") == [(6,)]
    java = watching.java

    code, error = watching.stop(signal.SIGTERM)
    assert (code, error) == (143, "terminated\n")
    assert not Path(f"/proc/{java}").exists()


@pytest.mark.nightly
@pytest.mark.spark
def test_tests_alone_are_watched_too(root: Path) -> None:
    watching = Watching(root, "test", "-s", "test_type:unit")
    assert watching.turn().ended == {"unit_test.paid.doubles": "pass"}
    turn = watching.edit("tests/units.yml", UNITS.replace("expect: [{id: 1", "expect: [{id: 2"))
    assert turn.ended == {"unit_test.paid.doubles": "fail"}
    assert watching.edit("tests/units.yml", UNITS).ended == {"unit_test.paid.doubles": "pass"}
    assert watching.edit("tests/units.yml", f"{UNITS}# a comment\n").due == 0
    turn = watching.edit("models/paid.sql", PAID.replace("amount from", "amount * 1 as amount from"))
    assert turn.ended == {"unit_test.paid.doubles": "pass"}
    assert watching.stop() == (0, "")


def locked_by_somebody(root: Path, name: str) -> subprocess.Popen[bytes]:
    """A process that holds the lock of a table."""
    lock = root / ".engine" / "state" / "lake" / "main" / name / "lock"
    holder = subprocess.Popen(["flock", str(lock), "sleep", "60"], start_new_session=True)
    while subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode == 0:
        pass
    lock.write_text(json.dumps({"pid": holder.pid, "host": os.uname().nodename}))
    return holder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--full-refresh"], "--full-refresh"),
        (["--reset-checkpoint", "now"], "--reset-checkpoint"),
        (["--accept", "files-gone"], "--accept"),
    ],
)
def test_what_must_not_be_repeated_is_rejected(
    root: Path, capsys: pytest.CaptureFixture[str], options: list[str], named: str
) -> None:
    assert invoke(["build", "--watch", *options, "--project-dir", str(root)]) == 2
    error = capsys.readouterr().err
    assert f"--watch and {named} cannot be combined: each edit would do it again" in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code"), [(["-s", "nothing"], 2), (["--target", "none"], 1)], ids=["selection", "target"]
)
def test_what_no_edit_mends_ends_it_and_errors_of_the_project_do_not(root: Path, command: list[str], code: int) -> None:
    if code == 2:
        done = subprocess.run(arguments(root, "build", "--watch", *command), capture_output=True, text=True, timeout=60)  # noqa: PLW1510
        assert done.returncode == 2
        assert "nothing" in done.stderr
        return
    watching = start(root, "build", "--watch", *command)
    assert watching.stdout is not None
    while not (line := watching.stdout.readline()).endswith("Waiting for edits (Ctrl-C ends it)\n"):
        assert line
    os.killpg(watching.pid, signal.SIGINT)
    out, error = watching.communicate(timeout=30)
    assert watching.returncode == 1
    assert out.endswith("Stopped\n")
    assert re.match("project.yml:.*: error: .*none", error)
