"""`python -m tests.odd_folders --count 60 --seed 1`: prints each folder in which something went wrong; exit code 1 if one did."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from tests.histories.lab import Printed, opened
from tests.odd_folders.journey import Fault, Journey, long, short
from tests.odd_folders.project import make

# Every so many projects go the long way.
_LONG = 4


def go(outer: Path, seed: int, number: int, printed: Printed) -> tuple[str, int]:
    """Make a project and go its way; what was found, or an empty text, and the number of commands."""
    dice = random.Random(f"{seed} {number}")
    project = make(outer, dice)
    journey = Journey(project, printed)
    try:
        (long if number % _LONG == 0 else short)(journey)
    except Fault as fault:
        return f"{'/'.join(project.names)!r} {project.folders}: {fault}", journey.commands
    return "", journey.commands


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.odd_folders", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one project")
    given = parser.parse_args()
    numbers = range(given.count) if given.only is None else [given.only]
    out, begin, faults, commands = sys.stdout, time.monotonic(), 0, 0
    temporary = tempfile.TemporaryDirectory(prefix="odd", ignore_cleanup_errors=True)
    environment = patch.dict("os.environ", {"ENGINE_TRUST": "1", "ENGINE_WARMUP": "off"})
    with environment, temporary as folder, opened(Path(folder), own_lakes=True) as (_, printed):
        for number in numbers:
            since, outer = time.monotonic(), Path(folder) / str(number)
            outer.mkdir()
            found, ran = go(outer, given.seed, number, printed)
            commands += ran
            faults += bool(found)
            print(
                f"{number}: {found or 'well'}, {ran} commands, {time.monotonic() - since:.0f} s", file=out, flush=True
            )
    seconds = time.monotonic() - begin
    print(
        f"{len(numbers) - faults} of {len(numbers)} projects of seed {given.seed} well, {commands} commands, {seconds:.0f} s"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
