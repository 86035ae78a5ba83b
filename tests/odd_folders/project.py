"""A small project in a folder with an odd name, whose sources are in folders with odd names, and what it must hold."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.local_paths import literally
from tests.lab import JAVA_OPTIONS, yaml_text
from tests.odd_folders.names import PATTERN, odd_name, strays

# An ignored name has a file skipped; Jinja reads a template where a value begins one.
_FIRST = "._"
_PROJECT = """
name: odd
version: "1"
target: dev
targets:
  dev:
    catalog: {{type: sqlite, name: lake{lake}}}
    schema: shop{state}
    allow_after_reading: [/nowhere]
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{options}"}}}}
"""
_SOURCES = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: {events}
        schema: "id int, at timestamp, kind string, amount int"
        on_bad_record: quarantine
{after}      - name: kinds
        format: csv
        path: {kinds}
        schema: "kind string, label string"
      - name: parts
        format: json
        path: {parts}
        stream: false
        schema: "n int"
"""
_MODELS = {
    "events": """/*---
streams: {{shop.events: {{watermark: at delay 10 minutes, dedup: [id]}}}}
columns:
  kind: {{tests: [not_null]}}
expectations: [{{name: positive, check: amount > 0, on_fail: quarantine}}]
---*/
select id, at, kind, amount from {{{{ source('shop', 'events') }}}}
""",
    "latest": """/*---
streams: [events]
unique_key: kind
sequence_by: [id]
---*/
select kind, id, amount from {{{{ ref('events') }}}}
""",
    "hourly": """/*---
streams: {{events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: "tumbling(at, 1 hour)"}}
---*/
select hour.start as hour, count(*) as events from {{{{ ref('events') }}}} group by hour
""",
    "labels": """/*---
materialized: table
---*/
select k.label, count(*) as events from {{{{ ref('events') }}}} as e join {{{{ source('shop', 'kinds') }}}} as k on e.kind = k.kind
group by k.label
""",
    "parts": """/*---
materialized: table
---*/
select sum(n) as total from {{{{ source('shop', 'parts') }}}}
""",
    "seen": """/*---
materialized: view
---*/
select id from {{{{ ref('events') }}}}
""",
}
_KINDS = ("a", "b", "c")


@dataclass(slots=True)
class OddProject:
    """The project and what landed.

    Attributes:
        outer: the folder that holds nothing but the way to the project.
        names: the folders on that way.
        folders: of the sources, the archive, the lake and the state, relative to the project.
        rows: that landed and are no bad records.
        bad: how many bad records landed, and rows that an expectation takes out.
        without: letters that no name on the way to a source has.
        parts: the numbers of the files that a pattern finds.
    """

    outer: Path
    names: tuple[str, ...]
    folders: dict[str, str]
    dice: random.Random
    without: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    bad: int = 0
    parts: list[int] = field(default_factory=list)
    _clock: float = field(default_factory=lambda: time.time() - 100_000)

    @property
    def root(self) -> Path:
        return self.outer.joinpath(*self.names)

    def strays(self) -> list[str]:
        """What was written outside of the project."""
        return strays(self.outer, self.names)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def land(self, *, bad: bool = False) -> None:
        """Land some events, each in a file with an odd name, and a part for the pattern."""
        for _ in range(2):
            row = {
                "id": len(self.rows) + 1, "at": f"2024-05-01T{10 + len(self.rows) // 3:02}:{len(self.rows) % 60:02}:00Z",
                "kind": self.dice.choice(_KINDS), "amount": self.dice.randint(1, 9),
            }  # fmt: skip
            self.rows.append(row)
            lines = [
                json.dumps(row),
                *(['{"id": "no number"}', json.dumps({**row, "id": 1000 + row["id"], "amount": 0})] if bad else []),
            ]
            self.bad += 2 * bad
            self._file(f"{self.folders['events']}/{self._name(':')}/{self._name(':')}.json", "\n".join(lines) + "\n")
        self.parts.append(self.dice.randint(1, 100))
        self._file(
            f"{self.folders['parts']}/part{len(self.parts)}{self._name(':')}.json", json.dumps({"n": self.parts[-1]})
        )

    def _file(self, name: str, text: str) -> None:
        path = self.write(name, text)
        self._clock += 10
        os.utime(path, (self._clock, self._clock))

    def _name(self, without: str = "") -> str:
        while (name := odd_name(self.dice, without=without))[0] in _FIRST:
            pass
        return name

    def expected(self) -> dict[str, Counter[Any]]:
        """The rows of each table, computed from what landed."""
        last = {row["kind"]: row for row in self.rows}
        return {
            "events": Counter((row["id"], row["kind"], row["amount"]) for row in self.rows),
            "latest": Counter((kind, row["id"], row["amount"]) for kind, row in last.items()),
            "labels": Counter(
                {(f"label {kind}", n): 1 for kind, n in Counter(row["kind"] for row in self.rows).items()}
            ),
            "parts": Counter([(sum(self.parts),)]),
        }


def make(outer: Path, dice: random.Random) -> OddProject:
    """Make a project below an empty folder."""
    # A path with a colon and a letter of a pattern is an error of its own.
    without = dice.choice((":", PATTERN))
    names = tuple(odd_name(dice, without=without) for _ in range(dice.randint(1, 2)))
    project = OddProject(outer, names, {}, dice, without)
    project.folders = {
        what: f"{what}/{_in_yaml(project)}" for what in ("events", "kinds", "parts", "archive", "lake", "state")
    }
    own = dice.random() < 0.5
    lake = f", path: {yaml_text(project.folders['lake'])}" if own else ""
    state = f"\n    state: {yaml_text(project.folders['state'])}" if own else ""
    project.write("project.yml", _PROJECT.format(lake=lake, state=state, options=JAVA_OPTIONS))
    after = (
        f"        after_reading: archive\n        archive_path: {yaml_text(project.folders['archive'])}\n"
        if dice.random() < 0.5
        else ""
    )
    pattern = f"{literally(project.folders['parts'])}/part*" if project.without == ":" else project.folders["parts"]
    kinds = f"{project.folders['kinds']}/{_in_yaml(project, ':')}.csv"
    project.write(kinds, "kind,label\n" + "".join(f"{kind},label {kind}\n" for kind in _KINDS))
    paths = {"events": project.folders["events"], "kinds": kinds, "parts": pattern}
    project.write(
        "sources/shop.yml", _SOURCES.format(after=after, **{name: yaml_text(path) for name, path in paths.items()})
    )
    for name, sql in _MODELS.items():
        project.write(f"models/{name}.sql", sql.format())
    project.land()
    return project


def _in_yaml(project: OddProject, without: str = "") -> str:
    """A name that is no template of Jinja's."""
    while True:
        name = project._name(without + project.without)
        if not any(sign in name for sign in ("{{", "{%", "{#")):
            return name
