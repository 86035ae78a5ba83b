"""`python -m tests.fuzz --count 500 --seed 1`: prints where the checker and Spark disagree; exit code 1 if they do."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import time
from pathlib import Path

from engine.compile.streaming.check_query import check_text
from tests.fuzz.grammar import query
from tests.fuzz.relations import RELATIONS
from tests.fuzz.spark import Judge, judge


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first query")
    parser.add_argument("--only", type=int, help="one query")
    parser.add_argument("--show", action="store_true", help="print the queries, without Spark")
    parser.add_argument("--save", type=Path, help="write Spark's verdicts as JSON lines")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count) if given.only is None else [given.only]
    if given.show:
        for number in numbers:
            print(number, *reversed(query(given.seed, number)))
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz", ignore_cleanup_errors=True) as folder, judge(Path(folder)) as spark:
        return 1 if run(spark, given.seed, numbers, given.save) else 0


def run(spark: Judge, seed: int, numbers: range | list[int], save: Path | None = None) -> int:
    """Compare the verdicts; returns how many disagree."""
    phases: collections.Counter[str] = collections.Counter()
    started, different = time.monotonic(), 0
    for number in numbers:
        sql, mode = query(seed, number)
        theirs = spark.verdict(sql, mode)
        phases[theirs.phase] += 1
        if save is not None:
            with save.open("a") as out:
                out.write(
                    json.dumps(
                        {
                            "sql": sql,
                            "mode": mode,
                            "v": [theirs.phase if theirs.ok else "rejected", theirs.phase, theirs.text],
                        }
                    )
                    + "\n"
                )
        errors = [f for f in check_text(sql, RELATIONS, mode) if f.is_error]  # type: ignore[arg-type]
        if theirs.ok == (not errors):
            continue
        different += 1
        print(f"--- query {number} of seed {seed}, {mode}\n{sql}")
        print(f"  spark: {theirs.phase} {theirs.text}")
        print(f"  here:  {', '.join(f.code for f in errors) or 'ok'}", flush=True)
    seconds = time.monotonic() - started
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    print(f"{sum(phases.values()) - different} of {sum(phases.values())} agree ({counted}) in {seconds:.0f} s")
    return different


if __name__ == "__main__":
    sys.exit(main())
