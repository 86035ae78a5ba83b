"""The example project in a folder of its own, with departures that land step by step."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from producer.__main__ import main as produce
from tests.example.golden import landed_files
from tests.lab import REPOSITORY, Lab

HISTORY = """/*---
description: Where each aircraft was from when to when.
streams: [ops.departures]
unique_key: tailnum
sequence_by: [departed_at, flight_id]
history: true
---*/
select data.tailnum, id as flight_id, data.origin, data.departed_at
from {{ source('ops', 'departures') }}
where type = 'flight.departed' and data.tailnum is not null
"""
STREAMS = ("departures_hourly", "flights", "aircraft", "aircraft_history", "long_delays", "top_destinations")
TABLES = (*STREAMS, "airports", "carriers", "routes")
HOURLY_FILES = 4
_SOURCE_FILES = 2


@dataclass(slots=True)
class Example:
    """The project, and the files that have not landed yet.

    Attributes:
        lab: the project's folder and its tables.
        pool: the files that are still to land, in order.
        steps: what landed at a time; each was read to its end before the next.
    """

    lab: Lab
    pool: list[Path]
    steps: list[list[Path]] = field(default_factory=list)

    @property
    def landing(self) -> Path:
        return self.lab.root / "landing" / "departures"

    def land(self, count: int) -> int:
        """Let the next files land, as they are; how many there were."""
        files, self.pool = self.pool[:count], self.pool[count:]
        self.landing.mkdir(parents=True, exist_ok=True)
        moved = [self.landing / path.name for path in files]
        for path, place in zip(files, moved, strict=True):
            path.rename(place)
        if moved:
            self.steps.append(moved)
        return len(moved)


def alone(root: Path) -> Lab:
    """A folder for a project, with a lake of its own."""
    return Lab(root, None, None, schema="example")


def make(lab: Lab, days: int) -> Example:
    """Make the project, and so many days of departures that are still to land."""
    for folder in ("models", "macros", "sources"):
        shutil.copytree(REPOSITORY / folder, lab.root / folder)
    text = (REPOSITORY / "project.yml").read_text()
    text = re.sub(r"path: \.engine/lake", f"path: {lab.lake_path}", text)
    text = re.sub(r"schema: flights\b", f"schema: {lab.schema}", text)
    fast = '{master: "local[2]", conf: {spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1"}}'
    lab.write("project.yml", re.sub(r'\{master: "local\[\*\]"\}', fast, text))
    source = (REPOSITORY / "sources" / "flights.yml").read_text()
    lab.write("sources/flights.yml", _few_files(source, _SOURCE_FILES))
    lab.model("marts/aircraft_history", HISTORY)
    with contextlib.redirect_stdout(io.StringIO()):
        assert produce(["--out", str(lab.root / "landing"), "--days", str(days)]) == 0
    pool = (lab.root / "landing" / "departures").rename(lab.root / "pool")
    return Example(lab, landed_files(pool))


def copy_landed(example: Example, lab: Lab) -> None:
    """The same project elsewhere, where all that has landed lies from the beginning and is read at once."""
    for name in ("models", "macros", "sources", "landing"):
        shutil.copytree(example.lab.root / name, lab.root / name)
    source = (lab.root / "sources" / "flights.yml").read_text()
    lab.write("sources/flights.yml", _few_files(source, 1000))
    text = (example.lab.root / "project.yml").read_text()
    text = text.replace(f"path: {example.lab.lake_path}", f"path: {lab.lake_path}")
    lab.write("project.yml", text.replace(f"schema: {example.lab.schema}\n", f"schema: {lab.schema}\n"))


def _few_files(source: str, count: int) -> str:
    return re.sub(r"max_files_per_trigger: \d+", f"max_files_per_trigger: {count}", source)
