"""`python -m tests.refreshes --count 10000 --seed 1`: prints refreshes that leave wrong rows; exit code 1 if there are any."""

from __future__ import annotations

import argparse
import sys
import time

from tests.refreshes.cases import cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.refreshes", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found, kept, queries, started = 0, 0, set(), time.monotonic()
    for one in cases(given.seed, given.count):
        queries.add(one.sql)
        kept += bool(one.kept)
        if one.fault:
            found += 1
            print(f"--- fault {found}, keys {one.keys}\n{one.sql}\n{one.fault}", flush=True)
    print(
        f"{given.count} refreshes of {len(queries)} queries in {time.monotonic() - started:.0f} s: {found} wrong; "
        f"{kept} left rows as they were"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
