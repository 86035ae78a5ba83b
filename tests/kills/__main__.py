"""`python -m tests.kills --kills 50 --seed 1`: prints what the kills hit, and how the tables differ; exit code 1 if they do."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.kills.check import differences
from tests.kills.loop import PHASES, build_alone, kill_again_and_again
from tests.kills.project import alone, make
from tests.odd_folders.names import folder_name

ROWS_OF = ("flights", "departures_hourly", "aircraft_history", "journeys", "disruptions")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=14, help="how many days of departures there are to land")
    parser.add_argument("--odd-folders", action="store_true", help="projects in folders with random names")
    given = parser.parse_args()
    begin, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="kills"))
    dice = random.Random(f"{given.seed} folders")
    names = [folder_name(dice) if given.odd_folders else name for name in ("project", "undisturbed")]
    print(f"in {folder}, which stays if something is found", flush=True)
    example = make(alone(folder / names[0]), given.days)
    example.land(8)
    tally = kill_again_and_again(example, given.kills, given.seed, lambda line: print(line, flush=True))
    found = differences(example, alone(folder / names[1]), build_alone)
    found += [f"{path} was written beside the projects" for path in folder.iterdir() if path.name not in names]
    rows = {name: len(example.lab.rows(name)) for name in ROWS_OF}
    for line in found:
        print(line)
    print(f"{tally.kills} kills in {tally.builds} builds, seed {given.seed}, {time.monotonic() - begin:.0f} s:")
    for phase in PHASES:
        print(f"  {tally.phases[phase]:3} {phase}")
    print("at named points: " + ", ".join(f"{count} {point}" for point, count in sorted(tally.points.items())))
    files, steps = sum(map(len, example.steps)), len(example.steps)
    print(f"{files} files in {steps} steps; rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()))
    print("the tables differ" if found else "all tables equal those of a run without kills")
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
