"""`python -m tests.sameness --count 10000 --seed 1`: prints pairs called the same that are not; exit code 1 if there are any."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from tests.fuzz.spark import session
from tests.sameness.compare import Count, faults
from tests.sameness.pairs import pairs
from tests.sameness.spark_says import Spark

_CHUNK = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sameness", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first query")
    parser.add_argument("--show", action="store_true", help="print the pairs, without Spark")
    parser.add_argument("--changed", type=int, default=0, help="print so many equal pairs that are called changed")
    given = parser.parse_args()
    made = islice(pairs(given.seed, given.first), given.count)
    if given.show:
        for pair in made:
            print(f"{pair.one}\n{pair.other}\n")
        return 0
    count, found, started = Count(), 0, time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sameness", ignore_cleanup_errors=True) as name,
        session(Path(name)) as spark,
    ):
        for number, chunk in enumerate(iter(lambda: list(islice(made, _CHUNK)), [])):
            for fault in faults(Spark(spark), Path(name) / str(number), chunk, count):
                found += 1
                print(f"--- fault {found}\n{fault}", flush=True)
            print(f"{count.pairs} pairs, {found} faults, {time.monotonic() - started:.0f} s", flush=True)
    for example in count.examples[: given.changed]:
        print(f"--- equal, called {example}")
    said = ", ".join(f"{number} {kind}" for kind, number in count.called.most_common())
    print(
        f"{count.pairs} pairs ({said}) in {time.monotonic() - started:.0f} s: {found} called the same are not; "
        f"{count.equal_changed} of {count.equal} that Spark's optimiser calls equal are called changed"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
