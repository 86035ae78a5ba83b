"""`python -m tests.joins --count 300 --seed 1`: prints joins whose tables differ from a batch join; exit code 1 if any does."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.histories.lab import opened
from tests.joins.world import differences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.joins", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="joins at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first project")
    parser.add_argument("--models", type=int, default=10, help="of a project")
    parser.add_argument("--joins", type=int, default=6, help="of a model, at most")
    given = parser.parse_args()
    out, begin, tally, found = sys.stdout, time.monotonic(), Counter[str](), 0
    temporary = tempfile.TemporaryDirectory(prefix="joins", ignore_cleanup_errors=True)
    with temporary as folder, opened(Path(folder)) as (session, printed):
        number = given.first
        while tally["joins"] < given.count:
            seed, root = f"{given.seed}/{number}", Path(folder) / str(number)
            faults = differences(session, printed, root, seed, given.models, given.joins, tally)
            found += len(faults)
            text = "".join(f"\n--- project {number}: {fault}" for fault in faults)
            print(
                f"{number}: {tally['joins']} joins, {found} faults, {time.monotonic() - begin:.0f} s{text}",
                file=out,
                flush=True,
            )
            number += 1
    for name, count in sorted(tally.items()):
        print(f"{count:7} {name}")
    print(
        f"{found} faults in {tally['joins']} joins of seed {given.seed}, each over 3 builds, {time.monotonic() - begin:.0f} s"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
