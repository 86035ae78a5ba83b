"""`python -m tests.analyser --count 2000 --seed 1`: prints where compile and Spark's analyser differ; exit code 1 if they do."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.analyser.compare import difference, shortest
from tests.analyser.own_queries import compared, kept, report
from tests.analyser.own_tables import ask
from tests.analyser.queries import query
from tests.analyser.verdicts import Analyser, compiled
from tests.fuzz.spark import session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.analyser", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first query")
    parser.add_argument("--only", type=int, help="one query")
    parser.add_argument("--whole", action="store_true", help="print queries as they are, not shortened")
    parser.add_argument("--save", type=Path, help="write Spark's verdicts as JSON lines")
    parser.add_argument("--show", action="store_true", help="print the queries, without Spark")
    parser.add_argument("--queries", type=Path, help="Spark's own test queries: the folder sql-tests/inputs")
    parser.add_argument(
        "--verdicts", type=Path, help="with --queries: keep Spark's verdicts in this file, or take them"
    )
    parser.add_argument("--examples", type=int, default=1, help="with --queries: how many are printed of each cause")
    given = parser.parse_args()
    if given.queries is not None:
        return own(given.queries, given.verdicts, given.examples)
    numbers = range(given.first, given.first + given.count) if given.only is None else range(given.only, given.only + 1)
    if given.show:
        for number in numbers:
            print(number, query(given.seed, number))
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="analyser", ignore_cleanup_errors=True) as name,
        session(Path(name)) as spark,
    ):
        folder = Path(name)
        different = run(Analyser(spark), folder / "batch", given.seed, numbers, given.save, whole=given.whole)
        # A quarter of them as streams, in a session with other views.
        streams = Analyser(spark.newSession(), folder / "landing")
        few = numbers[: max(len(numbers) // 4, 1)]
        different += run(streams, folder / "streams", given.seed, few, whole=given.whole)
    return 1 if different else 0


def own(queries: Path, verdicts: Path | None, examples: int) -> int:
    """Compare the verdicts on Spark's own test queries; they are counted, and no exit code says that they agree."""
    with tempfile.TemporaryDirectory(prefix="analyser", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        verdicts = verdicts or folder / "verdicts.jsonl"
        if not verdicts.exists():
            with session(folder / "session") as spark:
                asked = list(kept(verdicts, ask(spark, queries)))
        else:
            asked = list(kept(verdicts, ()))
        print(report(*compared(folder / "project", asked), examples))
    return 0


def run(
    analyser: Analyser, folder: Path, seed: int, numbers: range, save: Path | None = None, *, whole: bool = False
) -> int:
    """Compare the verdicts; returns how many differ."""
    started, different = time.monotonic(), 0
    said: collections.Counter[str] = collections.Counter()
    queries = [query(seed, number) for number in numbers]
    ours = compiled(folder, queries, streams=analyser.streams is not None)
    took = time.monotonic() - started
    for number, sql, here in zip(numbers, queries, ours, strict=True):
        theirs = analyser.verdict(sql)
        if save is not None:
            with save.open("a") as out:
                out.write(json.dumps([number, sql, theirs.refused, theirs.text, theirs.columns]) + "\n")
        said[theirs.refused.split(".")[0] or "accepted"] += 1
        found = difference(sql, here, theirs)
        if found is None:
            continue
        different += 1
        print(
            f"--- query {number} of seed {seed}: {found.kind}\n{found if whole else shortest(found, analyser)}",
            flush=True,
        )
    seconds = time.monotonic() - started
    counted = ", ".join(f"{count} {kind}" for kind, count in said.most_common())
    what = "streams" if analyser.streams else "tables"
    print(
        f"{len(queries) - different} of {len(queries)} queries over {what} agree ({counted}) in {seconds:.0f} s, "
        f"{took:.0f} of them to compile",
        flush=True,
    )
    return different


if __name__ == "__main__":
    sys.exit(main())
