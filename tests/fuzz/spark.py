"""Spark's own verdict: a query is started on tiny data, as the oracle was made (oracle/README.md)."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import JAVA_OPTIONS

SCHEMA = "id int, v int, ts timestamp, s string"
CONF = {
    "spark.sql.shuffle.partitions": "1",
    # As in the oracle; it also starts faster than RocksDB.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
}


@dataclass(frozen=True)
class Verdict:
    """ok; or refused at parse, start or run, with Spark's text."""

    phase: str
    text: str = ""

    @property
    def ok(self) -> bool:
        return self.phase == "ok"


@dataclass(frozen=True)
class Judge:
    """A session with the relations of the oracle."""

    spark: Any
    folder: Path

    def verdict(self, sql: str, mode: str) -> Verdict:
        try:
            frame = self.spark.sql(sql)
        except Exception as error:  # noqa: BLE001  whatever Spark says is the verdict
            return Verdict("parse", _text(error))
        checkpoint = tempfile.mkdtemp(dir=self.folder)
        try:
            return self._run(frame, mode, checkpoint)
        finally:
            shutil.rmtree(checkpoint, ignore_errors=True)

    def _run(self, frame: Any, mode: str, checkpoint: str) -> Verdict:
        try:
            writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
            running = writer.trigger(availableNow=True).start()
        except Exception as error:  # noqa: BLE001
            return Verdict("start", _text(error))
        try:
            running.awaitTermination()
        except Exception as error:  # noqa: BLE001
            return Verdict("run", _text(error))
        return Verdict("ok")


@contextmanager
def judge(folder: Path) -> Iterator[Judge]:
    """Start a session and make the relations."""
    with session(folder) as spark:
        yield prepared(spark, folder)


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    """Start a session like those of the product."""
    from engine.spark.jars import jar_paths
    from engine.spark.java import find_java
    from engine.spark.session import SessionSettings, open_session

    java = find_java()
    jars = jar_paths(("core",), fetch=True, java=java)
    conf = {**CONF, "spark.driver.extraJavaOptions": JAVA_OPTIONS}
    settings = SessionSettings(java, folder / "logs", jar_paths=jars, master="local[2]", conf=conf)
    with open_session(settings) as opened:
        yield opened.spark


def prepared(spark: Any, folder: Path) -> Judge:
    """The relations of the oracle, over a dozen rows in two files; a join that never writes its rows is refused."""
    from engine.spark.internals.plans import join_as_sql

    join_as_sql(spark)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        rows = [
            {"id": i % 3, "v": i % 4, "ts": f"2024-01-01T00:{5 * i:02d}:00Z", "s": "abcde"[i % 5]} for i in range(12)
        ]
        for number, part in enumerate((rows[:6], rows[6:])):
            (folder / name / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in part))

    def view(name: str, path: str, watermark: str = "", *, stream: bool = True) -> None:
        # Two batches: some faults need the state of one before.
        reader = spark.readStream.option("maxFilesPerTrigger", 1) if stream else spark.read
        frame = reader.schema(SCHEMA).json(str(folder / path))
        frame = frame.withWatermark("ts", watermark) if watermark else frame
        frame.createOrReplaceTempView(name)

    view("sa", "a")
    view("sb", "b")
    view("wa", "a", "10 minutes")
    view("wb", "b", "20 minutes")
    view("ba", "a", stream=False)
    return Judge(spark, folder)


def _text(error: Exception) -> str:
    text = " ".join(str(error).split())
    inner = re.search(r"terminated with exception: (.*)", text)
    return (inner[1] if inner else text)[:250]
