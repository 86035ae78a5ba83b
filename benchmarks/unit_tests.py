"""`python -m benchmarks.unit_tests`: 50 unit tests of streaming models, from command to end, with start-up."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=50)
    number = parser.parse_args().tests
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files(number).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        load, begin, used = os.getloadavg()[0], time.perf_counter(), os.times()
        command = [sys.executable, "-m", "engine", "test", "-s", "test_type:unit", "--project-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    spent = after.children_user + after.children_system - used.children_user - used.children_system
    each = [float(found) for found in re.findall(r"PASS in ([\d.]+)s", done.stdout)]
    print(
        f"{len(each)} unit tests in {seconds:.1f} s with start-up, {spent:.0f} s of processor, load before {load:.1f}"
    )
    print(f"slowest {max(each):.1f} s, median {sorted(each)[len(each) // 2]:.1f} s (4 side by side)")


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
