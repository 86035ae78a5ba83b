"""`engine start` beside a plain PySpark driver with processing-time triggers: idle cost, and from a file to its row.

    python -m benchmarks.live [--models 60] [--files 40] [--idle 60] [--only engine,script]
    python -m benchmarks.live --models 20 --turns 10000

Each of the models reads a folder of its own and appends to a table. Idle: processor time of all processes while
nothing arrives, from a minute after the first load on. Latency: a file is renamed into a random folder, and the clock
stops when the catalog points to a new state of the model's table; the next file follows a random time later. Backlog:
the same while another model of the same process reads thousands of files. `--turns`: as many turns as fast as they
come, and what grows with them: files, bytes, the time of a turn, memory. Results are kept as JSON in
benchmarks/results/.
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
    parser.add_argument("--turns", type=int, help="measure what grows in so many turns instead")
    chosen = parser.parse_args()
    if chosen.turns:
        keep("live-turns", list(_grown(chosen.turns, chosen.models)), 1)
        return
    results: list[Result] = []
    for way in chosen.only.split(","):
        with tempfile.TemporaryDirectory(prefix="live") as folder:
            root = Path(folder)
            _write(root, chosen.models)
            for result in _measured(way, root, chosen):
                print(json.dumps({k: v for k, v in vars_of(result).items() if v is not None}), flush=True)
                results.append(result)
    keep("live", results, 1)


@dataclass(frozen=True, slots=True)
class Tenth:
    """A tenth of many turns, and what there was after it.

    Attributes:
        turns: since the start.
        turn: seconds of a turn, the median.
        processor: seconds of processor time for each turn.
        files: below target/ and .engine/, without data files.
        bytes: of these.
        data_files: of tables.
        python: memory in MB.
        java: memory in MB.
    """

    turns: int
    turn: float
    processor: float
    files: int
    bytes: int
    data_files: int
    python: int
    java: int


def _grown(turns: int, models: int) -> Iterator[Tenth]:
    """Land files so that every model always has one to read, and look at what is there after each tenth."""
    with tempfile.TemporaryDirectory(prefix="live") as folder:
        root = Path(folder)
        _write(root, models)
        with _running("engine", root, "--maintain-after", "50") as process:
            number, done, read = 0, 0, 0
            for tenth in range(1, 11):
                before, took = _processor(process.pid), []
                while done < turns * tenth // 10:
                    for line, seconds in _new_turns(root / "output", read):
                        read = line
                        took.append(seconds)
                        done += 1
                    number += 1
                    for name in range(models):
                        _land(root, f"s{name}", number, 5)
                    # About as fast as they are read.
                    while done + len(_new_turns(root / "output", read)) < number * models - models:
                        time.sleep(0.05)
                files, size, data = _kept(root)
                memory = {pid: _memory_of(pid) for pid in _tree(process.pid)}
                java = sum(m for pid, m in memory.items() if Path(f"/proc/{pid}/comm").read_text().strip() == "java")
                processor = (_processor(process.pid) - before) / max(len(took), 1)
                found = Tenth(done, round(statistics.median(took), 3), round(processor, 3), files, size, data,
                              sum(memory.values()) - java, java)  # fmt: skip
                print({name: getattr(found, name) for name in Tenth.__slots__}, flush=True)
                yield found


def _new_turns(output: Path, read: int) -> list[tuple[int, float]]:
    """The turns that wrote something, after a place in the output: where each ends, and its seconds."""
    found = []
    with output.open("rb") as lines:
        lines.seek(read)
        for line in lines:
            if not line.endswith(b"\n"):
                break
            read += len(line)
            if b'"NodeTurnFinished"' in line and b'"success"' in line:
                found.append((read, float(json.loads(line)["seconds"])))
    return found


def _kept(root: Path) -> tuple[int, int, int]:
    """Files below target/ and .engine/ and their bytes, and data files."""
    sizes = []
    data = 0
    for path in [*(root / "target").rglob("*"), *(root / ".engine").rglob("*")]:
        if path.is_file():
            data += path.suffix == ".parquet"
            if path.suffix != ".parquet":
                sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes), data


def vars_of(result: Result) -> dict[str, object]:
    """The fields of a result by name."""
    return {name: getattr(result, name) for name in Result.__slots__}


def _write(root: Path, models: int) -> None:
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
        _land(root, name, 0)


def _land(root: Path, name: str, number: int, rows: int = 20) -> float:
    """Rename a file into a folder, and return when."""
    hidden = root / "landing" / name / f"_{number}.json"
    hidden.write_text("".join(f'{{"id": {number * rows + row}, "kind": "k{row % 3}"}}\n' for row in range(rows)))
    moment = time.monotonic()
    hidden.rename(hidden.with_name(f"{number:06}.json"))
    return moment


def _measured(way: str, root: Path, chosen: argparse.Namespace) -> Iterator[Result]:
    names = [f"s{n}" for n in range(chosen.models)]
    catalog = root / ".engine" / "lake" / "catalog.db" if way == "engine" else root / "hand" / "catalog.db"
    with _running(way, root) as process:
        pointers = _Pointers(catalog)
        _until(process, lambda: len(pointers.all()) > len(names), 240.0)
        _settled(pointers)
        # Java compiles what the first turns have run.
        time.sleep(_REST_SECONDS)
        before = _processor(process.pid)
        time.sleep(chosen.idle)
        idle = (_processor(process.pid) - before) / chosen.idle
        yield Result(way, "idle", chosen.models, round(idle, 4), memory=_memory(process.pid))
        yield _latency(way, "one file", root, process, pointers, names, chosen.files)
        for number in range(1, chosen.backlog + 1):
            _land(root, "backlog", number, 50)
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
        begin = _land(root, name, number + count)
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
def _running(way: str, root: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
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


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _tree(int(child))


def _processor(pid: int) -> float:
    """Seconds of processor time of a process and its children, those that have ended too."""
    ticks = 0
    for one in _tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    """MB of a process and its children."""
    return sum(map(_memory_of, _tree(pid)))


def _memory_of(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


if __name__ == "__main__":
    main()
