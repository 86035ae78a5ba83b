"""The examples of the handbook compile without a finding, and run into Iceberg."""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from engine.compile import compile_project
from engine.project import load_project
from tests.lab import REPOSITORY, Lab
from tests.services.kafka import Broker
from tests.services.registry import RegistryPart

EXAMPLES = REPOSITORY / "docs" / "examples"
NAMES = ("cloudevents", "files", "rate", "socket", "windows")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_compiles(name: str) -> None:
    manifest = compile_project(load_project(EXAMPLES / name), env={}).manifest
    assert [d.message for d in manifest.diagnostics if d.is_error] == []
    assert manifest.models


def copied(lab: Lab, name: str) -> Lab:
    """An example in the lab's folder, with the lab's lake."""
    shutil.copytree(EXAMPLES / name, lab.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".engine", "target"))
    project = lab.root / "project.yml"
    text = (
        project.read_text()
        .replace(".engine/lake", str(lab.lake_path))
        .replace(f"schema: {name}_example", f"schema: {lab.schema}")
    )
    project.write_text(text)
    return lab


def hour(day: int, number: int) -> datetime:
    return datetime(2024, 5, day, number, tzinfo=UTC)


@pytest.mark.nightly
@pytest.mark.spark
def test_files(lab: Lab) -> None:
    copied(lab, "files")
    built = lab.build().model("orders")
    assert (built["rows_out"], built["bad_records"], built["quarantined"]) == (3, {"shop.orders": 1}, 1)
    assert sorted((r["hour"], r["item"], r["orders"], r["turnover"]) for r in lab.rows("hourly")) == [
        (hour(1, 10), "tea", 2, 5.0)
    ]
    lab.land("2024-05-03", [{"id": 5, "at": "2024-05-03T09:00:00Z", "item": "tea", "price": 3.0}], "inbox/orders")
    Path(lab.root / "inbox/orders/2024-05-03.json").touch()
    lab.build()
    assert lab.ids("orders") == [1, 2, 4, 5]
    assert (hour(2, 9), "cake", 1, 4.0) in {
        (r["hour"], r["item"], r["orders"], r["turnover"]) for r in lab.rows("hourly")
    }
    result = lab.run("source", "freshness")
    assert result.code == 0
    assert [e["status"] for e in result.events if e["event"] == "FreshnessFinished"] == ["warn"]


@pytest.mark.nightly
@pytest.mark.spark
def test_socket(lab: Lab) -> None:
    copied(lab, "socket")
    with socket.create_server(("localhost", 0)) as listening:
        port = listening.getsockname()[1]

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                client.sendall(b"The quick brown fox\njumps over the lazy dog\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        lab.build("--vars", f"{{port: {port}}}")
        thread.join(5)
    counted = {r["word"]: r["times"] for r in lab.rows("word_counts")}
    assert counted == {"the": 2, "quick": 1, "brown": 1, "fox": 1, "jumps": 1, "over": 1, "lazy": 1, "dog": 1}
    assert len(lab.rows("words")) == 9


@pytest.mark.nightly
@pytest.mark.spark
def test_rate(lab: Lab) -> None:
    copied(lab, "rate")
    lab.build()
    for _ in range(2):
        time.sleep(3)
        lab.build()
    found = {(r["second"], r["even"]): r["n"] for r in lab.rows("per_second")}
    seconds = sorted({second for second, _ in found})
    assert len(seconds) >= 2
    # The clock starts between two full seconds; each one after the first is whole.
    assert {found[second, even] for second in seconds[1:] for even in (True, False)} == {50}


def script(name: str) -> ModuleType:
    """A producer of an example, as a module; it reads the environment when it is loaded."""
    spec = importlib.util.spec_from_file_location("producer_of_an_example", EXAMPLES / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def closed(clicks: list[dict[str, Any]], watermark: datetime) -> dict[str, Counter[tuple[datetime, datetime, str]]]:
    """The windows that a watermark has closed, with the number of their clicks."""
    found: dict[str, Counter[tuple[datetime, datetime, str]]] = {"tumbling": Counter(), "sliding": Counter()}
    for click in clicks:
        at = datetime.fromisoformat(click["timestamp"])
        for name, slide in (("tumbling", 600), ("sliding", 300)):
            last = int(at.timestamp()) // slide * slide
            for begin in range(last - 600 + slide, last + 1, slide):
                found[name][(*(datetime.fromtimestamp(t, UTC) for t in (begin, begin + 600)), click["key"])] += 1
    found["sessions"] = sessions(clicks)
    return {
        name: Counter({window: n for window, n in all_.items() if window[1] <= watermark})
        for name, all_ in found.items()
    }


def sessions(clicks: list[dict[str, Any]]) -> Counter[tuple[datetime, datetime, str]]:
    found: Counter[tuple[datetime, datetime, str]] = Counter()
    for key in {click["key"] for click in clicks}:
        times = sorted(datetime.fromisoformat(c["timestamp"]) for c in clicks if c["key"] == key)
        begin = 0
        for place in range(1, len(times) + 1):
            if place == len(times) or times[place] - times[place - 1] > timedelta(minutes=5):
                found[times[begin], times[place - 1] + timedelta(minutes=5), key] = place - begin
                begin = place
    return found


@pytest.mark.nightly
@pytest.mark.spark
def test_windows(lab: Lab, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(lab, "windows")
    monkeypatch.setenv("KAFKA_BOOTSTRAP", broker.start().address)
    producer = script("windows/produce.py")
    for sent, count in ((90, "90"), (120, "30")):
        producer.main(count)
        lab.build()
        clicks = [producer.click(number) for number in range(sent)]
        watermark = max(datetime.fromisoformat(c["timestamp"]) for c in clicks) - timedelta(minutes=10)
        tables = {
            name: Counter({(r["window_start"], r["window_end"], r["key"]): r["clicks"] for r in lab.rows(name)})
            for name in ("tumbling", "sliding", "sessions")
        }
        assert tables == closed(clicks, watermark)
        assert all(tables.values())
    producer.main("late")
    late = lab.build("-s", "tumbling").model("tumbling")
    assert (late["rows_in"], late["rows_out"], late["late"]) == (1, 0, 1)


@pytest.mark.spark
def test_cloudevents(lab: Lab, broker: Broker, registry: RegistryPart, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(lab, "cloudevents")
    monkeypatch.setenv("KAFKA_BOOTSTRAP", broker.start().address)
    monkeypatch.setenv("SCHEMA_REGISTRY", registry.url)
    producer = script("cloudevents/send.py")
    producer.main(60)
    lab.build()
    for sent in (60, 90):
        expected = sorted((e["id"], e["source"], e["data"], at(e), at(e)) for e in map(producer.event, range(sent)))
        for name in ("cloudevents", "cloudevents_batch"):
            rows = [tuple(r[c] for c in ("id", "source", "data", "time", "_timestamp")) for r in lab.rows(name)]
            assert sorted(rows) == expected, name
            table = lab.table(name)
            assert table is not None
            assert table.properties["history.expire.max-snapshot-age-ms"] == "7200000"
            assert partitions(lab, name) == {
                (e["source"], at(e).strftime("%Y-%m-%d-%H")) for e in map(producer.event, range(sent))
            }
        if sent == 60:
            before = files(lab, "cloudevents_batch")
            producer.main(30)
            lab.build()
    # The events so far were read again: their partitions were replaced, and nothing is there twice.
    assert not before & files(lab, "cloudevents_batch")
    assert [m["status"] for m in map(lab.build().model, ("cloudevents", "cloudevents_batch"))] == ["unchanged"] * 2


def at(event: dict[str, str]) -> datetime:
    return datetime.fromisoformat(event["time"])


def files(lab: Lab, name: str) -> set[str]:
    """The data files that a table's current snapshot has."""
    assert lab.session is not None
    rows = lab.session.spark.sql(f"select file_path from lake.{lab.schema}.{name}.files").collect()
    return {row.file_path for row in rows}


def partitions(lab: Lab, name: str) -> set[tuple[str, str]]:
    """The partitions of a table's files, by the names of their fields."""
    found = [re.search(r"/source=([^/]+)/hour=([^/]+)/", path) for path in files(lab, name)]
    return {(unquote(match[1]), match[2]) for match in found if match}
