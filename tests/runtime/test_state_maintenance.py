"""Short builds compact their state: snapshots in place of changelogs, and old files are removed."""

from __future__ import annotations

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

HOURLY = """/*---
streams:
  shop.events: {watermark: at delay 10 minutes}
windows:
  hour: tumbling(at, 1 hour)
pre_hook:
  - set spark.sql.streaming.minBatchesToRetain = 2
  - set spark.sql.streaming.stateStore.minDeltasForSnapshot = 2
---*/
select hour.start as begins, count(*) as events from {{ source('shop', 'events') }} group by hour
"""


def test_the_files_of_the_state_do_not_grow_with_each_build(lab: Lab) -> None:
    lab.model("hourly", HOURLY)
    for hour in range(6):
        lab.land(f"f{hour}", [{"id": hour, "at": f"2024-05-01T0{hour}:30:00Z", "kind": "a", "amount": 1.0}])
        assert lab.build().model("hourly")["batches"] == 2
    state = lab.state / "hourly" / "1" / "checkpoint" / "state" / "0"
    for partition in (state / "0", state / "1"):
        names = {path.name for path in partition.iterdir() if path.suffix in {".changelog", ".zip"}}
        assert any(name.endswith(".zip") for name in names)
        assert "1.changelog" not in names
        assert len(names) < 8
    assert [row["events"] for row in lab.rows("hourly")] == [1] * 5
