"""Commands that a warm process carries out beside the same commands in a process of their own, in turns.

`python -m benchmarks.warm [--rounds 5]`: one windowed model of which each build reads one new file, its unit test, and
`show`. Each number is the wall time of a whole command, from its process to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_FILES = {
    "project.yml": "name: warm\n",
    "sources/shop.yml": "sources: [{name: shop, tables: [{name: events, format: json, path: landing, schema: "
    "'id int, at timestamp, kind string, amount double'}]}]\n",
    "models/hourly.sql": """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, kind, count(*) as n from {{ source('shop', 'events') }} group by hour, kind
""",
    "tests/hourly.yml": """unit_tests:
  - name: counts
    model: hourly
    given: {shop.events: [{id: 1, at: 2024-05-01 10:00:00, kind: a}]}
    expect: {rows: []}
""",
}
_WORK = {
    "build, one new file": ("build", "-s", "hourly", "--exclude", "test_type:unit"),
    "unit test": ("test", "-s", "test_type:unit", "--no-cache"),
    "show": ("show", "hourly", "--limit", "1"),
    "build, nothing new": ("build", "-s", "hourly", "--exclude", "test_type:unit"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in _FILES.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        (root / "landing").mkdir()
        _land(root, 0)
        seconds: dict[tuple[str, str], list[float]] = {}
        opening = _timed(root, ("warmup", "--stay", "20m"), warm=True)
        try:
            for number in range(1, rounds + 2):
                for place, how in enumerate(("own", "warm")):
                    for work, arguments in _WORK.items():
                        if work == "build, one new file":
                            _land(root, 2 * number + place)
                        taken = _timed(root, arguments, warm=how == "warm")
                        # The first round compiles in Java what later ones find.
                        if number > 1:
                            seconds.setdefault((work, how), []).append(taken)
        finally:
            _timed(root, ("warmup", "--stop"), warm=True)
    print(
        f"load {os.getloadavg()[0]:.1f}; the warm process was ready after {opening:.1f} s; medians of {rounds} rounds"
    )
    for work in _WORK:
        own, warm = (statistics.median(seconds[work, how]) for how in ("own", "warm"))
        print(f"{work:22} own process {own:6.2f} s   warm {warm:6.2f} s   ratio {warm / own:.2f}")


def _land(root: Path, number: int) -> None:
    rows = [{"id": i, "at": f"2024-05-{1 + number % 28:02}T10:00:00Z", "kind": "a", "amount": 1.0} for i in range(100)]
    (root / "landing" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _timed(root: Path, arguments: tuple[str, ...], *, warm: bool) -> float:
    environment = dict(os.environ) if warm else {**os.environ, "ENGINE_NO_WARM": "1"}
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "engine", *arguments],
        cwd=root, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
