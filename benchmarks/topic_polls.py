"""How soon `engine start` notices a record of one of 60 topics, and what waiting for records costs: no Spark is needed.

    python -m benchmarks.topic_polls [--topics 60] [--records 40] [--idle 20]

The clock runs from the broker's answer to the producer until the model's run would be queued. Results are kept as JSON
in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._commands import keep
from engine.api.keep_running.source_polls import TopicThread
from engine.sources.spec import Place, SourceSpec
from tests.services.kafka import running


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured.

    Attributes:
        topics: how many there are.
        records: how many were sent, each to a random topic.
        p50: seconds until one is noticed, the median.
        p95: the same, of 95 of 100 records.
        idle: processor time while nothing comes, as a part of one core.
    """

    topics: int
    records: int
    p50: float
    p95: float
    idle: float


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=60)
    parser.add_argument("--records", type=int, default=40)
    parser.add_argument("--idle", type=float, default=20.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polls") as folder, running(Path(folder) / "kafka") as broker:
        names = [broker.create(f"p{number}") for number in range(chosen.topics)]
        specs = {n: SourceSpec(f"shop.{n}", "kafka", "", settings={"connection": "main", "topic": n}) for n in names}
        noticed: dict[str, float] = {}
        place = Place(Path(folder), lambda _: {"bootstrap_servers": broker.address})

        def notice(name: str) -> None:
            noticed.setdefault(name, time.monotonic())

        thread = TopicThread(specs, place, notice)
        time.sleep(5.0)
        took = _noticed(broker.producer(linger_ms=0), names, noticed, chosen.records)
        time.sleep(3.0)
        before = time.process_time()
        time.sleep(chosen.idle)
        idle = (time.process_time() - before) / chosen.idle
        thread.close()
    parts = statistics.quantiles(took, n=20)
    result = Result(len(names), len(took), round(parts[9], 3), round(parts[18], 3), round(idle, 4))
    print(result, flush=True)
    keep("topic-polls", [result], 1)
    # A client that waits for a broker that is gone is not waited for.
    os._exit(0)


def _noticed(producer: Any, names: list[str], noticed: dict[str, float], records: int) -> list[float]:
    chance = random.Random(3)
    took = []
    for number in range(records):
        time.sleep(chance.uniform(0.2, 1.5))
        name = chance.choice(names)
        noticed.clear()
        producer.produce(name, str(number))
        producer.flush(10)
        begin = time.monotonic()
        while name not in noticed:
            assert time.monotonic() - begin < 30.0
            time.sleep(0.002)
        took.append(noticed[name] - begin)
    return took


if __name__ == "__main__":
    main()
