"""`python -m tests.clones --count 50 --seed 1`: prints histories of clones that differ; exit code 1 if one does."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.clones.world import POINTS, World
from tests.histories.difference import DifferenceError
from tests.histories.lab import opened

_STEPS = ("land", "land", "production", "production", "clone", "clone", "clone", "edit", "maintain", "drop")


def run(seed: int, number: int, length: int, world: World, tell: Any) -> None:
    """Run the history of a seed and a number; both sides are built at its end.

    Raises:
        DifferenceError: something differs.
    """
    dice = random.Random(f"{seed}/{number}")
    world.land(dice)
    world.production("")
    for _ in range(length):
        step, point = dice.choice(_STEPS), dice.choice(("", *POINTS))
        tell(f"  {step} {point}")
        if step in ("production", "clone"):
            getattr(world, step)(point)
        elif step == "land":
            world.land(dice)
        else:
            if step == "edit":
                world.clone("")
            getattr(world, step)()
    world.production("")
    world.clone("")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clones", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=8)
    given = parser.parse_args()
    out, begin, different = sys.stdout, time.monotonic(), 0
    tally: Counter[str] = Counter()
    temporary = tempfile.TemporaryDirectory(prefix="clones", ignore_cleanup_errors=True)
    with temporary as folder, opened(Path(folder)) as (session, printed):
        for number in range(given.first, given.first + given.count):
            world = World.made(Path(folder) / str(number), session, printed)
            told: list[str] = []
            try:
                run(given.seed, number, given.length, world, told.append)
            except DifferenceError as error:
                different += 1
                print(f"--- history {number} of seed {given.seed}", *told, f"  {error}", sep="\n", file=out, flush=True)
            tally += world.tally
            print(f"history {number}: {time.monotonic() - begin:.0f} s", file=out, flush=True)
    for name, count in sorted(tally.items()):
        print(f"  {count:5} {name}", file=out)
    print(f"{given.count - different} of {given.count} histories without a difference", file=out, flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
