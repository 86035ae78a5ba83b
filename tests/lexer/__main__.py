"""`python -m tests.lexer --count 100000 --seed 1`: prints texts that compile and Spark's lexer read differently; exit code 1 if there are any."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.lexer.compare import difference
from tests.lexer.java import lexer
from tests.lexer.texts import text

_CHUNK = 5000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lexer", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first text")
    parser.add_argument("--show", action="store_true", help="print the texts, without Java")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count)
    if given.show:
        for number in numbers:
            print(number, repr(text(given.seed, number)))
        return 0
    started, different = time.monotonic(), 0
    kinds: Counter[str] = Counter()
    with lexer() as spark:
        for first in numbers[::_CHUNK]:
            texts = [text(given.seed, number) for number in numbers if first <= number < first + _CHUNK]
            for number, (sql, theirs) in enumerate(zip(texts, spark.tokens(texts), strict=True), first):
                kinds.update(token.kind for token in theirs)
                kinds["legal texts"] += not any(token.kind in {"UNKNOWN", "UNCLOSED"} for token in theirs)
                if how := difference(sql, theirs):
                    different += 1
                    print(f"--- text {number} of seed {given.seed}: {sql!r}\n    {how}", flush=True)
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    seconds = time.monotonic() - started
    print(f"{given.count - different:,} of {given.count:,} texts are read as by Spark ({counted}) in {seconds:.0f} s")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
