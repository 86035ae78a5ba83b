"""The examples of the handbook compile without a finding, and run into Iceberg."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.project import load_project
from tests.lab import REPOSITORY, Lab

EXAMPLES = REPOSITORY / "docs" / "examples"
NAMES = ("files", "rate", "socket")


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
    assert sorted(r["id"] for r in lab.rows("orders")) == [1, 2, 4, 5]
    assert (hour(2, 9), "cake", 1, 4.0) in {
        (r["hour"], r["item"], r["orders"], r["turnover"]) for r in lab.rows("hourly")
    }
    result = lab.run("source", "freshness")
    assert result.code == 0
    assert [e["status"] for e in result.events if e["event"] == "FreshnessFinished"] == ["warn"]


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
