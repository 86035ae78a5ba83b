"""`engine start` beside a plain PySpark driver with processing-time triggers: idle cost, and from a file to its row.

    python -m benchmarks.live [--models 60] [--files 40] [--idle 60] [--only engine,script] [--topics]
        [--busy]

Each of the models reads a folder of its own and appends to a table. Idle: processor time of all processes while
nothing arrives, from a minute after the first load on. Latency: a file is renamed into a random folder, and the clock
stops when the catalog points to a new state of the model's table; the next file follows a random time later. Backlog:
the same while another model of the same process reads thousands of files. With `--topics` each model reads a topic of a
real broker in place of a folder, and a record is sent. What grows with many turns is measured by
benchmarks/live_growth.py. Of two models, the second one of which reads the table of the first, the clock stops at the
second table. Results are kept as JSON in benchmarks/results/.
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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._commands import ROOT, keep, wait_until_quiet
from engine.spark.jars import jar_paths
from engine.spark.java import find_java

if TYPE_CHECKING:
    from tests.services.kafka import Broker

_SCHEMA = "id bigint, kind string"
# Reads the table of the first model.
SECOND = "t_second"
_WAIT_SECONDS = 120.0
_STEP_SECONDS = 0.005
_REST_SECONDS = 60.0
# Of a machine with other work, for the first load of all tables.
_FIRST_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one way.

    Attributes:
        way: `engine` or `script`, and its trigger.
        work: `idle`, `one file`, `one file beside a backlog` or `one file through two models`; `one record` of a topic.
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
    parser.add_argument("--topics", action="store_true", help="topics in place of folders")
    parser.add_argument("--busy", action="store_true", help="the machine has other work: keep the results apart")
    chosen = parser.parse_args()
    results: list[Result] = []
    if not chosen.busy:
        wait_until_quiet()
    for way in chosen.only.split(","):
        with tempfile.TemporaryDirectory(prefix="live") as folder, _broker(Path(folder), chosen) as broker:
            root = Path(folder) / "project"
            root.mkdir()
            write_project(root, chosen.models, broker, second=True)
            for result in _measured(way, root, chosen, broker):
                print(json.dumps({k: v for k, v in vars_of(result).items() if v is not None}), flush=True)
                results.append(result)
    keep(f"live{'-topics' if chosen.topics else ''}{'-busy' if chosen.busy else ''}", results, 1)


@contextmanager
def _broker(folder: Path, chosen: argparse.Namespace) -> Iterator[Broker | None]:
    if not chosen.topics:
        yield None
        return
    from tests.services.kafka import running as broker_running

    with broker_running(folder / "kafka") as broker:
        yield broker


def vars_of(result: Result) -> dict[str, object]:
    """The fields of a result by name."""
    return {name: getattr(result, name) for name in Result.__slots__}


def write_project(
    root: Path, models: int, broker: Broker | None = None, header: str = "", *, second: bool = False
) -> None:
    """A project whose models each read a folder, or a topic of a broker, and one that reads the folder of a backlog.

    `header`: more lines of each model's header; `second`: one more model reads the table of the first.
    """
    connections = f", connections: {{main: {{bootstrap_servers: '{broker.address}'}}}}" if broker else ""
    target = f"{{schema: main, spark: {{master: 'local[2]'}}{connections}}}"
    (root / "project.yml").write_text(f"name: live\ntargets:\n  dev: {target}\n")
    names = [f"s{n}" for n in range(models)]
    tables = [_source(name, broker) for name in names] + [_source("backlog", None)]
    (root / "sources").mkdir()
    (root / "sources/shop.yml").write_text("sources:\n  - name: shop\n    tables:\n" + "\n".join(tables) + "\n")
    (root / "models").mkdir()
    for name in [*names, "backlog"]:
        more = ", max_files_per_trigger: 50" if name == "backlog" else ""
        text = f"/*---\nstreams: {{shop.{name}: {{on_bad_record: fail{more}}}}}\n{header}---*/\n"
        text += f"select id, kind from {{{{ source('shop', '{name}') }}}} where kind <> 'lost'\n"
        (root / "models" / f"t_{name}.sql").write_text(text)
    if second:
        text = f"/*---\nstreams: [t_{names[0]}]\n{header}---*/\nselect id, kind from {{{{ ref('t_{names[0]}') }}}}\n"
        (root / "models" / f"{SECOND}.sql").write_text(text)
    for name in [*names, "backlog"]:
        if broker is None or name == "backlog":
            (root / "landing" / name).mkdir(parents=True)
            land(root, name, 0)
        else:
            broker.create(name)
            _send(broker, name, 0)
    if broker is not None:
        (root / "topics").write_text("\n".join([broker.address, *names]))


def _source(name: str, broker: Broker | None) -> str:
    where = f"format: kafka, connection: main, topic: {name}" if broker else f"format: json, path: landing/{name}"
    return f"      - {{name: {name}, {where}, schema: '{_SCHEMA}'}}"


def _send(broker: Broker, name: str, number: int) -> float:
    """Send a record to a topic, and return when."""
    # One that is kept: a new one asks for the topic before it sends.
    if (producer := _producers.get(broker.address)) is None:
        producer = _producers[broker.address] = broker.producer()
    moment = time.monotonic()
    producer.produce(name, json.dumps({"id": number, "kind": "k1"}))
    assert producer.flush(30) == 0
    return moment


_producers: dict[str, Any] = {}


def land(root: Path, name: str, number: int, rows: int = 20) -> float:
    """Rename a file into a folder, and return when."""
    hidden = root / "landing" / name / f"_{number}.json"
    hidden.write_text("".join(f'{{"id": {number * rows + row}, "kind": "k{row % 3}"}}\n' for row in range(rows)))
    moment = time.monotonic()
    hidden.rename(hidden.with_name(f"{number:06}.json"))
    return moment


def _measured(way: str, root: Path, chosen: argparse.Namespace, broker: Broker | None) -> Iterator[Result]:
    names = [f"s{n}" for n in range(chosen.models)]
    catalog = root / ".engine" / "lake" / "catalog.db" if way == "engine" else root / "hand" / "catalog.db"
    with running(way, root) as process:
        pointers = _Pointers(catalog)
        _until(process, lambda: len(pointers.all()) > len(names) + 1, _FIRST_SECONDS)
        _settled(pointers)
        # Java compiles what the first turns have run.
        time.sleep(_REST_SECONDS)
        before = processor(process.pid)
        time.sleep(chosen.idle)
        idle = (processor(process.pid) - before) / chosen.idle
        yield Result(way, "idle", chosen.models, round(idle, 4), memory=_memory(process.pid))
        arrive = partial(land, root) if broker is None else partial(_send, broker)
        what = "one record" if broker else "one file"
        yield _latency(way, what, process, pointers, names, chosen.files, arrive)
        both = _latency(way, f"{what} through two models", process, pointers, names[:1], chosen.files, arrive, SECOND)
        yield replace(both, models=len(names))
        if not chosen.backlog:
            return
        for number in range(1, chosen.backlog + 1):
            land(root, "backlog", number, 50)
        yield _latency(way, f"{what} beside a backlog", process, pointers, names, chosen.files, arrive)


def _latency(
    way: str, work: str, process: subprocess.Popen[bytes], pointers: _Pointers, names: Sequence[str], files: int,
    arrive: Callable[[str, int], float], last: str = "",
) -> Result:  # fmt: skip
    chance = random.Random(7)
    number = 20_000 if last else 10_000 if "backlog" in work else 0
    took: list[float] = []
    for count in range(1, files + 1):
        time.sleep(chance.uniform(0.2, 1.5))
        name = chance.choice(names)
        table = last or f"t_{name}"
        before = pointers.of(table)
        begin = arrive(name, number + count)
        _until(process, partial(pointers.moved, table, before), _WAIT_SECONDS)
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
        jars = ",".join(map(str, jar_paths(("core", "kafka"), fetch=True, java=find_java())))
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
