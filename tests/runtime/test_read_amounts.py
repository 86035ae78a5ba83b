"""How much a micro-batch read of what a plan counted: files by Spark's log, offsets by its progress record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.plan import Action, ActionKind, Unread
from engine.runtime.writer.query_progress import read_amounts, unread_amounts


def files_source(begin: int | None, end: int) -> dict[str, Any]:
    start = {"logOffset": begin} if begin is not None else None
    return {"description": "FileStreamSource[file:/landing]", "startOffset": start, "endOffset": {"logOffset": end}}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The log of source 3, which is the first of the offsets: entries 0 to 2 compacted, one file, two, one; then 3."""
    log = tmp_path / "checkpoint" / "sources" / "3"
    log.mkdir(parents=True)
    (tmp_path / "sources.json").write_text(json.dumps({"streams": [{"number": 3, "node": "source.shop.orders"}]}))

    def lines(*files: tuple[str, int]) -> str:
        entries = [{"path": f"file:///landing/{name}", "timestamp": 1, "batchId": entry} for name, entry in files]
        return "\n".join(["v1", *map(json.dumps, entries)])

    (log / "2.compact").write_text(lines(("a.json", 0), ("b.json", 1), ("c.json", 1), ("d.json", 2)))
    (log / "3").write_text(lines(("e.json", 3), ("_SUCCESS", 3), ("f.json", 3)))
    return tmp_path / "checkpoint"


def test_files_are_those_of_the_entries_of_a_batch(checkpoint: Path) -> None:
    assert read_amounts({"sources": [files_source(2, 3)]}, ["files"], checkpoint) == {"files": 2}
    assert read_amounts({"sources": [files_source(1, 3)]}, ["files"], checkpoint) == {"files": 3}


def test_a_log_that_is_gone_counts_nothing(checkpoint: Path) -> None:
    assert read_amounts({"sources": [files_source(None, 3)]}, ["files"], checkpoint) == {}
    assert read_amounts({"sources": [files_source(3, 4)]}, ["files"], checkpoint) == {}
    (checkpoint.parent / "sources.json").write_text("{}")
    assert read_amounts({"sources": [files_source(2, 3)]}, ["files"], checkpoint) == {}


@pytest.mark.parametrize("encode", [lambda offset: offset, json.dumps])
def test_offsets_are_summed_over_partitions_and_topics(encode: Any, tmp_path: Path) -> None:
    kafka = {"startOffset": encode({"a": {"0": 5, "1": 7}, "b": {"0": 0}}), "endOffset": encode({"a": {"0": 9, "1": 7, "2": 4}, "b": {"0": 10}})}  # fmt: skip
    # What was before the begin of a partition that is new is not known.
    assert read_amounts({"sources": [kafka, {}]}, ["offsets"], tmp_path) == {"offsets": 14}
    assert read_amounts({"sources": [kafka]}, ["files"], tmp_path) == {}


def test_a_first_batch_and_offsets_of_other_kinds_count_nothing(tmp_path: Path) -> None:
    for source in (
        {"startOffset": None, "endOffset": {"a": {"0": 9}}},
        {"startOffset": 5, "endOffset": 9},
        {"startOffset": {"snapshot_id": 1, "position": 0}, "endOffset": {"snapshot_id": 2, "position": 1}},
    ):
        assert read_amounts({"sources": [source]}, ["files", "offsets"], tmp_path) == {}


def test_unread_input_is_summed_by_unit() -> None:
    unread = (Unread("a", "files", 3), Unread("b", "files", 4), Unread("c", "offsets", 0), Unread("d", "snapshots"))
    assert unread_amounts(Action("model.m", ActionKind.RESUME, unread=unread)) == {"files": 7}
