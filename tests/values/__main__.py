"""`python -m tests.values --count 10000 --seed 1`: prints values that a build reads wrong; exit code 1 if there are any."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

from engine.cli.main import invoke
from tests.lab import Lab, LabSession, share_session
from tests.services.kafka import running
from tests.values.cases import WAYS, cases
from tests.values.compare import Count, built, by_spark, declare, faults, land


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.values", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    made, count, started = list(cases(given.seed, given.count)), Count(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="values", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        session = LabSession(folder / "session")
        with running(folder / "kafka") as broker, contextlib.closing(session), share_session(session):
            lab = Lab(folder / "project", session, None)
            text = (lab.root / "project.yml").read_text().rstrip()
            lab.write("project.yml", f"{text}\n    connections: {{main: {{bootstrap_servers: '{broker.address}'}}}}\n")
            topic = broker.create("values", 2)
            broker.send(topic, [case.record.encode("utf-8") for case in made if case.way == "kafka"])
            declare(lab, WAYS, topic)
            land(lab, made)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = invoke(["build", "--project-dir", str(lab.root), "--log-format", "json"])
            if code != 0:
                print(said.getvalue())
                return 1
            found = faults(made, {way: built(lab, way) for way in WAYS}, count)
            by_spark(session.spark, lab, made, count)
    for fault in found:
        print(fault)
    ways = ", ".join(f"{way} {count.ways[way]:,}" for way in WAYS)
    print(
        f"{given.count:,} values ({ways}; {count.bad:,} are bad) in {time.monotonic() - started:.0f} s: {len(found)} faults"
    )
    print("Spark's own reader of files:", "; ".join(f"{what} {n:,}" for what, n in sorted(count.by_spark.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
