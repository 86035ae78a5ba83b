"""What grows with records, with tables and with time: a build's cost per record and per table, memory, files.

    python -m benchmarks.growth [--only records,tables,hour] [--small]

`records`: 10^5, 10^6 and 10^7 records of one source, each into a new table (rows passed on, an hourly window, an upsert
of 10^5 keys). `tables`: 10, 100 and 1,000 streaming tables in one lake, all new, then nothing new, then one edited.
`hour`: an hour of input, a file a second, each a micro-batch of dedup and a window of a minute, in one process, faster
than real time. `--small` runs a hundredth of each. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from benchmarks._commands import ROOT, Measured, keep, prepare, resident_mb, timed, write_events, write_project
from benchmarks.streams import APPEND, UPSERT, WINDOW
from engine.spark.java import find_java

MINUTE = """\
/*---
streams: {shop.events: {watermark: at delay 10 seconds, dedup: [id], max_files_per_trigger: 1}}
windows: {minute: "tumbling(at, 1 minute)"}
---*/
select minute.start as minute, kind, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }}
group by minute, kind
"""
LOGGED = """\
name: bench
targets:
  dev:
    schema: main
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "-Xlog:gc:file={log}"}}}}
"""
# [12.3s][info][gc] GC(7) Pause Full (Allocation Failure) 123M->45M(256M) 3.4ms
_COLLECTED = re.compile(r"Pause Full.*? (\d+)M->(\d+)M\(\d+M\)")
_TENTHS = 10
_T = TypeVar("_T", int, float)


@dataclass(frozen=True, slots=True)
class Result:
    """A build.

    Attributes:
        work: what it did.
        size: records, tables or micro-batches.
        measured: the whole command.
    """

    work: str
    size: int
    measured: Measured


@dataclass(frozen=True, slots=True)
class Hour:
    """A long build, by tenths of its micro-batches.

    Attributes:
        batches: micro-batches with rows.
        seconds: of the whole command.
        batch_seconds: the median of a micro-batch.
        heap_mb: the least heap after a full collection.
        resident_mb: memory of all processes, at the end of the tenth.
        files: files below `.engine/` by what they are, after the build.
        megabytes: likewise.
    """

    batches: int
    seconds: float
    batch_seconds: list[float]
    heap_mb: list[int]
    resident_mb: list[int]
    files: dict[str, int] = field(default_factory=dict)
    megabytes: dict[str, float] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="records,tables,hour")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    prepare()
    part = 100 if options.small else 1
    works: dict[str, Callable[[int], Iterator[Result | Hour]]] = {"records": _records, "tables": _tables, "hour": _hour}
    for name in options.only.split(","):
        results: list[Result | Hour] = []
        for result in works[name](part):
            print(json.dumps(asdict(result)), flush=True)
            results.append(result)
        if not options.small:
            keep(name, results, 1)


def _records(part: int) -> Iterator[Result]:
    works = {"append": APPEND, "window": WINDOW, "upsert": UPSERT}
    for size in (10**5 // part, 10**6 // part, 10**7 // part):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            write_project(root, works)
            files = max(1, size // 100_000)
            write_events(root, files, size // files, keys=100_000)
            for name in works:
                yield Result(name, size, _engine(root, "-s", name))


def _tables(part: int) -> Iterator[Result]:
    for size in (10, 100, 1000 // part):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            write_project(root, {f"table_{number:04}": APPEND for number in range(size)})
            write_events(root, 1, 200)
            yield Result("all new", size, _engine(root))
            yield Result("no new data", size, _engine(root))
            (root / "models/table_0003.sql").write_text(APPEND.replace("'lost'", "'sent'"), encoding="utf-8")
            yield Result("one edited", size, _engine(root))


def _engine(root: Path, *options: str) -> Measured:
    return timed([sys.executable, "-m", "engine", "build", *options, "--project-dir", str(root)])


def _hour(part: int) -> Iterator[Hour]:
    batches = 3600 // part
    with tempfile.TemporaryDirectory() as folder:
        root, log = Path(folder, "project"), Path(folder, "gc.log")
        root.mkdir()
        write_project(root, {"minutes": MINUTE}, LOGGED.format(log=log))
        write_events(root, batches, 20, timedelta(seconds=1))
        yield _followed(root, log)


def _followed(root: Path, log: Path) -> Hour:
    command = [sys.executable, "-m", "engine", "build", "--log-format", "json", "--project-dir", str(root)]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "ENGINE_WARMUP": "off"}
    begin = time.monotonic()
    times, heaps, resident = [], [], []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event.get("event") == "BatchCommitted":
                times.append(event["seconds"])
                heaps.append(_heap(log))
                resident.append(resident_mb(process.pid))
    if process.returncode:
        sys.exit(f"the build ended with {process.returncode}")
    files, megabytes = _left(root / ".engine")
    return Hour(
        len(times),
        round(time.monotonic() - begin, 1),
        [round(statistics.median(part), 3) for part in _tenths(times)],
        [min(part) for part in _tenths(heaps)],
        [max(part) for part in _tenths(resident)],
        files,
        megabytes,
    )


def _tenths(values: list[_T]) -> list[list[_T]]:
    size = max(1, len(values) // _TENTHS)
    return [values[start : start + size] for start in range(0, size * _TENTHS, size) if values[start : start + size]]


def _heap(log: Path) -> int:
    """MB of heap that the last full collection left."""
    found = _COLLECTED.findall(log.read_text()) if log.is_file() else []
    return int(found[-1][1]) if found else 0


def _left(folder: Path) -> tuple[dict[str, int], dict[str, float]]:
    """Files and MB below a folder, by kind."""
    files: dict[str, int] = {}
    sizes: dict[str, float] = {}
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        parts = path.relative_to(folder).parts
        kinds = [kind for kind in ("metadata", "data", "offsets", "commits", "sources", "state") if kind in parts[2:]]
        kind = kinds[-1] if kinds else "other"
        files[kind] = files.get(kind, 0) + 1
        sizes[kind] = round(sizes.get(kind, 0) + path.stat().st_size / 2**20, 3)
    return files, sizes


if __name__ == "__main__":
    main()
