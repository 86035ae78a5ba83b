"""`python -m tests.sinks --count 300 --kills 200 --seed 1`: random histories of tables that killed processes deliver."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.services import postgres
from tests.sinks.random_history import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sinks", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="histories without kills")
    parser.add_argument("--kills", type=int, default=200, help="kills in further histories")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begin, steps = time.monotonic(), Counter[str]()
    histories = kills = rejected = 0
    with postgres.running() as server:
        while histories < given.count or kills < given.kills:
            with tempfile.TemporaryDirectory(prefix="sinks") as folder:
                killing = histories >= given.count
                done = run(Path(folder), server, f"{given.seed} {histories}", given.steps, kills=killing)
            server.execute(f"DROP SCHEMA {done.delivery.schema} CASCADE")
            histories, kills, rejected = histories + 1, kills + done.kills, rejected + done.rejected
            steps += done.steps
    counts = ", ".join(f"{count} {name}" for name, count in sorted(steps.items()))
    print(f"{histories} histories, {kills} kills, {rejected} rejected and reset, {time.monotonic() - begin:.0f} s")
    print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
