"""Up to which file a micro-batch reads: where that cannot be read, nobody takes files for read that are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state.file_log import reaches


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of a query over two logs, the first of which is read twice: its offsets are those of the sources 0, 0 and 1."""
    folder = tmp_path / "1" / "checkpoint"
    (folder / "offsets").mkdir(parents=True)
    offsets = [json.dumps({"logOffset": entry}) for entry in (3, 3, 7)]
    (folder / "offsets" / "0").write_text("\n".join(["v1", "{}", *offsets]))
    (folder / "offsets" / "1").write_text("\n".join(["v1", "{}", *offsets[:2], "-"]))
    (folder.parent / "sources.json").write_text(json.dumps({"streams": [{"number": n} for n in (0, 0, 1)]}))
    return folder


def test_the_offset_of_a_source_is_found_by_what_is_recorded(checkpoint: Path) -> None:
    assert [reaches(checkpoint, source, 0) for source in (0, 1)] == [3, 7]
    assert (reaches(checkpoint, 1, 1), reaches(checkpoint, 1, 2), reaches(checkpoint, 1, None)) == (-1, -1, -1)


def test_without_a_record_the_offsets_are_those_of_the_lines(checkpoint: Path) -> None:
    (checkpoint.parent / "sources.json").unlink()
    assert [reaches(checkpoint, source, 0) for source in (0, 1)] == [3, 3]


@pytest.mark.parametrize("name", ["sources.json", "checkpoint/offsets/0"])
@pytest.mark.parametrize("content", [b"", b"\xff", b"v1\n{}\n{\n{\n{\n", b"[]"])
def test_what_cannot_be_read_is_rejected(checkpoint: Path, name: str, content: bytes) -> None:
    (checkpoint.parent / name).write_bytes(content)
    if name.endswith("0") and content in {b"", b"[]"}:
        # A file of Spark's without offsets: it has read nothing.
        assert reaches(checkpoint, 1, 0) == -1
        return
    with pytest.raises(StateError) as raised:
        reaches(checkpoint, 1, 0)
    assert raised.value.diagnostic.code == "state-unreadable"


def test_a_folder_in_the_place_of_the_record_is_rejected(checkpoint: Path) -> None:
    (checkpoint.parent / "sources.json").unlink()
    (checkpoint.parent / "sources.json").mkdir()
    with pytest.raises(StateError):
        reaches(checkpoint, 0, 0)
