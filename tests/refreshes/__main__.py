"""`python -m tests.refreshes --count 10000 --seed 1`: prints refreshes that leave wrong rows; exit code 1 if there are any.

With `--spark` a count of projects: builds refresh their tables on Spark and Iceberg, and some are killed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.refreshes.cases import cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.refreshes", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="number of the first project")
    parser.add_argument("--models", type=int, default=8, help="of a project")
    parser.add_argument("--kills", type=float, default=0.3, help="part of the builds that are killed")
    given = parser.parse_args()
    return _on_spark(given) if given.spark else _on_sqlite(given)


def _on_sqlite(given: argparse.Namespace) -> int:
    started, queries, counts = time.monotonic(), set(), Counter[str]()
    for one in cases(given.seed, given.count):
        queries.add(one.written.text)
        way = "unread columns alone changed" if one.unread else "followed" if one.keys else "not followed"
        counts[way] += 1
        counts["left rows as they were"] += bool(one.kept)
        if one.fault:
            counts["wrong"] += 1
            print(f"--- fault {counts['wrong']}, by {one.keys}\n{one.written.text}\n{one.fault}", flush=True)
    print(
        f"{given.count} refreshes of {len(queries)} queries in {time.monotonic() - started:.0f} s: {counts['wrong']} wrong"
    )
    for name, number in counts.most_common():
        print(f"{number:>6} {name}")
    return 1 if counts["wrong"] else 0


def _on_spark(given: argparse.Namespace) -> int:
    from tests.histories.lab import opened
    from tests.refreshes.on_spark import worlds

    out, started, found = sys.stdout, time.monotonic(), 0
    ways: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    temporary = tempfile.TemporaryDirectory(prefix="refreshes", ignore_cleanup_errors=True)
    with temporary as folder, opened(Path(folder)) as (session, printed):
        count, models = given.count, given.models
        every = worlds(given.seed, given.first, count, models, Path(folder), session, printed, given.kills)
        for number, world in enumerate(every, given.first):
            ways += world.ways
            killed += world.killed
            found += len(world.faults)
            text = "".join(f"\n--- project {number}: {fault}" for fault in world.faults)
            done = f"{sum(ways.values())} builds of tables, {sum(killed.values())} kills, {found} wrong"
            print(f"{number}: {done}, {time.monotonic() - started:.0f} s{text}", file=out, flush=True)
    for name, number in [*ways.most_common(), *killed.most_common()]:
        print(f"{number:>6} {name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
