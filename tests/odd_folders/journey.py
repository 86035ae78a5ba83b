"""What is done to a project: every command that writes or reads a path, and what must be there afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.lake.lake_reader import Lake
from engine.project import load_project
from tests.lab import Result
from tests.odd_folders.project import OddProject

_COLUMNS = {
    "events": ("id", "kind", "amount"),
    "latest": ("kind", "id", "amount"),
    "labels": ("label", "events"),
    "parts": ("total",),
}


class Fault(Exception):  # noqa: N818 - what a generator finds
    """Something that must not be."""


class Journey:
    """Runs commands on a project in this process."""

    def __init__(self, project: OddProject, printed: Any) -> None:
        self.project, self._printed = project, printed
        self.commands = 0

    def run(self, *arguments: str, code: int = 0) -> Result:
        """Run a command; afterwards nothing is beside the project.

        Raises:
            Fault: it ends otherwise, or wrote beside the project.
        """
        self._printed.readouterr()
        ended = invoke([*arguments, "--project-dir", str(self.project.root), "--log-format", "json"])
        printed = self._printed.readouterr()
        self.commands += 1
        result = Result(ended, printed.out, printed.err)
        if ended != code:
            raise Fault(f"engine {' '.join(arguments)} ended with {ended}: {result.text[-3000:]}")
        if found := self.project.strays():
            raise Fault(f"engine {' '.join(arguments)} wrote {found}")
        return result

    def check(self) -> None:
        """Compare the tables with what landed.

        Raises:
            Fault: they differ.
        """
        catalog = compile_project(load_project(self.project.root)).target.catalog
        lake = Lake(SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=catalog.path))
        for name, expected in self.project.expected().items():
            found = Counter(tuple(row[column] for column in _COLUMNS[name]) for row in _rows(lake, name))
            if found != expected:
                raise Fault(f"{name}: {found - expected} too many, {expected - found} missing")
        hours = Counter(row["at"][11:13] for row in self.project.rows)
        for row in _rows(lake, "hourly"):
            if row["events"] != hours[f"{row['hour'].hour:02}"]:
                raise Fault(f"hourly: {row}")
        if self.project.bad and len(_rows(lake, "events__quarantine")) != self.project.bad:
            raise Fault(f"{len(_rows(lake, 'events__quarantine'))} rows in quarantine, not {self.project.bad}")


def _rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    found = lake.rows("shop", name, None)
    if found is None:
        raise Fault(f"there is no table {name}")
    return [dict(zip(found[0], row, strict=True)) for row in found[1]]


def short(journey: Journey) -> None:
    """Build, land, plan, build, and read the tables in the ways that need no Java."""
    journey.run("plan")
    journey.run("build")
    journey.check()
    if (again := journey.run("build")).text.count('"status": "unchanged"') == 0:
        raise Fault(f"nothing is unchanged: {again.text[-2000:]}")
    journey.project.land(bad=True)
    journey.run("plan")
    journey.run("build")
    journey.check()
    shown = [
        json.loads(line)
        for line in journey.run("show", "latest", "--table", "--all", "--output", "json").out.splitlines()
    ]
    if len(shown) != len(journey.project.expected()["latest"]):
        raise Fault(f"show --table: {shown}")
    journey.run("docs", "generate")
    journey.run("maintain", "--older-than", "1 second", "--orphans-older-than", "2 days")
    journey.check()


def long(journey: Journey) -> None:
    """Run what is left: queries, copies, refreshes, rollbacks, erasure, and a drop at the end."""
    project = journey.project
    short(journey)
    journey.run("sql", "select count(*) as n from latest")
    journey.run("export", "duckdb", str(project.root / "copies.duckdb"))
    journey.run("show", "labels")
    journey.run("test")
    journey.run("debug")
    journey.run("status", code=3)
    journey.run("state", "events")
    journey.run("source", "inspect", "shop.events")
    journey.run("build", "-f", "-s", "latest")
    journey.check()
    journey.run("rollback", "latest", "--yes")
    journey.check()
    project.land()
    journey.run("build")
    journey.check()
    gone = project.rows[0]["kind"]
    journey.run("erase", "latest", "--where", f"kind = '{gone}'", "--yes")
    project.rows.append({**project.rows[-1], "id": len(project.rows) + 1, "kind": gone})
    project.rows.pop()
    journey.run("clean")
    if (project.root / "target").exists():
        raise Fault("target/ is still there after engine clean")
    journey.run("plan")
    journey.run("drop", "hourly", "--yes")
    if (project.root / ".engine" / "lake" / "warehouse" / "shop" / "hourly").exists():
        raise Fault("the files of a dropped table are still there")
    journey.run("build")


JOURNEYS: tuple[Callable[[Journey], None], ...] = (short, long)
