"""A million JSON records from Kafka into an Iceberg table: `engine build` beside a hand-written PySpark stream.

    python -m benchmarks.kafka [--records 1000000] [--runs 3] [--partitions 4] [--batch 250000]

Both read the same topic of a real broker on this machine, take as many offsets in a micro-batch, append to a table
partitioned by day, and run in sessions with the same settings. The time is that of the stream alone, from its start to
its last commit, in a session that is warm; the two take turns, and the median of the runs counts. `cpu` is what the
driver's JVM took, which says more than the clock where other work keeps the machine busy. Then both once more as an
analyst has them, with the start of Java and Spark: a command and a script.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._by_hand import RECORD, pass_on
from benchmarks._commands import Measured, keep, prepare, timed
from engine.compile import compile_project
from engine.lake.catalog import catalog_settings
from engine.project import load_project
from engine.runtime import build as runtime
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from engine.spark.session import Session, SessionSettings, open_session
from tests.services.kafka import Broker, put, running

PROJECT = """\
name: bench
targets:
  dev:
    catalog: {{type: sqlite, name: lake, path: {lake}}}
    schema: bench
    connections: {{main: {{bootstrap_servers: '{address}'}}}}
"""
SOURCE = """\
sources:
  - name: shop
    tables:
      - name: events
        format: kafka
        connection: main
        topic: events
        max_offsets_per_trigger: {batch}
        schema: "{schema}"
"""
MODEL = """\
/*---
streams: [shop.events]
partition_by: [day(at)]
---*/
select id, at, kind, amount, data.origin as origin, data.delay as delay
from {{{{ source('shop', 'events') }}}}
where {condition}
"""
CONDITIONS = {"every record": "true", "with a filter": "kind <> 'refund'"}


@dataclass(frozen=True, slots=True)
class Result:
    """A piece of work with every pair of the engine and the script, and the median of their ratios."""

    work: str
    pairs: list[tuple[Measured, Measured]]
    ratio: float
    cpu_ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch", type=int, default=250_000)
    options = parser.parse_args()
    prepare()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "broker") as broker:
        _fill(broker, options.records, options.partitions)
        root = Path(folder) / "project"
        root.mkdir()
        lake = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=Path(folder) / "lake")
        with _session(lake, root) as session:
            results = [
                _compare(session, broker, root, lake, name, condition, options)
                for name, condition in CONDITIONS.items()
            ]
        results.append(_commands(broker, Path(folder), options))
    keep("kafka", results, options.runs)


def _fill(broker: Broker, records: int, partitions: int) -> None:
    broker.create("events", partitions)
    producer = broker.producer(linger_ms=50)
    kinds = ("paid", "refund", "sent", "lost")
    for partition in range(partitions):
        values = (
            f'{{"id":{number},"at":"2024-05-{1 + number % 7:02}T10:00:00Z","kind":"{kinds[number % 4]}",'
            f'"amount":{number % 977}.5,"data":{{"origin":"JFK","delay":{number % 90}}}}}'
            for number in range(partition, records, partitions)
        )
        put(producer, "events", values, partition)
    producer.flush(300)
    assert sum(broker.offsets("events").values()) == records


def _session(lake: Any, root: Path) -> Session:
    catalog_settings.prepare(lake)
    java = find_java()
    jars = jar_paths(("core", "kafka"), fetch=True, java=java)
    conf = catalog_settings.spark_conf(lake)
    return open_session(SessionSettings(java, root / "logs", jars, master="local[2]", conf=conf))


def _compare(
    session: Session, broker: Broker, root: Path, lake: Any, name: str, condition: str, options: argparse.Namespace
) -> Result:
    works: dict[str, Callable[[int], int]] = {
        "engine build": lambda turn: _engine(session, broker, root, lake, condition, options, turn),
        "hand-written foreachBatch": lambda turn: _by_hand(session, broker, root, condition, options, turn),
    }
    measured: dict[str, list[Measured]] = {work: [] for work in works}
    rows = set()
    # The first turn only warms the machine up.
    for turn in range(options.runs + 1):
        for work, run in works.items():
            begin, cpu = time.monotonic(), _cpu(session.jvm.pid)
            rows.add(run(turn))
            measured[work].append(Measured(time.monotonic() - begin, _cpu(session.jvm.pid) - cpu))
    assert len(rows) == 1, f"the tables differ: {rows}"
    print(f"{options.records:,} records, {options.partitions} partitions, {name}: {rows.pop():,} rows")
    ours, theirs = (costs[1:] for costs in measured.values())
    return _result(f"warm session, {name}", list(zip(ours, theirs, strict=True)))


def _result(work: str, pairs: list[tuple[Measured, Measured]]) -> Result:
    ratio = statistics.median(ours.seconds / theirs.seconds for ours, theirs in pairs)
    cpu_ratio = statistics.median(ours.cpu / theirs.cpu for ours, theirs in pairs)
    print(f"  {work:<40} {ratio:.2f} of the seconds of the script, {cpu_ratio:.2f} of its processor time", flush=True)
    return Result(work, pairs, round(ratio, 3), round(cpu_ratio, 3))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _write_project(
    root: Path, broker: Broker, lake: Any, name: str, condition: str, options: argparse.Namespace
) -> None:
    for path, text in {
        "project.yml": PROJECT.format(lake=lake.path, address=broker.address),
        "sources/shop.yml": SOURCE.format(batch=options.batch, schema=RECORD),
        f"models/{name}.sql": MODEL.format(condition=condition),
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def _engine(
    session: Session, broker: Broker, root: Path, lake: Any, condition: str, options: argparse.Namespace, turn: int
) -> int:
    name = f"ours_{turn}_{list(CONDITIONS.values()).index(condition)}"
    _write_project(root, broker, lake, name, condition, options)
    result = compile_project(load_project(root))
    assert not result.manifest.errors, result.manifest.errors

    @contextmanager
    def shared(*_: object, **__: object) -> Any:
        yield session.spark

    runtime.spark_session = shared
    how = runtime.Options("build", threads=1, fail_fast=True, target_dir=root / "target")
    done = runtime.build(result.manifest, result.target, root, [f"model.{name}"], how, lambda _: None)
    assert not done.failed, done
    return session.spark.table(f"lake.bench.{name}").count()


def _by_hand(
    session: Session, broker: Broker, root: Path, condition: str, options: argparse.Namespace, turn: int
) -> int:
    table = f"lake.bench.theirs_{turn}_{list(CONDITIONS.values()).index(condition)}"
    checkpoint = (root / "checkpoints" / table).as_uri()
    pass_on(session.spark, broker.address, table, options.batch, condition, checkpoint)
    return session.spark.table(table).count()


def _commands(broker: Broker, folder: Path, options: argparse.Namespace) -> Result:
    """The same as an analyst has it: a command and a script, each in a process of its own."""
    jars = ",".join(map(str, jar_paths(("core", "kafka"), fetch=True, java=find_java())))
    pairs = []
    for turn in range(options.runs):
        root = folder / f"command_{turn}"
        root.mkdir()
        lake = SimpleNamespace(path=root / "lake")
        _write_project(root, broker, lake, "passed_on", "true", options)
        ours = timed([sys.executable, "-m", "engine", "build", "--project-dir", str(root)])
        script = [sys.executable, "-m", "benchmarks._by_hand", "kafka", str(root), jars]
        pairs.append((ours, timed(script, environment={"BOOTSTRAP": broker.address})))
    return _result("whole commands", pairs)


if __name__ == "__main__":
    main()
