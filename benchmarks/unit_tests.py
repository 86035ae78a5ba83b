"""`python -m benchmarks.unit_tests`: 50 unit tests of streaming models, from command to end, with start-up.

Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks._commands import keep, prepare

PROJECT = """
name: bench
version: "1"
target: dev
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: main
    spark: {master: "local[2]"}
"""
SOURCES = """
sources:
  - name: shop
    tables:
      - {name: events, format: json, path: landing, schema: "id int, at timestamp, kind string"}
"""
MODELS = {
    "passed_on": (
        "/*---\nstreams: [shop.events]\n---*/\nselect id, upper(kind) as kind from {{ source('shop', 'events') }}"
    ),
    "once": (
        "/*---\nstreams: {shop.events: {watermark: at delay 1 hour, dedup: [id]}}\n---*/\n"
        "select id, at, kind from {{ source('shop', 'events') }}"
    ),
    "hourly": (
        "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n"
        "---*/\nselect hour.start as hour, count(*) as n from {{ source('shop', 'events') }} group by hour"
    ),
}
STEPS = {
    "passed_on": ("", "[{id: 1, kind: A}, {id: 1, kind: A}]"),
    "once": ("", "[{id: 1}]"),
    "hourly": ("      - flush\n", "[{hour: 2024-01-01 10:00:00, n: 2}]"),
}
TEST = """\
  - name: test_{number}
    model: {model}
    steps:
      - given: {{shop.events: [{{id: 1, at: 2024-01-01 10:00:00, kind: a}}]}}
      - given: {{shop.events: [{{id: 1, at: 2024-01-01 10:01:00, kind: a}}]}}
{more}    expect: {expect}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """Tests in one command: seconds from command to end, processor seconds, and the seconds of each test."""

    tests: int
    seconds: float
    cpu: float
    each: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=50)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    prepare()
    results = [_run(options.tests) for _ in range(options.runs)]
    keep("unit-tests", results, options.runs)


def _run(number: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files(number).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        begin, used = time.perf_counter(), os.times()
        command = [sys.executable, "-m", "engine", "test", "-s", "test_type:unit", "--project-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    spent = after.children_user + after.children_system - used.children_user - used.children_system
    each = [float(found) for found in re.findall(r"PASS in ([\d.]+)s", done.stdout)]
    print(f"{len(each)} unit tests in {seconds:.1f} s with start-up, {spent:.0f} s of processor", flush=True)
    return Result(len(each), round(seconds, 1), round(spent, 1), each)


def files(number: int) -> dict[str, str]:
    """A project with three models and so many tests."""
    names = list(MODELS)
    tests = []
    for index in range(number):
        model = names[index % len(names)]
        more, expect = STEPS[model]
        tests.append(TEST.format(number=index, model=model, more=more, expect=expect))
    models = {f"models/{name}.sql": text for name, text in MODELS.items()}
    units = {"tests/units.yml": "unit_tests:\n" + "".join(tests)}
    return {"project.yml": PROJECT, "sources/shop.yml": SOURCES, **models, **units}


if __name__ == "__main__":
    main()
