"""`python -m tests.chains --count 1000 --seed 1`: prints chains of edits whose tables are wrong; exit code 1 if any is."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.chains.world import differences
from tests.histories.lab import opened


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chains", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="chains at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first project")
    parser.add_argument("--models", type=int, default=25, help="chains of a project")
    given = parser.parse_args()
    out, begin, tally, found, number = sys.stdout, time.monotonic(), Counter[str](), 0, given.first
    temporary = tempfile.TemporaryDirectory(prefix="chains", ignore_cleanup_errors=True)
    with temporary as folder, opened(Path(folder)) as (session, printed):
        while tally["chains"] < given.count:
            root = Path(folder) / str(number)
            faults = differences(session, printed, root, f"{given.seed}/{number}", given.models, tally)
            found += len(faults)
            text = "".join(f"\n--- project {number}: {fault}" for fault in faults)
            line = f"{number}: {tally['chains']} chains, {tally['edits']} edits, {found} faults, {time.monotonic() - begin:.0f} s"
            print(line + text, file=out, flush=True)
            number += 1
            if faults and number - given.first > 3 * given.count / given.models:
                break
    for name, count in sorted(tally.items()):
        print(f"{count:7} {name}")
    print(f"{found} faults in {tally['chains']} chains of seed {given.seed}, {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
