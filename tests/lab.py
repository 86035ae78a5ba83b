"""Small real projects for tests: files, commands, tables.

Commands run through the same entry point as the command line. In-process ones use the shared Spark
session; `run_alone` starts a process with a JVM of its own, for everything that kills.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import quote

import pytest
import yaml

from engine import local_paths
from engine.cli.main import invoke
from engine.lake.catalog import catalog_settings
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

REPOSITORY = Path(__file__).resolve().parent.parent

# Tests run much code once: Java's second compiler and a collector with threads of its own cost more than they give.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

PROJECT = """
name: lab
version: "1"
target: dev
targets:
  dev:
    catalog: {{type: sqlite, name: lake, path: {lake}}}
    schema: {schema}
    # Counts for processes of their own only.
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "JAVA_OPTIONS"}}}}
""".replace("JAVA_OPTIONS", JAVA_OPTIONS)

EVENTS = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: landing/events
        schema: "id int, at timestamp, kind string, amount double"
"""


def event(
    number: int | None, at: str | int = "10:00", kind: str | None = "paid", amount: float | None = 1.0
) -> dict[str, Any]:
    """A row of EVENTS. `at` is a time of the first of May ("10:05"), the minute after ten (5), or a date and a time."""
    time = f"10:{at:02}" if isinstance(at, int) else at
    return {"id": number, "at": f"{time if 'T' in time else f'2024-05-01T{time}'}:00Z", "kind": kind, "amount": amount}


def yaml_text(text: str) -> str:
    """A text as YAML has it; where it is not a plain one, in ASCII between double quotes."""
    if re.fullmatch(r"[A-Za-z0-9_/.-]+", text):
        return text
    return yaml.safe_dump(text, allow_unicode=False, default_style='"', width=100_000).strip()


class LabSession:
    """The shared session and its lake; it opens at the first use, also after `close`."""

    def __init__(self, folder: Path) -> None:
        self.lake_path = folder / "lake"
        self._folder = folder
        self._session: Any = None

    @property
    def spark(self) -> Any:
        if self._session is None:
            self._session = self._open()
        return self._session.spark

    def _open(self) -> Any:
        from engine.spark.jars import jar_paths, jar_sets
        from engine.spark.java import find_java
        from engine.spark.session import SessionSettings, open_session

        config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=self.lake_path)
        catalog_settings.prepare(config)
        java = find_java()
        return open_session(
            SessionSettings(
                java=java,
                log_dir=self._folder / "logs",
                jar_paths=jar_paths(jar_sets(), fetch=True, java=java),
                master="local[2]",
                conf={**catalog_settings.spark_conf(config), "spark.driver.extraJavaOptions": JAVA_OPTIONS},
            )
        )

    def close(self) -> None:
        """End the session; a process has one at a time, and some tests start their own."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @contextmanager
    def knowing(self, catalog: Any) -> Iterator[Any]:
        """A session in the shared JVM that knows another catalog, for a project with a lake of its own.

        Catalogs belong to a session; new ones begin with what the JVM was started with, which is set meanwhile.
        """
        from engine.spark.internals.run_sessions import release, run_session

        # A session takes its settings when it is first used, and loads a catalog by those of the session that is active.
        shared = self.spark
        shared.sql("show namespaces in lake")
        known = shared.sparkContext._jsc.sc().conf()
        settings = catalog_settings.spark_conf(catalog)
        before = {key: known.get(key, None) for key in settings}
        for key, value in settings.items():
            known.set(key, value)
        try:
            session, family = run_session(shared)
            yield session
            release(family)
        finally:
            for key, value in before.items():
                known.remove(key) if value is None else known.set(key, value)
            shared._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(shared._jsparkSession)


# Who opens a session: in tests they take the shared one.
_COMMANDS = (
    "preview", "inspect_source", "measure_lateness", "source_freshness", "maintain", "publish_by_hand", "held_state", "roll_back",
    "compare_versions",
)  # fmt: skip
_OPENERS = (
    "build",
    "erasure.erase_model",
    "rebuild.cut_over",
    *(f"operations.{name}" for name in _COMMANDS),
)


@contextmanager
def share_session(session: LabSession, *, own_lakes: bool = False) -> Iterator[None]:
    """Let the commands that run in this process use one session; `own_lakes`: of projects that have lakes of their own."""

    @contextmanager
    def shared(target: Any, *_: object, **__: object) -> Iterator[object]:
        if own_lakes:
            with session.knowing(target.catalog) as knowing:
                yield knowing
        else:
            yield session.spark

    with ExitStack() as stack:
        for name in _OPENERS:
            stack.enter_context(patch(f"engine.runtime.{name}.spark_session", shared))
        yield


@dataclass(slots=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def model(self, name: str) -> dict[str, Any]:
        (found,) = [e for e in self.events if e["event"] == "ModelFinished" and e["node"] == f"model.{name}"]
        return found

    def codes(self) -> list[str]:
        return [e["code"] for e in self.events if e["event"] == "Diagnosed"]


@dataclass(slots=True)
class Lab:
    """A project in a temporary folder."""

    root: Path
    session: LabSession | None
    capsys: pytest.CaptureFixture[str] | None
    schema: str = field(default_factory=lambda: f"s{uuid.uuid4().hex[:8]}")
    _clock: float = 0.0

    def __post_init__(self) -> None:
        self._clock = time.time() - 100_000
        self.write("project.yml", PROJECT.format(lake=self.lake_text, schema=self.schema))

    @property
    def lake_path(self) -> Path:
        return self.session.lake_path if self.session else self.root / ".engine" / "lake"

    @property
    def lake_text(self) -> str:
        """The folder of the lake for the project's file."""
        return yaml_text(str(self.lake_path)) if self.session else ".engine/lake"

    @property
    def state(self) -> Path:
        return self.root / ".engine" / "state" / "lake" / self.schema

    def write(self, name: str, text: str) -> Path:
        """Write a file; with its first model a project without sources gets EVENTS."""
        if name.startswith("models/") and not (self.root / "sources").exists():
            self.write("sources/shop.yml", EVENTS)
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def model(self, name: str, text: str) -> None:
        self.write(f"models/{name}.sql", text)

    def land(self, name: str, rows: Iterable[Mapping[str, Any]], folder: str = "landing/events") -> Path:
        """Land a file of JSON lines; each file is newer than the one before."""
        path = self.write(f"{folder}/{name}.json", "".join(json.dumps(row) + "\n" for row in rows))
        self._clock += 10
        os.utime(path, (self._clock, self._clock))
        return path

    def run(self, *arguments: str) -> Result:
        """Run a command in this process with JSON output."""
        assert self.capsys is not None
        self.capsys.readouterr()
        code = invoke([*arguments, "--project-dir", str(self.root), "--log-format", "json"])
        captured = self.capsys.readouterr()
        return Result(code, captured.out, captured.err)

    def build(self, *arguments: str) -> Result:
        result = self.run("build", *arguments)
        assert result.code == 0, result.text
        return result

    def table(self, name: str) -> TableFacts | None:
        return self._lake().table(self.schema, name)

    def snapshot(self, name: str) -> int | None:
        table = self.table(name)
        return table.snapshot if table else None

    def snapshots(self) -> dict[str, int | None]:
        """The current snapshot of every table of the project's schema."""
        folders = sorted(p.name for p in self.state.iterdir()) if self.state.exists() else []
        return {name: self.snapshot(name) for name in folders}

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = self._lake().rows(self.schema, name, None)
        assert found is not None, f"no table {name}"
        names, values = found
        return [dict(zip(names, row, strict=True)) for row in values]

    def ids(self, name: str) -> list[Any]:
        """The ids of a table's rows, in order."""
        return sorted(row["id"] for row in self.rows(name))

    def _lake(self) -> Lake:
        return Lake(SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=self.lake_path))

    def model_json(self, name: str, generation: int = 1) -> dict[str, Any]:
        return json.loads((self.state / name / str(generation) / "model.json").read_text())


def writable_catalog(lake: Path, warehouse: str = "") -> SqlCatalog:
    """A lake's catalog as another program has it: PyIceberg's own, which writes; `warehouse`: elsewhere than in the lake."""
    from pyiceberg.catalog.sql import SqlCatalog

    config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=lake)
    catalog_settings.prepare(config)
    uri = f"sqlite:///{quote(str(catalog_settings.database(config)))}"
    return SqlCatalog("lake", uri=uri, warehouse=warehouse or local_paths.iceberg(lake / "warehouse"))


def run_alone(
    root: Path, *arguments: str, env: Mapping[str, str] | None = None, script: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own; `script` is Python that runs before it (to plant a fault)."""
    code = f"{script or ''}\nimport sys\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))\n"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments, "--project-dir", str(root), "--log-format", "json"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        check=False,
        timeout=300,
    )


def killed_alone(root: Path, *arguments: str, script: str, env: Mapping[str, str] | None = None) -> None:
    """Run a command whose script kills it, and wait until its JVM is gone as well.

    The JVM outlives Python by seconds, on a busy machine by many: until then it holds the locks of the tables.
    """
    ended = run_alone(root, *arguments, script=script, env=env)
    assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
    wait_for_locks(root)


def wait_for_locks(root: Path, seconds: float = 120.0) -> None:
    """Wait until nobody holds a lock in the state of a project."""
    deadline = time.monotonic() + seconds
    for path in sorted((root / ".engine" / "state").rglob("lock")):
        with path.open("r+b") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    assert time.monotonic() < deadline, f"{path} is held"
                    time.sleep(0.1)
                else:
                    break


def wait_until(condition: Callable[[], Any], seconds: float = 60.0, pause: float = 0.05) -> Any:
    """Return what a condition gives as soon as it is true, or at the end of the time what it gives then."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(pause)
    return result


def shortest_seconds(act: Callable[[], Any], limit: float, times: int = 4) -> float:
    """Time an action until it takes less than the limit, as a busy machine may hold up one of the attempts."""
    seconds = limit
    for _ in range(times):
        begin = time.monotonic()
        act()
        seconds = min(seconds, time.monotonic() - begin)
        if seconds < limit:
            break
    return seconds
