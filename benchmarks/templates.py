"""What a process with limits for templates costs a compilation (docs/design/005): CPU time with it and without.

    python -m benchmarks.templates [--models 1000] [--pairs 10]

Each run is a process of its own with an empty cache; runs with and without take turns, and the ratio of each pair
counts, so that noise of the machine meets both alike. CPU is that of the command and of all that it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import projects

_RUN = """
import resource, sys, time
from engine.cli.main import invoke
if sys.argv[1] == "without":
    from engine.compile.templates import confined_process
    confined_process.confined = lambda work, *arguments: work(*arguments)
begin = time.perf_counter()
code = invoke(["compile", "--quiet", "--project-dir", sys.argv[2]])
seconds = time.perf_counter() - begin
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(code, sum(u.ru_utime + u.ru_stime for u in used), seconds)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        projects.headrace(options.models, root)
        _compile(root, Path(folder) / "first", "with")
        pairs = [
            (_compile(root, Path(folder) / f"with{n}", "with"), _compile(root, Path(folder) / f"without{n}", "without"))
            for n in range(options.pairs)
        ]
    for index, what in enumerate(("seconds of CPU", "seconds")):
        ratios = sorted(one[index] / other[index] for one, other in pairs)
        best = [min(run[side][index] for run in pairs) for side in (0, 1)]
        middle = statistics.median(ratios)
        print(
            f"{what}: {best[0]:.2f} with, {best[1]:.2f} without ({best[0] / best[1] - 1:+.1%} of the best); median of"
            f" {len(ratios)} pairs {middle - 1:+.1%}, {ratios[0] - 1:+.1%} to {ratios[-1] - 1:+.1%}"
        )


def _compile(root: Path, cache: Path, how: str) -> tuple[float, float]:
    """Seconds of CPU, and seconds, of a compilation with an empty cache."""
    cache.mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, how, str(root)], env={**os.environ, "ENGINE_CACHE": str(cache)}, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    code, cpu, seconds = map(json.loads, done.stdout.split())
    assert code == 0
    return cpu, seconds


if __name__ == "__main__":
    main()
