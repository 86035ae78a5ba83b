"""`python -m tests.store_faults --faults 500 --seed 1`: faults of the store that has the state, and machines that sleep.

Prints what was done, and what was wrong: then the exit code is 1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.services import postgres, s3
from tests.store_faults.rounds import passing_faults, refusals, suspensions, world


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.store_faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--refusals", type=int, default=None, help="of the faults; one in a build (default: a fifth)")
    parser.add_argument("--suspensions", type=int, default=None, help="of the faults (default: a tenth)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    refused = given.faults // 5 if given.refusals is None else given.refusals
    suspended = given.faults // 10 if given.suspensions is None else given.suspensions
    begin, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="store-faults-"))
    print(f"in {folder}, which stays if something is found", flush=True)
    with s3.running() as store, postgres.running() as database:
        with world(folder, store, database, given.seed, lambda line: print(line, flush=True)) as made:
            suspensions(made, suspended)
            refusals(made, refused)
            passing_faults(made, given.faults - refused - suspended)
            tally = made.tally
        database.stop(kill=True)
    for line in tally.found:
        print(f"WRONG: {line}")
    print(f"{tally.total} faults in {tally.builds} builds, seed {given.seed}, {time.monotonic() - begin:.0f} s:")
    for fault, count in sorted(tally.faults.items()):
        print(f"  {count:4} {fault}")
    print(f"done to {len(tally.kinds)} sorts of requests; errors: {dict(tally.codes)}")
    print("something is wrong" if tally.found else "all tables hold what was landed")
    if not tally.found:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
