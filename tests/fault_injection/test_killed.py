"""kill -9 while a window, a join and a dedup each are at the last micro-batch that has data, at each of its points.

Each model waits at its point until the others are at theirs; then the process is killed. What is on disk afterwards
proves where it was.
"""

from __future__ import annotations

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection import shop
from tests.fault_injection.points import killing
from tests.lab import Lab, killed_alone

pytestmark = pytest.mark.spark

# By the ending of the models' names: before the write, in it, after the commit, and before the batch without rows.
POINTS = {
    "_computing": ("computing", 2),
    "_written": ("written", 2),
    "_committed": ("committed", 2),
    "_owing": ("computing", 3),
}
LIMITED = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
---*/
select id from {{ source('shop', 'events') }} limit 2
"""


@pytest.mark.gate
@pytest.mark.nightly_cases("all")
@pytest.mark.parametrize("endings", [("_committed", "_owing"), tuple(POINTS)], ids=["few", "all"])
def test_a_batch_of_each_kind_of_state_is_written_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, endings: tuple[str, ...]
) -> None:
    shop.prepare(lab, endings)
    points = {model + ending: POINTS[ending] for ending in endings for model in shop.MODELS}
    killed_alone(lab.root, "build", "--threads", str(len(points)), script=killing(points))
    for model, (point, batch) in points.items():
        checkpoint = shop.checkpoint(lab, model)
        logs = spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)
        assert logs == (batch, batch - 1), model
        table = lab.table(model)
        assert table is not None
        if batch == shop.LAST:
            assert ("2" in {s.marker("batch-id") for s in table.history}) == (point == "committed"), model
            assert lab.model_json(model)["batch"] == 1, model
            # Files of a write that was cut off stay, and no snapshot names them.
            files = set((lab.lake_path / "warehouse" / lab.schema / model / "data").rglob("*.parquet"))
            assert (len(files) > named(lab, model)) == (point == "written"), model

    # The moment before the batch without rows: what Spark writes next is the offsets.
    owing = [model for model in points if model.endswith("_owing")]
    for model in owing:
        for name in ("3", ".3.crc"):
            (shop.checkpoint(lab, model) / "offsets" / name).unlink()
    before = lab.snapshots()
    with monkeypatch.context() as planted:
        planted.setattr("engine.runtime.streams.prepare.take_back", lambda *_: False)
        lab.build("-s", " ".join(owing))
    assert lab.snapshots() == before, "Spark makes it up by itself"
    # One that keeps a count only is owed nothing.
    lab.model("limited", LIMITED)
    lab.build("-s", " ".join([*owing, "limited"]))
    shop.check(lab, "_owing", later=False)
    again, commits = lab.snapshots(), shop.checkpoint(lab, "limited") / "commits"
    assert spark_checkpoint.operators(commits.parent) == {"globalLimit"}
    times = {path.name: path.stat().st_mtime_ns for path in commits.iterdir()}
    second = lab.build("-s", " ".join([*owing, "limited"]))
    assert lab.snapshots() == again
    assert {second.model(name)["status"] for name in owing} == {"unchanged"}
    assert {path.name: path.stat().st_mtime_ns for path in commits.iterdir()} == times

    shop.land_later(lab)
    lab.build()
    for ending in endings:
        shop.check(lab, ending)
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


def named(lab: Lab, model: str) -> int:
    """How many data files the table has."""
    table = lab.table(model)
    assert table is not None
    return int(table.history[0].summary["total-data-files"]) if table.history else 0
