"""Disk and memory of state: 10^5 to 4 * 10^6 keys of a dedup and of windows, up to 10^6 of a join.

    python -m benchmarks.state_size [--small]

Each size is one build of a new model, with a local master of two cores, two partitions of state, a heap of 1 GB and
100,000 keys in a micro-batch. The key is a bigint for the dedup, a text of 32 hexadecimal digits that do not compress
well for the others. `--small` runs a hundredth of each. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks._commands import ROOT, keep, prepare, resident_mb, write_events, write_project
from engine.spark.java import find_java

STEP = timedelta(seconds=1)
KEYS_OF_A_FILE = 100_000
SIZES = {"dedup": (10**5, 10**6, 4 * 10**6), "windows": (10**5, 10**6, 4 * 10**6), "join": (10**5, 10**6)}
STREAMS = "/*---\nstreams: {shop.events: {watermark: at delay 10 days%s, max_files_per_trigger: 1}}\n%s---*/\n"
EVENTS = "{{ source('shop', 'events') }}"
WORKS = {
    "dedup": f"{STREAMS % (', dedup: [id]', '')}select id, kind from {EVENTS}\n",
    "windows": STREAMS
    % ("", 'windows: {day: "tumbling(at, 1 day)"}\n')
    + f"select day.start as day, md5(string(id)) as code, count(*) as n, sum(amount) as amount from {EVENTS}\n"
    "group by day, code\n",
    "join": STREAMS % ("", "") + f"select a.id, a.kind, b.amount from {EVENTS} as a join {EVENTS} as b\n"
    "on md5(string(a.id)) = md5(string(b.id + 1000000000))\n"
    "and b.at between a.at - interval 1 day and a.at + interval 1 day\n",
}


@dataclass(frozen=True, slots=True)
class StateSize:
    """The state of a model after a build.

    Attributes:
        work: what the model does.
        rows: in state, as Spark counts them.
        disk_mb: of the state in the checkpoint, with the versions that Spark keeps.
        resident_mb: most memory of all processes of the build.
        seconds: of the last micro-batch.
    """

    work: str
    keys: int
    rows: int
    disk_mb: float
    resident_mb: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    prepare()
    results = []
    for work in WORKS:
        for keys in SIZES[work]:
            result = _built(work, keys // 100 if options.small else keys)
            print(json.dumps(asdict(result)), flush=True)
            results.append(result)
    if not options.small:
        keep("state-size", results, 1)


def _built(work: str, keys: int) -> StateSize:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, {work: WORKS[work]})
        rows = min(keys, KEYS_OF_A_FILE)
        write_events(root, keys // rows, rows, STEP)
        *_, (last, resident) = _batches(root)
        disk = sum(path.stat().st_size for path in root.rglob("state/**/*") if path.is_file())
        state_rows = sum(held["count"] for held in last["held"])
        return StateSize(work, keys, state_rows, round(disk / 2**20, 1), resident, round(last["seconds"], 2))


def _batches(root: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Each micro-batch of a build, with the most memory so far."""
    command = [sys.executable, "-m", "engine", "build", "--log-format", "json", "--project-dir", str(root)]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "ENGINE_WARMUP": "off"}
    most = 0
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            most = max(most, resident_mb(process.pid))
            if event.get("event") == "BatchCommitted":
                yield event, most
    if process.returncode:
        sys.exit(f"the build ended with {process.returncode}")


if __name__ == "__main__":
    main()
