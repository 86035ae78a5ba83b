"""kill -9 while a batch is merged or rewritten, then a build: the tables equal those of an undisturbed run."""

from __future__ import annotations

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.lab import EVENTS, Lab, event, killed_alone

pytestmark = pytest.mark.spark

# All of it in one project: keys, deletes, rows put aside, a static side (so that the batch is kept before its first
# commit), a count in update mode and a ranking in complete mode.
LATEST = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
expectations: [{name: small, check: amount < 100, on_fail: quarantine}]
---*/
select e.id, e.at, e.kind, e.amount, n.name
from {{ source('shop', 'events') }} e
left join {{ source('shop', 'names') }} n on n.id = e.id
"""
COUNTS = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
output_mode: MODE
---*/
select kind, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by kind
"""
NAMES = """      - name: names
        format: csv
        path: landing/names
        schema: "id int, name string"
"""


def prepare(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS + NAMES)
    lab.model("latest", LATEST)
    lab.model("counts", COUNTS.replace("MODE", "update"))
    lab.model("ranking", COUNTS.replace("MODE", "complete"))
    lab.write("landing/names/n.csv", "id,name\n1,Ada\n2,Grace\n3,Edsger\n")
    lab.land("a", [event(1, 1), event(2, 1), event(3, 1)])
    lab.land("b", [event(1, 9, "deleted"), event(2, 2, amount=500.0), event(2, 3, amount=2.0), event(4, 1)])
    # What comes after: an older row of a deleted key, and of a living one.
    lab.land("c", [event(1, 5), event(2, 2, amount=7.0)])


LATEST_ROWS = [(2, 2.0, "Grace"), (3, 1.0, "Edsger"), (4, 1.0, None)]


def check(lab: Lab) -> None:
    assert sorted((r["id"], r["amount"], r["name"]) for r in lab.rows("latest")) == LATEST_ROWS
    assert [r["row"] for r in lab.rows("latest__quarantine")] == [
        '{"id":2,"at":"2024-05-01T10:02:00.000000Z","kind":"paid","amount":500.0,"name":"Grace"}'
    ]
    assert [r["key"] for r in lab.rows("latest__deleted")] == [{"id": 1}]
    for name in ("counts", "ranking"):
        counted = {r["kind"]: (r["n"], r["amount"]) for r in lab.rows(name)}
        assert counted == {"paid": (8, 514.0), "deleted": (1, 1.0)}, name
        table = lab.table(name)
        assert table is not None
        assert [s.marker("batch-id") for s in table.history] == ["2", "1", "0"]


# In the middle of a MERGE, and before and after the other commits; then after those that were not made.
FIRST = {"latest": ("merging", 1), "counts": ("committed", 1), "ranking": ("written", 1)}
SECOND = {"latest": ("committed", 1), "ranking": ("committed", 1)}


@pytest.mark.gate
def test_batches_that_are_killed_at_every_point_are_written_once(lab: Lab) -> None:
    prepare(lab)
    for points in (FIRST, SECOND):
        script = killing(points, lab.lake_path / "warehouse" / lab.schema)
        killed_alone(lab.root, "build", "--threads", "3", "-s", " ".join(points), script=script)
        for model, (point, _) in points.items():
            checkpoint = lab.state / model / "1" / "checkpoint"
            logs = spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)
            assert logs == (1, 0), model
            table = lab.table(model)
            assert table is not None
            if point != "merging":
                written = [s.marker("batch-id") for s in table.history]
                assert written == (["1", "0"] if point == "committed" else ["0"]), model
        # The other outputs of the batch come first, and are there once.
        assert (len(lab.rows("latest__deleted")), len(lab.rows("latest__quarantine"))) == (1, 1)
        # A batch that comes again must not see what has changed since.
        lab.write("landing/names/n.csv", "id,name\n1,Ada\n2,Not Grace\n3,Edsger\n4,Not there\n")
    lab.build()
    check(lab)
