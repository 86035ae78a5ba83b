"""The example project in a folder of its own, with departures that land step by step."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from engine import local_paths
from engine.state import file_log
from producer.__main__ import main as produce
from tests.example.golden import landed_files
from tests.lab import JAVA_OPTIONS, REPOSITORY, Lab

# It reads the source itself, so that its checkpoint has the files of each micro-batch: they decide which rows are late.
HOURS = """/*---
description: Departures per airport and hour of the schedule.
streams:
  ops.departures: {watermark: data.scheduled_at as scheduled_at delay 30 minutes, dedup: [id]}
windows: {hour: "tumbling(scheduled_at, 1 hour)"}
---*/
select
    hour.start as window_start,
    data.origin as origin,
    count(*) as departures,
    avg(data.departure_delay) as mean_delay
from {{ source('ops', 'departures') }}
where type = 'flight.departed'
group by hour, data.origin
"""
STREAMS = (
    "hours", "flights", "departures_hourly", "delay_trend", "aircraft", "aircraft_history", "long_delays",
    "top_destinations", "journeys", "disruptions",
)  # fmt: skip
# Which rows are late depends on where micro-batches end; of these that is known for `hours` alone.
WITH_LATE_ROWS = ("hours", "departures_hourly", "delay_trend")
TABLES = (*(name for name in STREAMS if name not in WITH_LATE_ROWS), "airports", "carriers", "routes")
_SOURCE_FILES = 2
LAST = 6  # more than there are in a night, when only what was held back lands


@dataclass(slots=True)
class Example:
    """The project, and the files that have not landed yet.

    Attributes:
        lab: the project's folder and its tables.
        pool: the files of departures that are still to land, in order.
        arrivals: those of landings, which land with departures of the same hour or a later one.
        steps: what landed at a time; each was read to its end before the next, if perhaps without the micro-batch
            without rows.
        reaches: up to which entry of its source's log each micro-batch of `hours` reads.
    """

    lab: Lab
    pool: list[Path]
    arrivals: list[Path]
    steps: list[list[Path]] = field(default_factory=list)
    reaches: dict[int, int] = field(default_factory=dict)

    def land(self, count: int, *, left: int = LAST) -> int:
        """Let the next files of departures land, as they are, and landings up to then; how many of departures.

        So many files are left; those land last, when nothing is killed any more.
        """
        count = max(0, min(count, len(self.pool) - left))
        files, self.pool = self.pool[:count], self.pool[count:]
        if not files:
            return 0
        landed = [path for path in self.arrivals if path.name <= files[-1].name]
        self.arrivals = self.arrivals[len(landed) :]
        self._move(landed, "arrivals")
        self.steps.append(self._move(files, "departures"))
        return len(files)

    def note_batches(self) -> None:
        """Keep how far each micro-batch reads; Spark forgets all but the last hundred."""
        for path in (self.checkpoint / "offsets").glob("[0-9]*"):
            batch = int(path.name)
            reach = file_log.reaches(self.checkpoint, 0, batch)
            assert self.reaches.setdefault(batch, reach) == reach, f"batch {batch} was planned again"

    def batches(self) -> list[list[Path]]:
        """The files of each micro-batch of `hours`."""
        files = [
            (Path(local_paths.path_of_location(local_paths.decoded(file.uri)) or file.uri), file.entry)
            for file in file_log.logged(self.checkpoint, 0)
        ]
        assert sorted(path.name for path, _ in files) == sorted(path.name for step in self.steps for path in step)
        assert sorted(self.reaches) == [*range(len(self.reaches))]
        ends = [-1, *(self.reaches[batch] for batch in sorted(self.reaches))]
        return [[path for path, entry in files if before < entry <= end] for before, end in pairwise(ends)]

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of `hours`."""
        return self.lab.state / "hours" / "1" / "checkpoint"

    def _move(self, files: list[Path], what: str) -> list[Path]:
        folder = self.lab.root / "landing" / what
        folder.mkdir(parents=True, exist_ok=True)
        return [path.rename(folder / path.name) for path in files]


def alone(root: Path) -> Lab:
    """A folder for a project, with a lake of its own."""
    return Lab(root, None, None, schema="example")


def make(lab: Lab, days: int) -> Example:
    """Make the project, and so many days of departures that are still to land."""
    for folder in ("models", "macros", "sources"):
        shutil.copytree(REPOSITORY / folder, lab.root / folder)
    text = (REPOSITORY / "project.yml").read_text()
    text = re.sub(r"path: \.engine/lake", lambda _: f"path: {lab.lake_text}", text)
    text = re.sub(r"schema: flights\b", f"schema: {lab.schema}", text)
    fast = f'{{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{JAVA_OPTIONS}"}}}}'
    lab.write("project.yml", re.sub(r'\{master: "local\[\*\]"\}', fast, text))
    source = (REPOSITORY / "sources" / "flights.yml").read_text()
    lab.write("sources/flights.yml", _few_files(source, _SOURCE_FILES))
    lab.model("marts/hours", HOURS)
    with contextlib.redirect_stdout(io.StringIO()):
        assert produce(["--out", str(lab.root / "landing"), "--days", str(days)]) == 0
    departures, arrivals = (
        landed_files((lab.root / "landing" / name).rename(lab.root / f"pool_{name}"))
        for name in ("departures", "arrivals")
    )
    return Example(lab, departures, arrivals)


def copy_landed(example: Example, lab: Lab) -> None:
    """The same project elsewhere, where all that has landed lies from the beginning and is read at once."""
    for name in ("models", "macros", "sources", "landing"):
        shutil.copytree(example.lab.root / name, lab.root / name)
    source = (lab.root / "sources" / "flights.yml").read_text()
    lab.write("sources/flights.yml", _few_files(source, 1000))
    text = (example.lab.root / "project.yml").read_text()
    text = text.replace(f"path: {example.lab.lake_text}", f"path: {lab.lake_text}")
    lab.write("project.yml", text.replace(f"schema: {example.lab.schema}\n", f"schema: {lab.schema}\n"))


def _few_files(source: str, count: int) -> str:
    return re.sub(r"max_files_per_trigger: \d+", f"max_files_per_trigger: {count}", source)
