"""Logs and state of a checkpoint that are lost or cut off: the build goes on, or stops and says how to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fault_injection import shop
from tests.lab import Lab

pytestmark = pytest.mark.spark


def newest(folder: Path) -> Path:
    return folder / str(max(int(path.name) for path in folder.iterdir() if path.name.isdigit()))


def checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def refused(lab: Lab, model: str, code: str = "checkpoint-damaged") -> str:
    """Build a model and see it refused, with nothing written; the way on that is told."""
    before = lab.snapshots()
    result = lab.run("build", "-s", model)
    assert (result.code, result.codes()) == (1, [code]), result.text
    assert "Traceback" not in result.text
    assert lab.snapshots() == before
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    return str(found["hint"])


@pytest.mark.nightly
def test_a_checkpoint_of_which_something_is_lost(lab: Lab) -> None:
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

    logs_that_are_cut_off(lab)
    a_digit_is_flipped(lab)
    note = lab.state / "uniq" / "1" / "model.json"
    whole = note.read_text()
    note.write_text(whole[:50])
    result = lab.run("build", "-s", "uniq")
    assert (result.code, result.codes()) == (1, ["state-unreadable"]), result.text
    note.write_text(whole)

    # All of it is as it was, but for the state of one model.
    shop.land_later(lab)
    shutil.rmtree(shop.checkpoint(lab, "joined") / "state" / "0")
    assert "engine build -f -s joined" in refused(lab, "joined")
    lab.build("-f", "-s", "joined")
    lab.build()
    shop.check(lab)


def logs_that_are_cut_off(lab: Lab) -> None:
    """Each way to cut off the newest logs is refused; they are whole again at the end."""
    checkpoint = shop.checkpoint(lab, "uniq")
    commits, offsets = newest(checkpoint / "commits"), newest(checkpoint / "offsets")
    whole, committed = offsets.read_text(), commits.read_text()
    # Of a micro-batch that is in the table: what it read is not known any more.
    for rest in ("", whole[: len(whole) // 2], "v1\n"):
        offsets.write_text(rest)
        assert "Restore" in refused(lab, "uniq")
    offsets.write_text(whole)
    for rest in ("", "v1\n", None):
        if rest is None:
            commits.unlink()  # only its checksum is left: Spark would speak of two queries
        else:
            commits.write_text(rest)
        hint = refused(lab, "uniq")
        assert str(checksum(commits)) in hint
        assert "build again" in hint
    commits.write_text(committed)
    # Of a micro-batch that had not begun to be written.
    following = offsets.with_name(str(int(offsets.name) + 1))
    following.write_text(whole[:20])
    assert f"remove {following} and build again" in refused(lab, "uniq")
    following.unlink()


def a_digit_is_flipped(lab: Lab) -> None:
    """Offsets that are not those of the commit are refused, with the sum that Hadoop keeps beside them or without."""
    offsets = newest(shop.checkpoint(lab, "uniq") / "offsets")
    whole, sums = offsets.read_text(), checksum(offsets).read_bytes()
    head, at, number = whole.rpartition('{"logOffset":')
    changes = (f"{head}{at}{int(number[:-1]) - 1}}}", whole.replace('"batchWatermarkMs":1', '"batchWatermarkMs":2', 1))
    for changed in changes:
        assert changed != whole
        offsets.write_text(changed)
        assert "Restore" in refused(lab, "uniq", "checkpoint-changed")
        checksum(offsets).unlink()
        assert "Restore" in refused(lab, "uniq", "checkpoint-changed")
        checksum(offsets).write_bytes(sums)
    offsets.write_text(whole)
