"""What benchmarks of streams share: a project of events, a command from start to end, and the file of results."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine import __version__
from engine.spark.java import find_java

ROOT = Path(__file__).parents[1]
# prctl(2): the JVM that a script leaves behind becomes a child of this process, so that its processor time counts.
_SET_CHILD_SUBREAPER = 36
RESULTS = Path(__file__).parent / "results"
# Of a minute, of what else runs on the machine.
MOST_LOAD = 0.5
_LOADS: list[float] = []
_FIRST = datetime(2024, 5, 1, tzinfo=UTC)
_KINDS = ("paid", "refund", "sent", "lost")

PROJECT = "name: bench\ntargets:\n  dev: {schema: main, spark: {master: 'local[2]'}}\n"
SOURCE = """\
sources:
  - name: shop
    tables:
      - {name: events, format: json, path: landing, schema: "id bigint, at timestamp, kind string, amount double"}
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A process from start to end, in seconds: by the clock, and of processor time with its children."""

    seconds: float
    cpu: float


def prepare() -> None:
    """Wait for a quiet machine, let the time of grandchildren count, and write the class archive."""
    wait_until_quiet()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    subprocess.run([sys.executable, "-m", "engine", "warmup"], check=True, capture_output=True)


def wait_until_quiet() -> None:
    """Wait until the load of the last minute is at most `MOST_LOAD`; end the process after ten minutes.

    With `BUSY=1` in the environment it goes on, and the results say what the load was.
    """
    until = time.monotonic() + 600
    while (load := os.getloadavg()[0]) > MOST_LOAD and not os.environ.get("BUSY"):
        if time.monotonic() > until:
            sys.exit(
                f"the load of the last minute is {load:.1f}, more than {MOST_LOAD}: other work would be measured too"
            )
        print(f"waiting for a quiet machine: load {load:.1f}", file=sys.stderr)
        time.sleep(20)
    _LOADS.append(load)


def write_project(root: Path, models: Mapping[str, str], project: str = PROJECT) -> None:
    files = {"project.yml": project, "sources/shop.yml": SOURCE}
    files |= {f"models/{name}.sql": text for name, text in models.items()}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_events(root: Path, files: int, rows: int, step: timedelta = timedelta(minutes=30), keys: int = 0) -> None:
    """Files of events for the source of `write_project`.

    Args:
        root: the project.
        files: how many; each is a micro-batch where the model takes one file each.
        rows: in each file.
        step: of event time from file to file.
        keys: how many ids there are; 0: each row has its own.
    """
    folder = root / "landing"
    folder.mkdir(exist_ok=True)
    for number in range(files):
        at = _FIRST + step * number
        times = [(at + step * part / 60).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for part in range(60)]
        ids = range(number * rows, (number + 1) * rows)
        lines = (
            f'{{"id":{key % keys if keys else key},"at":"{times[row % 60]}",'
            f'"kind":"{_KINDS[row % 4]}","amount":{row % 977}.5}}\n'
            for row, key in enumerate(ids)
        )
        path = folder / f"{number:05}.json"
        path.write_text("".join(lines), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def timed(command: Sequence[str], folder: Path = ROOT, environment: dict[str, str] | None = None) -> Measured:
    others = _children()
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "ENGINE_WARMUP": "off", **(environment or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    _reap(others)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return Measured(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _children() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def _reap(others: set[int]) -> None:
    """Wait for the processes that a command has left; others, such as a server, go on."""
    while left := _children() - others:
        for pid in left:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def resident_mb(root: int) -> int:
    """MB that a process and its children have in memory."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = (int(fields[1]), int(fields[21]))
    family, pages = {root}, 0
    for pid, (parent, size) in sorted(parents.items()):
        if pid == root or parent in family:
            family.add(pid)
            pages += size
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def keep(name: str, results: Sequence[Any], turns: int) -> None:
    """Write results with the commit, the versions and the load that they were measured with."""
    RESULTS.mkdir(exist_ok=True)
    at = datetime.now(UTC)
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    import pyspark

    cores = len(os.sched_getaffinity(0))
    document = {
        "at": at.strftime("%Y-%m-%dT%H:%MZ"),
        "commit": _commit(),
        "machine": {"processor": model, "cores": cores,
                    "load_before": round(_LOADS[-1] if _LOADS else os.getloadavg()[2], 1)},
        "versions": {"headrace": __version__, "pyspark": pyspark.__version__, "python": platform.python_version(),
                     "java": find_java().version_text},
        "turns": turns,
        "results": [asdict(result) for result in results],
    }  # fmt: skip
    path = RESULTS / f"{at:%Y-%m-%d}-{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"kept in {path.relative_to(ROOT)}", file=sys.stderr)


def _commit() -> str:
    """The commit that is measured, with `+` where files of the package differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout

    return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if git("status", "--porcelain", "engine") else "")
