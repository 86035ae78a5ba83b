"""kill -9 while rows wait for tests, before they are published and after: readers see nothing, or all of it, once."""

from __future__ import annotations

import pytest

from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.lab import Lab, event, killed_alone
from tests.runtime.test_publish import LATEST, PAID, staged

pytestmark = pytest.mark.spark

# Between the commit to the branch and Spark's; the tests have passed and nothing is published; it is published, and
# nobody has heard of it.
POINTS = {"latest": ("committed", 1), "held": "publishing", "paid": "published"}


def batches(table: TableFacts | None) -> list[str]:
    assert table is not None
    return [batch for s in table.history if (batch := s.marker("batch-id")) is not None]


@pytest.mark.gate
def test_kills_on_each_side_of_both_commits(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("latest", LATEST)
    lab.model("held", LATEST)
    lab.land("a", [event(1, 1), event(2, 1)])
    lab.land("b", [event(1, 9), event(3, 2)])
    lake: Lake = lab._lake()

    killed_alone(lab.root, "build", "--threads", "3", script=killing(POINTS))
    committed = {name: spark_checkpoint.last_committed(lab.state / name / "1" / "checkpoint") for name in POINTS}
    assert committed == {"latest": 0, "held": 1, "paid": 1}
    assert spark_checkpoint.last_started(lab.state / "latest" / "1" / "checkpoint") == 1
    assert (batches(lab.table("latest")), batches(lake.table(lab.schema, "latest", STAGED))) == ([], ["1", "0"])
    assert (lab.snapshot("held"), staged(lab, "held")) == (None, [1, 2, 3])
    assert (lab.ids("paid"), staged(lab, "paid")) == ([1, 1, 2, 3], None)

    before = lab.snapshot("paid")
    done = lab.build()
    assert [done.model(name)["status"] for name in ("paid", "held")] == ["unchanged", "unchanged"]
    assert (lab.snapshot("paid"), lab.ids("paid")) == (before, [1, 1, 2, 3])
    for name in ("latest", "held"):
        assert (lab.ids(name), staged(lab, name)) == ([1, 2, 3], None), name
    assert [batches(lab.table(name)) for name in POINTS] == [["1", "0"]] * 3
