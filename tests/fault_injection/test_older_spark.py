"""A checkpoint that an older patch release of Spark wrote, with a window, a join and a dedup in it, goes on.

checkpoints/spark-4.1.1.tar.gz is what PySpark 4.1.1 left of the project in `shop` after its three files; paths in it
begin with ROOT. The table and the rest of the state are made by the Spark at hand over the same files.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection import shop
from tests.lab import Lab
from tests.services import unpack

pytestmark = pytest.mark.spark

PACKED = Path(__file__).parent / "checkpoints" / "spark-4.1.1.tar.gz"


@pytest.mark.nightly
def test_it_goes_on_with_the_state_of_an_older_spark(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.prepare(lab)
    # Versions of that time recorded nothing of offsets.
    with monkeypatch.context() as older_version:
        older_version.setattr("engine.runtime.writer.micro_batch_writer.markers_of", lambda _: {})
        older_version.setattr("engine.runtime.writer.micro_batch_writer.with_digest", lambda *_: {})
        lab.build()
    assert lab.model_json("uniq")["ends"] == {}
    shop.check(lab, later=False)
    unpack(PACKED, lab.root / "older")
    for model in shop.MODELS:
        older, ours = lab.root / "older" / model / "checkpoint", shop.checkpoint(lab, model)
        assert spark_checkpoint.last_committed(older) == spark_checkpoint.last_committed(ours) == 3
        assert spark_checkpoint.next_watermark(older) == spark_checkpoint.next_watermark(ours)
        for log in older.glob("sources/*/*"):
            log.write_text(here(lab, log.read_text()))
        shutil.rmtree(ours)
        shutil.copytree(older, ours)
        note = lab.model_json(model) | {"query_id": spark_checkpoint.query_id(older), "spark_version": "4.1.1"}
        (ours.parent / "model.json").write_text(json.dumps(note))
    shop.land_later(lab)
    lab.build()
    shop.check(lab)
    assert lab.model_json("uniq")["spark_version"] != "4.1.1"
    assert lab.model_json("uniq")["ends"]


def here(lab: Lab, log: str) -> str:
    """The files that a log names, as they lie in the project."""
    version, *lines = log.splitlines()
    entries = [json.loads(line) for line in lines]
    for entry in entries:
        path = lab.root / entry["path"].removeprefix("file:///ROOT/")
        entry |= {"path": path.as_uri(), "timestamp": path.stat().st_mtime_ns // 1_000_000}
    return "\n".join([version, *(json.dumps(entry, separators=(",", ":")) for entry in entries)])
