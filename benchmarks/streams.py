"""Whole commands beside plain PySpark scripts of the same work, in turns: how long an analyst waits.

    python -m benchmarks.streams [--quick] [--turns 3] [--only window,upsert] [--pipelines VENV]

Each figure is the ratio of `engine build` to its script (`benchmarks._by_hand`) in the same turn, so that a noisy
machine slows both; the median of the turns counts. Both start from nothing each time: a new process, new tables, new
checkpoints; the class archive that an earlier build left (`engine warmup`) is there, as it is on a user's second
command. VENV is an environment with `pyspark[pipelines]`, for Spark Declarative Pipelines' run of two trivial tables.
Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._commands import PROJECT, Measured, keep, prepare, timed, write_events, write_project
from engine.spark.jars import jar_paths
from engine.spark.java import find_java

APPEND = """\
/*---
streams: [shop.events]
---*/
select id, at, kind, amount from {{ source('shop', 'events') }} where kind <> 'lost'
"""
WINDOW = """\
/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as hour, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by hour
"""
UPSERT = """\
/*---
streams: [shop.events]
unique_key: id
sequence_by: at
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
BATCHES = """\
/*---
streams: {shop.events: {watermark: at delay 10 minutes, dedup: [id], max_files_per_trigger: 1}}
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as hour, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by hour
"""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work in both forms.

    Attributes:
        name: in the results.
        models: SQL by model name.
        scripts: works of `benchmarks._by_hand`, one process each.
        files: how many files the source has.
        rows: in each file.
        built: the tables are there already, so that the measured build finds nothing new.
        goal: the ratio that is aimed at.
    """

    name: str
    models: dict[str, str]
    scripts: tuple[str, ...]
    goal: float
    files: int = 20
    rows: int = 1_000
    built: bool = False


TEN = {f"window_{number}": WINDOW for number in range(10)}
WORKS = (
    Work("nothing_new", TEN, ("session",), 0.15, built=True),
    Work("append", {"passed_on": APPEND}, ("append",), 0.5),
    Work("window", {"hourly": WINDOW}, ("window",), 0.5),
    Work("upsert", {"latest": UPSERT}, ("upsert",), 0.5),
    Work("forty_batches", {"hourly": BATCHES}, ("batches",), 0.6, files=40, rows=100),
    Work("ten_models", TEN, ("window",) * 10, 0.2),
)
QUICK = ("nothing_new", "window", "forty_batches")


@dataclass(frozen=True, slots=True)
class Result:
    """The medians of a piece of work, every pair of the build and its peer, and the median of the pairs' ratios."""

    work: str
    ours: Measured
    theirs: Measured
    pairs: Sequence[tuple[Measured, Measured]]
    ratio: float
    cpu_ratio: float
    goal: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three pieces of work, one turn each")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="names of the pieces of work")
    parser.add_argument("--pipelines", type=Path, help="an environment with pyspark[pipelines]")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else QUICK if options.quick else [work.name for work in WORKS]
    turns = 1 if options.quick else options.turns
    jars = ",".join(map(str, jar_paths(("core",), fetch=True, java=find_java())))
    prepare()
    results: list[Result] = []
    for work in WORKS:
        if work.name in names:
            results.append(_compare(work, turns, jars))
            # After each: the whole takes half an hour, and an end before that loses the last piece of work only.
            _keep(results, turns, options)
    if options.pipelines is not None:
        results.append(_against_pipelines(options.pipelines, turns))
        _keep(results, turns, options)


def _keep(results: Sequence[Result], turns: int, options: argparse.Namespace) -> None:
    if not options.quick:
        keep("streams", results, turns)


def _compare(work: Work, turns: int, jars: str) -> Result:
    pairs = []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            write_project(root, work.models)
            write_events(root, work.files, work.rows)
            if work.built:
                _engine(root)
            ours = _engine(root)
            theirs = _total([timed([sys.executable, "-m", "benchmarks._by_hand", script, *_place(root, index), jars])
                             for index, script in enumerate(work.scripts)])  # fmt: skip
            pairs.append((ours, theirs))
    return _result(work.name, pairs, work.goal)


def _place(root: Path, index: int) -> list[str]:
    """A folder for each script: tables of one name do not meet."""
    place = root / f"script_{index}"
    place.mkdir()
    (place / "landing").symlink_to(root / "landing")
    return [str(place)]


def _engine(root: Path) -> Measured:
    return timed([sys.executable, "-m", "engine", "build", "--project-dir", str(root)])


def _total(parts: Sequence[Measured]) -> Measured:
    return Measured(sum(part.seconds for part in parts), sum(part.cpu for part in parts))


def _result(name: str, pairs: Sequence[tuple[Measured, Measured]], goal: float) -> Result:
    def median(value: Callable[[tuple[Measured, Measured]], float]) -> float:
        return round(statistics.median(map(value, pairs)), 3)

    result = Result(
        name,
        Measured(median(lambda pair: pair[0].seconds), median(lambda pair: pair[0].cpu)),
        Measured(median(lambda pair: pair[1].seconds), median(lambda pair: pair[1].cpu)),
        pairs,
        median(lambda pair: pair[0].seconds / pair[1].seconds),
        median(lambda pair: pair[0].cpu / pair[1].cpu),
        goal,
    )
    print(
        f"{name:<16}{result.ours.seconds:8.2f} s {result.ours.cpu:8.2f} s cpu   peer {result.theirs.seconds:8.2f} s "
        f"{result.theirs.cpu:8.2f} s cpu   ratio {result.ratio:5.2f} (cpu {result.cpu_ratio:5.2f}, goal {goal})",
        flush=True,
    )
    return result


TRIVIAL = {"one": "select 1 as id\n", "two": "select id + 1 as id from {{ ref('one') }}\n"}
PIPELINE = """\
name: trivial
storage: file://{folder}/storage
libraries:
  - glob: {{include: transformations/**}}
"""
DECLARED = (
    "CREATE MATERIALIZED VIEW one AS SELECT 1 AS id;\nCREATE MATERIALIZED VIEW two AS SELECT id + 1 AS id FROM one;\n"
)


def _against_pipelines(venv: Path, turns: int) -> Result:
    """Two tables of one row, the second made from the first."""
    pairs = []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            root, pipeline = Path(folder) / "project", Path(folder) / "pipeline"
            files = {root / "project.yml": PROJECT, pipeline / "spark-pipeline.yml": PIPELINE.format(folder=pipeline),
                     pipeline / "transformations/tables.sql": DECLARED}  # fmt: skip
            files |= {root / f"models/{name}.sql": text for name, text in TRIVIAL.items()}
            for path, text in files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            ours = _engine(root)
            environment = {"PATH": f"{venv}/bin:{os.environ['PATH']}", "PYSPARK_PYTHON": f"{venv}/bin/python"}
            theirs = timed([f"{venv}/bin/spark-pipelines", "run"], pipeline, environment)
            pairs.append((ours, theirs))
    return _result("pipelines", pairs, 0.33)


if __name__ == "__main__":
    main()
