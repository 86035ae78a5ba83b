"""A full refresh of a chain that was interrupted: the next plain build ends in the tables of an undisturbed one."""

from __future__ import annotations

import json

import pytest

from tests.fault_injection.points import kill, killing, reached
from tests.lab import Lab, event, killed_alone, run_alone

pytestmark = pytest.mark.spark

A = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, {0} as version from {{{{ source('shop', 'events') }}}}"
B = (
    "/*---\nstreams: {a: {watermark: at delay 10 minutes, dedup: [id]}}\n---*/\n"
    "select id, at, version from {{ ref('a') }}"
)
C = "/*---\nstreams: [b]\nunique_key: id\n---*/\nselect id, version from {{ ref('b') }}"
TOTAL = "select max(version) as version, count(*) as n from {{ ref('c') }}"
UNIT = """unit_tests:
  - name: first
    model: {0}
    given: {{{1}: [{2}]}}
    expect: {{rows: [{3}]}}
"""
# Each point of a refresh, at one of the tables; `make test` has these: before the first write, within, behind the first.
FEW = [("noted", "a"), ("written", "b"), ("replaced", "a")]
POINTS = [
    ("noted", "a"), ("created", "b"), ("renewed", "c"), ("started", "b"), ("computing", "c"), ("written", "b"),
    ("committing", "b"), ("committed", "a"), ("recorded", "b"), ("ended", "c"), ("replacing", "b"), ("replaced", "a"),
    ("noted", "c"), ("replacing", "total"),
]  # fmt: skip
INTERRUPTED = """
import os, signal
from engine import kill_points
kill_points.listen(lambda point, table, batch, where: (point, table) == ("noted", "a") and os.kill(os.getpid(), signal.SIGINT))
"""


def prepare(lab: Lab) -> None:
    for name, text in {"a": A.format(0), "b": B, "c": C, "total": TOTAL}.items():
        lab.model(name, text)
    lab.land("a", [event(1, 1), event(2, 2)])
    lab.build()
    lab.land("b", [event(3, 3), event(1, 1)])
    lab.build()


def check(lab: Lab, version: int) -> None:
    """What was built of the model's last version alone."""
    for name, ids in {"a": [1, 1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}.items():
        assert lab.ids(name) == ids, name
        assert {row["version"] for row in lab.rows(name)} == {version}, name
    assert lab.rows("total") == [{"version": version, "n": 3}]


@pytest.mark.gate
@pytest.mark.nightly_cases("all")
@pytest.mark.parametrize("points", [FEW, POINTS], ids=["few", "all"])
def test_a_refresh_that_fails_at_any_point_is_finished_by_the_next_build(
    lab: Lab, points: list[tuple[str, str]]
) -> None:
    prepare(lab)
    for version, (point, table) in enumerate(points, 1):
        lab.model("a", A.format(version))
        with reached(point, lambda at, *_, table=table: kill() if at.partition("__")[0] == table else None) as seen:
            failed = lab.run("build", "-f")
        assert failed.code != 0, (point, table, seen)
        lab.build()
        check(lab, version)
    assert {e["status"] for e in lab.build().events if e["event"] == "ModelFinished"} == {"unchanged"}
    assert not list(lab.state.rglob("operation.json"))


@pytest.mark.gate
def test_an_interrupted_refresh_is_finished_retried_or_discarded(lab: Lab) -> None:
    prepare(lab)
    lab.model("a", A.format(1))
    ended = run_alone(lab.root, "build", "-f", script=INTERRUPTED)
    assert ended.returncode == 130, ended.stdout + ended.stderr
    assert ended.stderr.endswith("the next build finishes the full refresh; to discard it: --discard-refresh\n")
    results = json.loads((lab.root / "target/run_results.json").read_text())["results"]
    assert {r["unique_id"].rpartition(".")[2]: r["status"] for r in results}["b"] in {"skipped", "error"}
    # What streams from what is not rebuilt yet comes behind it.
    alone = lab.run("build", "-s", "c")
    assert (alone.code, alone.codes()) == (1, ["refresh-unfinished"]), alone.text
    planned = lab.run("plan")
    assert "was not finished" in planned.text
    retried = lab.run("retry")
    assert retried.code == 0, retried.text
    check(lab, 1)

    lab.model("a", A.format(2))
    killed_alone(lab.root, "build", "-f", script=killing({"b": "replacing"}))
    assert "refresh-unfinished" in lab.build().codes()
    check(lab, 2)

    # Before the first table was replaced there is a way back.
    lab.model("a", A.format(3))
    with reached("replacing", kill):
        assert lab.run("build", "-f").code != 0
    lab.build("--discard-refresh")
    check(lab, 2)
    assert not list(lab.state.rglob("operation.json"))


@pytest.mark.nightly
def test_a_unit_test_that_stops_a_refresh_leaves_nothing_to_finish(lab: Lab) -> None:
    prepare(lab)
    lab.write("tests/a.yml", UNIT.format("a", "shop.events", "{id: 1, at: 2024-01-01 10:00:00}", "{id: 1, version: 0}"))
    lab.model("a", A.format(1))
    stopped = lab.run("build", "-f")
    assert stopped.code == 1, stopped.text
    assert not list(lab.state.rglob("operation.json"))
    lab.model("a", A.format(0))
    assert {e["status"] for e in lab.build().events if e["event"] == "ModelFinished"} == {"unchanged"}

    # Where the input was rebuilt, the stream that reads it has to be.
    (lab.root / "tests/a.yml").unlink()
    lab.write("tests/c.yml", UNIT.format("c", "b", "{id: 1, version: 7}", "{id: 1, version: 8}"))
    lab.model("a", A.format(2))
    assert lab.run("build", "-f").code == 1
    assert sorted(path.parent.name for path in lab.state.rglob("operation.json")) == ["c", "total"]
    lab.write("tests/c.yml", UNIT.format("c", "b", "{id: 1, version: 7}", "{id: 1, version: 7}"))
    assert "refresh-unfinished" in lab.build().codes()
    check(lab, 2)
