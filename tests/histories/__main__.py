"""`python -m tests.histories --count 100 --seed 1`: prints each history that differs, shrunk; exit code 1 if one does."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.histories.lab import opened
from tests.histories.shrink import failure, shrunk
from tests.histories.steps import MODELS, OPERATIONS, plan
from tests.odd_folders.names import odd_name
from tests.services.kafka import running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--only", type=int, help="one history")
    parser.add_argument("--every", type=int, default=1, help="with 2, each second history")
    parser.add_argument("--length", type=int, default=6, help="steps after the first")
    parser.add_argument("--models", type=int, default=3, help="how many models a project has at most")
    parser.add_argument("--of", default="", help=f"only these models: {','.join(MODELS)}")
    parser.add_argument("--without", default="", help=f"operations to leave out: {','.join(OPERATIONS)}")
    parser.add_argument("--start", action="store_true", help="engine start in place of engine build; nothing is shrunk")
    parser.add_argument("--odd-folders", action="store_true", help="the lake and projects in folders with random names")
    parser.add_argument("--verbose", action="store_true", help="print each step")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    given = parser.parse_args()
    operations = tuple(name for name in OPERATIONS if name not in given.without.split(","))
    names = tuple(given.of.split(",")) if given.of else MODELS
    numbers = range(given.first, given.first + given.count, given.every) if given.only is None else [given.only]
    out, begin, different = sys.stdout, time.monotonic(), 0
    tally: Counter[str] = Counter()

    def tell(line: str) -> None:
        print(line, file=out, flush=True)

    temporary = tempfile.TemporaryDirectory(prefix="histories", ignore_cleanup_errors=True)
    # Jinja reads the path of the lake in the project's file.
    lake = odd_name(random.Random(given.seed), without="{:") if given.odd_folders else "lab"
    with (
        temporary as folder,
        opened(Path(folder) / lake) as (session, printed),
        running(Path(folder) / "kafka") as broker,
    ):
        for number in numbers:
            since = time.monotonic()
            history = plan(given.seed, number, given.length, operations, given.models, names)
            if given.verbose:
                tell(f"history {number} of seed {given.seed}: {', '.join(history.models)}")
            told = tell if given.verbose else None
            found = failure(
                history,
                Path(folder),
                session,
                printed,
                told,
                tally,
                broker,
                kept=given.start,
                odd=given.seed if given.odd_folders else None,
            )
            if given.verbose:
                tell(f"  {time.monotonic() - since:.1f} s")
            if found is None:
                continue
            different += 1
            tell(f"--- history {number} of seed {given.seed}\n  {found}")
            if given.shrink and not given.start:
                history, found = shrunk(history, found, Path(folder), session, printed, broker)
                tell(f"  shrunk:\n{history}\n  {found}")
    seconds, count = time.monotonic() - begin, len(numbers)
    for name, number in sorted(tally.items()):
        tell(f"  {number:5} {name}")
    tell(f"{count - different} of {count} histories of seed {given.seed} without a difference, {seconds:.0f} s")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
