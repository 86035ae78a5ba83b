"""python -m tests.live.simulation --count 1000 --seed 1: random schedules of `engine start` against the truth."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.live.simulation.schedule import run

parser = argparse.ArgumentParser(prog="python -m tests.live.simulation", description=__doc__)
parser.add_argument("--count", type=int, default=1000, help="number of schedules")
parser.add_argument("--seed", type=int, default=1, help="of the first one; the others follow")
arguments = parser.parse_args()
begin, checks, wrong = time.monotonic(), 0, 0
for seed in range(arguments.seed, arguments.seed + arguments.count):
    with tempfile.TemporaryDirectory() as folder:
        try:
            checks += run(seed, Path(folder))
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}: {error}", flush=True)
    if (done := seed - arguments.seed + 1) % 10 == 0:
        print(f"{done} schedules, {checks:,} statuses compared, {wrong} wrong", flush=True)
print(f"{arguments.count} schedules, {checks:,} statuses compared, {wrong} wrong, {time.monotonic() - begin:.0f} s")
sys.exit(wrong > 0)
