"""Logs and state of a checkpoint that are lost or cut off: the build goes on, or stops and says how to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.faults import shop
from tests.lab import Lab

pytestmark = pytest.mark.spark


def newest(folder: Path) -> Path:
    return folder / str(max(int(path.name) for path in folder.iterdir() if path.name.isdigit()))


def checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def refused(lab: Lab, model: str) -> str:
    """Build a model and see it refused, with nothing written; the way on that is told."""
    before = lab.snapshots()
    result = lab.run("build", "-s", model)
    assert (result.code, result.codes()) == (1, ["checkpoint-damaged"]), result.text
    assert "Traceback" not in result.text
    assert lab.snapshots() == before
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    return str(found["hint"])


def test_the_last_commit_of_each_kind_of_state_is_lost(lab: Lab) -> None:
    shop.prepare(lab)
    lab.build()
    before = lab.snapshots()
    for model in shop.MODELS:
        lost = newest(shop.checkpoint(lab, model) / "commits")
        lost.unlink()
        checksum(lost).unlink()
    lab.build()
    shop.check(lab, later=False)
    assert lab.snapshots() == before
    shop.land_later(lab)
    lab.build()
    shop.check(lab)


def test_logs_that_are_cut_off(lab: Lab) -> None:
    shop.prepare(lab)
    lab.build()
    checkpoint = shop.checkpoint(lab, "uniq")
    commits, offsets = newest(checkpoint / "commits"), newest(checkpoint / "offsets")
    whole = offsets.read_text()
    # Of a micro-batch that is in the table: what it read is not known any more.
    for rest in ("", whole[: len(whole) // 2], "v1\n"):
        offsets.write_text(rest)
        if spark_checkpoint.last_committed(checkpoint) in batches(lab, "uniq"):
            assert "Restore" in refused(lab, "uniq")
    offsets.write_text(whole)
    shutil.copy(commits, lab.root / "commit")
    for rest in ("", "v1\n", None):
        if rest is None:
            commits.unlink()  # only its checksum is left: Spark would speak of two queries
        else:
            commits.write_text(rest)
        hint = refused(lab, "uniq")
        assert str(checksum(commits)) in hint
        assert "build again" in hint
    checksum(commits).unlink()
    # Of a micro-batch that had not begun to be written.
    following = offsets.with_name(str(int(offsets.name) + 1))
    shutil.copy(lab.root / "commit", commits)
    following.write_text(whole[:20])
    hint = refused(lab, "uniq")
    assert f"remove {following} and build again" in hint
    following.unlink()
    shop.land_later(lab)
    lab.build()
    shop.check(lab)


def batches(lab: Lab, model: str) -> set[int]:
    """The micro-batches that are known to have ended."""
    return set(range(int(lab.model_json(model)["batch"]) + 1))


def test_state_that_is_gone_is_told_in_a_sentence(lab: Lab) -> None:
    shop.prepare(lab)
    lab.build("-s", "uniq")
    shutil.rmtree(shop.checkpoint(lab, "uniq") / "state" / "0")
    shop.land_later(lab)
    assert "engine build -f -s uniq" in refused(lab, "uniq")
    lab.build("-f", "-s", "uniq")
    assert sorted(r["id"] for r in lab.rows("uniq")) == [1, 2, 3, 4, 5, 6]


def test_a_note_that_is_cut_off_is_told(lab: Lab) -> None:
    shop.prepare(lab)
    lab.build("-s", "uniq")
    note = lab.state / "uniq" / "1" / "model.json"
    note.write_text(json.dumps(lab.model_json("uniq"))[:50])
    result = lab.run("build", "-s", "uniq")
    assert (result.code, result.codes()) == (1, ["state-unreadable"]), result.text
