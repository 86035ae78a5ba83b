"""What renews, resets and removes state does so in a bucket; Spark's checkpoints, RocksDB's files and kept batches are there."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.catalogs.life_cycle import LATEST, PLAIN
from tests.lab import EVENTS, event
from tests.object_store.conftest import StoreLab

pytestmark = pytest.mark.spark
HOURLY = """/*---
streams:
  shop.events:
    watermark: at delay 0 minutes
windows:
  hour: tumbling(at, 1 hour)
output_mode: append
---*/
select hour.start as began, count(*) as n from {{ source('shop', 'events') }} group by hour
"""
# Two outputs of rows that cannot be computed again: each micro-batch is kept until both are committed.
CHECKED = """/*---
streams: [shop.events]
expectations:
  - name: small
    check: amount < 100
    on_fail: quarantine
---*/
select id, amount, current_timestamp() as seen from {{ source('shop', 'events') }}
"""


@pytest.fixture
def lab(stored: StoreLab) -> StoreLab:
    path = stored.root / "project.yml"
    project = yaml.safe_load(path.read_text())
    project["targets"]["dev"]["state"] = f"s3a://{stored.bucket}/engine-state"
    path.write_text(yaml.safe_dump(project))
    stored.write("sources/shop.yml", EVENTS)
    return stored


def state(lab: StoreLab, name: str, *below: str) -> list[str]:
    """The objects of a table's state."""
    assert lab.server is not None
    folder = "/".join(("engine-state", lab.catalog.name, lab.schema, name, *below, ""))
    return [key.removeprefix(folder) for key in lab.server.keys(lab.bucket, folder)]


def requests_of(lab: StoreLab, *command: str) -> int:
    """How many requests a command sends to the store for the state."""
    assert lab.server is not None
    paths: list[str] = []
    client = lab.server.client()

    def sent(request: Any, **_: Any) -> None:
        paths.append(request.url)

    client.meta.events.register("before-send.s3", sent)
    try:
        ended = lab.run(*command)
    finally:
        client.meta.events.unregister("before-send.s3", sent)
    assert ended.code == 0, ended.text
    found = [path for path in paths if "engine-state" in path]
    return len(found)


@pytest.mark.nightly
def test_state_is_renewed_reset_and_dropped(lab: StoreLab) -> None:
    models = {"plain": PLAIN, "latest": LATEST, "hourly": HOURLY, "checked": CHECKED}
    for name, text in models.items():
        lab.model(name, text)
    lab.land("a", [event(1, "10:05"), event(2, "11:10", amount=200.0)])
    lab.build()
    assert {"model.json.1", "checkpoint/metadata", "checkpoint/offsets/0", "checkpoint/commits/0"} <= set(
        state(lab, "hourly", "1")
    )
    assert any(key.endswith((".changelog", ".zip")) for key in state(lab, "hourly", "1", "checkpoint", "state"))
    assert lab.ids("checked") == [1]
    assert len(lab.rows("checked__quarantine")) == 1
    assert state(lab, "checked", "1", "batches") == []
    assert not [key for name in models for key in state(lab, name) if key.endswith((".tmp", ".crc"))]

    lab.land("b", [event(3, "12:10")])
    lab.build()
    assert sorted(row["n"] for row in lab.rows("hourly")) == [1, 1]
    assert [key for key in state(lab, "hourly", "1") if key.startswith("model.json")] == [
        "model.json.1",
        "model.json.2",
    ]

    assert 0 < requests_of(lab, "plan") <= 30 * len(models)
    lab.build("-f", "-s", "hourly", "latest")
    for name in ("hourly", "latest"):
        assert state(lab, name, "1") == []
        assert "checkpoint/metadata" in state(lab, name, "2")
    assert sorted(row["n"] for row in lab.rows("hourly")) == [1, 1]
    lab.build("--reset-checkpoint", "now", "-s", "plain")
    assert (state(lab, "plain", "1"), "checkpoint/metadata" in state(lab, "plain", "2")) == ([], True)
    lab.land("c", [event(4, "13:10")])
    lab.build()
    assert lab.ids("plain") == [1, 2, 3, 4]
    assert lab.ids("latest") == [1, 2, 3, 4]
    assert sorted(row["n"] for row in lab.rows("hourly")) == [1, 1, 1]

    (lab.root / "models" / "checked.sql").unlink()
    assert [e["code"] for e in lab.build().events if e["event"] == "Diagnosed"] == ["orphan-table"]
    dropped = lab.run("drop", "checked", "--yes")
    assert dropped.code == 0, dropped.text
    # The number of its lock must not come again.
    assert [key.split("/")[0] for key in state(lab, "checked")] == ["lock"]
    assert not (lab.root / ".engine" / "state").exists()
    assert lab.server is not None
    assert lab.server.keys(lab.bucket, "engine-state/.runs/") == [], "each run has released its tables"
