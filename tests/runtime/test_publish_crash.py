"""kill -9 while rows wait for tests, before they are published and after: readers see nothing, or all of it, once."""

from __future__ import annotations

import signal

import pytest

from engine.lake.commits import STAGED
from engine.lake.read import Lake, TableFacts
from engine.state import checkpoint as spark_checkpoint
from tests.lab import EVENTS, Lab, run_alone
from tests.runtime.test_merge_crash import AFTER
from tests.runtime.test_publish import LATEST, PAID, event, ids, staged

pytestmark = pytest.mark.spark

BEFORE_PUBLISHING = """
import os, signal
from engine.lake import branches
def publish(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
branches.publish = publish
"""
AFTER_PUBLISHING = """
import os, signal
from engine.lake import branches
_publish = branches.publish
def publish(*arguments):
    _publish(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
branches.publish = publish
"""


def kill(lab: Lab, model: str, script: str) -> None:
    killed = run_alone(lab.root, "build", "-s", model, script=script)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr


def batches(table: TableFacts | None) -> list[str]:
    assert table is not None
    return [batch for s in table.history if (batch := s.marker("batch-id")) is not None]


def test_kills_on_each_side_of_both_commits(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS)
    lab.model("paid", PAID)
    lab.model("latest", LATEST)
    lab.land("a", [event(1, 1), event(2, 1)])
    lab.land("b", [event(1, 9), event(3, 2)])
    lake: Lake = lab._lake()

    # Between the commit to the branch and Spark's.
    kill(lab, "latest", AFTER.format(model="latest"))
    checkpoint = lab.state / "latest" / "1" / "checkpoint"
    assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (1, 0)
    assert (batches(lab.table("latest")), batches(lake.table(lab.schema, "latest", STAGED))) == ([], ["1", "0"])

    # The tests have passed, nothing is published.
    kill(lab, "latest", BEFORE_PUBLISHING)
    assert spark_checkpoint.last_committed(checkpoint) == 1
    assert (lab.snapshot("latest"), staged(lab, "latest")) == (None, [1, 2, 3])

    # It is published, and nobody has heard of it.
    kill(lab, "paid", AFTER_PUBLISHING)
    assert (ids(lab, "paid"), staged(lab, "paid")) == ([1, 1, 2, 3], None)

    before = lab.snapshot("paid")
    done = lab.build()
    assert [done.model(name)["status"] for name in ("paid", "latest")] == ["unchanged", "unchanged"]
    assert (lab.snapshot("paid"), ids(lab, "paid")) == (before, [1, 1, 2, 3])
    assert (ids(lab, "latest"), staged(lab, "latest")) == ([1, 2, 3], None)
    assert [batches(lab.table(name)) for name in ("paid", "latest")] == [["1", "0"], ["1", "0"]]
