"""How long `engine start` takes to end when it is asked to, at random moments of its life.

    python -m benchmarks.stop [--times 24] [--seed 1]

Each process is asked once, by `engine stop` or by SIGTERM in turn: while it compiles, while Java starts, during first
builds, long micro-batches, maintenance and back-off, while Java or a broker does not answer, or another process has the
lock of a table. The clock stops when the process and its Java have gone. At the end a build reads what is left, and
no row may be missing or there twice. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks._commands import ROOT, keep
from benchmarks.live import processes
from engine.control import ask, socket_path

_PROJECT = """\
name: stops
targets:
  dev:
    schema: main
    spark: {{master: 'local[2]'}}
    connections: {{silent: {{bootstrap_servers: '127.0.0.1:{port}'}}}}
"""
_SOURCES = """\
sources:
  - name: shop
    tables:
      - {name: events, format: json, path: landing, schema: "id bigint, at timestamp"}
      - {name: silent, format: kafka, connection: silent, topic: silent, schema: "id bigint"}
"""
_MODELS = {
    "copied": """\
/*---
streams: {shop.events: {max_files_per_trigger: 1}}
---*/
select id, at from {{ source('shop', 'events') }}
""",
    # A micro-batch of many seconds: each row is computed slowly.
    "slow": """\
/*---
streams: {shop.events: {max_files_per_trigger: 1}}
---*/
select id, aggregate(sequence(1, 20000), 0L, (sum, n) -> (sum + n * id) % 1000003) as total
from {{ source('shop', 'events') }}
""",
    "minutes": """\
/*---
streams: {copied: {watermark: at delay 1 minute}}
windows: {minute: "tumbling(at, 1 minute)"}
---*/
select minute.start as minute, count(*) as n from {{ ref('copied') }} group by minute
""",
    "failing": """\
/*---
streams: [shop.events]
---*/
select cast(concat('x', id) as int) as wrong from {{ source('shop', 'events') }}
""",
    "silent": "/*---\nstreams: [shop.silent]\n---*/\nselect id from {{ source('shop', 'silent') }}\n",
}
_ROWS = 400
_MOST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    """A process that was asked to end.

    Attributes:
        by: how it was asked.
        after: seconds after its start.
        moment: what it was at, as far as its output says.
        seconds: until it and its Java had gone; without those that the command `engine stop` takes to start.
    """

    by: str
    after: float
    moment: str
    seconds: float


def main() -> int:
    """Measure, compare the rows, and keep the results; 1: a row is missing or there twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="stops") as folder, _silent_broker() as port:
        root = Path(folder) / "project"
        _write(root, port)
        landed = 0
        results = []
        for number in range(chosen.times):
            for _ in range(2):
                _land(root, landed)
                landed += _ROWS
            results.append(_stopped(root, chance, number))
            print(results[-1], flush=True)
        rows = _rows(root)
    took = [result.seconds for result in results]
    print(f"{len(took)} times: p50 {statistics.median(took):.1f} s, at most {max(took):.1f} s")
    copied, slow = rows
    if copied != list(range(landed)) or len(set(slow)) != len(slow):
        print("WRONG: rows are missing or there twice")
        return 1
    keep("stop", results, 1)
    return 0


@contextlib.contextmanager
def _silent_broker() -> Iterator[int]:
    """A server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=500) as server:
        yield server.getsockname()[1]


def _write(root: Path, port: int) -> None:
    files = {"project.yml": _PROJECT.format(port=port), "sources/shop.yml": _SOURCES}
    for name, text in {**files, **{f"models/{name}.sql": text for name, text in _MODELS.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "landing").mkdir()


def _land(root: Path, first: int) -> None:
    hidden = root / "landing" / f".{first:09}.json"
    lines = (f'{{"id": {row}, "at": "2024-05-01T{row // 3600 % 24:02}:{row // 60 % 60:02}:{row % 60:02}Z"}}\n'
             for row in range(first, first + _ROWS))  # fmt: skip
    hidden.write_text("".join(lines))
    hidden.rename(hidden.with_name(hidden.name[1:]))


def _stopped(root: Path, chance: random.Random, number: int) -> Result:
    """Start a process, and ask it to end some time later."""
    output = root.parent / f"output{number}"
    options = ("--maintain-after", "2", "--log-format", "json")
    with output.open("wb") as file:
        process = subprocess.Popen(_command(root, "start", *options), cwd=ROOT, stdout=file, stderr=file)
    after = chance.uniform(1.0, 8.0) if number % 3 == 0 else chance.uniform(8.0, 40.0)
    time.sleep(after)
    by = "engine stop" if number % 2 else "SIGTERM"
    # Java that stands still, now and then.
    java = list(_javas(process.pid)) if number % 5 == 4 else []
    for pid in java:
        os.kill(pid, signal.SIGSTOP)
    there = [*processes(process.pid)]
    begin = time.monotonic()
    if by == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    else:
        begin = _asked_to_stop(root, process)
    process.wait(_MOST_SECONDS)
    _await_gone(there)
    seconds = time.monotonic() - begin
    moment = _moment(output) + (", Java stands still" if java else "")
    return Result(by, round(after, 1), moment, round(seconds, 2))


def _asked_to_stop(root: Path, process: subprocess.Popen[bytes]) -> float:
    """Ask as the command `engine stop` does, as soon as somebody listens, and return when."""
    while process.poll() is None:
        begin = time.monotonic()
        if ask(socket_path(root, "dev"), "stop", models=[]) is not None:
            return begin
        # It does not listen before it has compiled.
        time.sleep(0.05)
    return time.monotonic()


def _command(root: Path, *command: str) -> list[str]:
    return [sys.executable, "-m", "engine", *command, "--project-dir", str(root)]


def _javas(pid: int) -> Iterator[int]:
    for one in processes(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{one}/comm").read_text().strip() == "java":
                yield one


def _await_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    while any(_lives(pid) for pid in pids):
        if time.monotonic() > deadline:
            sys.exit("a process has not ended")
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _moment(output: Path) -> str:
    """The last event before the end."""
    import json

    lines = [json.loads(line) for line in output.read_text().splitlines() if line.startswith("{")]
    events = [one for one in lines if one.get("event") not in {"LiveStopped", "NodeTurnFinished", "SessionClosed"}]
    if not events:
        return "before the first run"
    last = events[-1]
    return " ".join(filter(None, (last["event"], last.get("node", "").partition(".")[2], last.get("state", ""))))


def _rows(root: Path) -> tuple[list[int], list[int]]:
    """The ids in a table after a build of what was left, and in the one that takes long, as far as it has come."""
    built = subprocess.run(
        _command(root, "build", "-s", "copied"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    if built.returncode:
        sys.exit(built.stdout[-3000:] + built.stderr[-3000:])
    return rows_of(root, "copied"), rows_of(root, "slow")


def rows_of(root: Path, name: str) -> list[int]:
    """The ids in a table; none if it does not exist yet."""
    from tests.cli.test_watch import table

    try:
        return sorted(id_ for (id_,) in table(root, name, "id"))
    except AssertionError:
        return []


if __name__ == "__main__":
    sys.exit(main())
