"""`engine start` beside a plain PySpark driver with processing-time triggers: idle cost, and from a file to its row.

    python -m benchmarks.live [--models 60] [--files 40] [--idle 60] [--only engine,script]

Each of the models reads a folder of its own and appends to a table. Idle: processor time of all processes while
nothing arrives, from a minute after the first load on. Latency: a file is renamed into a random folder, and the clock
stops when the catalog points to a new state of the model's table; the next file follows a random time later. Backlog:
the same while another model of the same process reads thousands of files. What grows with many turns is measured by
benchmarks/live_growth.py. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks._commands import ROOT, keep
from engine.spark.jars import jar_paths
from engine.spark.java import find_java

_SCHEMA = "id bigint, kind string"
_WAIT_SECONDS = 120.0
_STEP_SECONDS = 0.005
_REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one way.

    Attributes:
        way: `engine` or `script`, and its trigger.
        work: `idle`, `one file` or `one file beside a backlog`.
        models: that are kept up to date.
        idle: processor time while nothing arrived, as part of one core.
        p50: seconds from a file to its row, the median.
        p95: the same, of 95 of 100 files.
        most: of the slowest.
        files: how many there were.
        memory: of all processes, in MB.
    """

    way: str
    work: str
    models: int
    idle: float | None = None
    p50: float | None = None
    p95: float | None = None
    most: float | None = None
    files: int = 0
    memory: int = 0


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--backlog", type=int, default=3000, help="files of the backlog")
    parser.add_argument("--only", default="engine,script")
    chosen = parser.parse_args()
    results: list[Result] = []
    for way in chosen.only.split(","):
        with tempfile.TemporaryDirectory(prefix="live") as folder:
            root = Path(folder)
            write_project(root, chosen.models)
            for result in _measured(way, root, chosen):
                print(json.dumps({k: v for k, v in vars_of(result).items() if v is not None}), flush=True)
                results.append(result)
    keep("live", results, 1)


def vars_of(result: Result) -> dict[str, object]:
    """The fields of a result by name."""
    return {name: getattr(result, name) for name in Result.__slots__}


def write_project(root: Path, models: int) -> None:
    (root / "project.yml").write_text("name: live\ntargets:\n  dev: {schema: main, spark: {master: 'local[2]'}}\n")
    tables = [f"      - {{name: s{n}, format: json, path: landing/s{n}, schema: '{_SCHEMA}'}}" for n in range(models)]
    tables.append(f"      - {{name: backlog, format: json, path: landing/backlog, schema: '{_SCHEMA}'}}")
    (root / "sources").mkdir()
    (root / "sources/shop.yml").write_text("sources:\n  - name: shop\n    tables:\n" + "\n".join(tables) + "\n")
    (root / "models").mkdir()
    for name in [f"s{n}" for n in range(models)] + ["backlog"]:
        more = ", max_files_per_trigger: 50" if name == "backlog" else ""
        text = f"/*---\nstreams: {{shop.{name}: {{on_bad_record: fail{more}}}}}\n---*/\n"
        text += f"select id, kind from {{{{ source('shop', '{name}') }}}} where kind <> 'lost'\n"
        (root / "models" / f"t_{name}.sql").write_text(text)
        (root / "landing" / name).mkdir(parents=True)
        land(root, name, 0)


def land(root: Path, name: str, number: int, rows: int = 20) -> float:
    """Rename a file into a folder, and return when."""
    hidden = root / "landing" / name / f"_{number}.json"
    hidden.write_text("".join(f'{{"id": {number * rows + row}, "kind": "k{row % 3}"}}\n' for row in range(rows)))
    moment = time.monotonic()
    hidden.rename(hidden.with_name(f"{number:06}.json"))
    return moment


def _measured(way: str, root: Path, chosen: argparse.Namespace) -> Iterator[Result]:
    names = [f"s{n}" for n in range(chosen.models)]
    catalog = root / ".engine" / "lake" / "catalog.db" if way == "engine" else root / "hand" / "catalog.db"
    with running(way, root) as process:
        pointers = _Pointers(catalog)
        _until(process, lambda: len(pointers.all()) > len(names), 240.0)
        _settled(pointers)
        # Java compiles what the first turns have run.
        time.sleep(_REST_SECONDS)
        before = processor(process.pid)
        time.sleep(chosen.idle)
        idle = (processor(process.pid) - before) / chosen.idle
        yield Result(way, "idle", chosen.models, round(idle, 4), memory=_memory(process.pid))
        yield _latency(way, "one file", root, process, pointers, names, chosen.files)
        for number in range(1, chosen.backlog + 1):
            land(root, "backlog", number, 50)
        yield _latency(way, "one file beside a backlog", root, process, pointers, names, chosen.files)


def _latency(
    way: str, work: str, root: Path, process: subprocess.Popen[bytes], pointers: _Pointers, names: Sequence[str],
    files: int,
) -> Result:  # fmt: skip
    chance = random.Random(7)
    number = max(int(path.stem) for name in names for path in (root / "landing" / name).glob("[0-9]*"))
    took: list[float] = []
    for count in range(1, files + 1):
        time.sleep(chance.uniform(0.2, 1.5))
        name = chance.choice(names)
        before = pointers.of(f"t_{name}")
        begin = land(root, name, number + count)
        _until(process, partial(pointers.moved, f"t_{name}", before), _WAIT_SECONDS)
        took.append(time.monotonic() - begin)
    parts = statistics.quantiles(took, n=20)
    p50, p95, most = (round(one, 3) for one in (parts[9], parts[18], max(took)))
    return Result(way, work, len(names), None, p50, p95, most, files, _memory(process.pid))


class _Pointers:
    """Where the catalog says that tables are."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=30)) as connection:
            try:
                rows = connection.execute("select table_name, metadata_location from iceberg_tables")
                return {name: pointer for name, pointer in rows if name.startswith("t_")}
            except sqlite3.OperationalError:
                return {}

    def of(self, table: str) -> str | None:
        return self.all().get(table)

    def moved(self, table: str, before: str | None) -> bool:
        return self.of(table) != before


def _until(process: subprocess.Popen[bytes], condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            sys.exit(f"the process ended with {process.returncode}")
        if time.monotonic() > deadline:
            sys.exit(f"nothing in {seconds:.0f} s")
        time.sleep(_STEP_SECONDS)


def _settled(pointers: _Pointers) -> None:
    """Wait until no table has changed for some seconds."""
    last, since = pointers.all(), time.monotonic()
    while time.monotonic() - since < 5.0:
        time.sleep(0.2)
        if (now := pointers.all()) != last:
            last, since = now, time.monotonic()


@contextmanager
def running(way: str, root: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "engine", "start", "--project-dir", str(root), "--log-format", "json", *options]
    if way == "script":
        jars = ",".join(map(str, jar_paths(("core",), fetch=True, java=find_java())))
        command = [sys.executable, "-m", "benchmarks._by_hand_live", str(root), jars]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home)}
    with (root / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if kept := os.environ.get("LIVE_OUTPUT"):
                shutil.copy(root / "output", kept)


def processes(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from processes(int(child))


def processor(pid: int) -> float:
    """Seconds of processor time of a process and its children, those that have ended too."""
    ticks = 0
    for one in processes(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    """MB of a process and its children."""
    return sum(map(memory_of, processes(pid)))


def memory_of(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


if __name__ == "__main__":
    main()
