"""State in a bucket is read and removed as state in a folder is: the same calls over both give the same."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StateError
from engine.plan.deployed.checkpoint_facts import CheckpointFacts, read_checkpoint
from engine.state import ModelState, Phase, TableState, checkpoint
from engine.state.blob_store import Folder
from engine.state.checkpoint import find_damage
from engine.state.file_log import file_sources, logged, reaches
from engine.state.first_offsets import has_beginnings, keep_beginnings
from engine.state.known_tables import remove, tables_in
from engine.state.object_path import ObjectPath, ReadOnce
from engine.state.state_path import StatePath, remove_tree, spark_location, store_of
from engine.state.state_path import local as local_path
from tests.projects import write_files
from tests.state.test_objects import Table

pytestmark = pytest.mark.slow

BATCH = json.dumps({"batchWatermarkMs": 5, "conf": {"spark.sql.shuffle.partitions": "4"}})
FILE = '{"path":"file:///landing/%s.json","timestamp":%d,"batchId":%d}'
OPERATOR = json.dumps({"operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"}})
CHECKPOINT = {
    "metadata": '{"id":"q-1"}',
    **{f"offsets/{n}": f'v1\n{BATCH}\n{{"logOffset":{n}}}\n{{"0":{n}}}' for n in range(12)},
    **{f"commits/{n}": f'v1\n{{"nextBatchWatermarkMs":{n * 10}}}' for n in range(11)},
    **{f"sources/0/{n}": f"v1\n{FILE % (n, 100 + n, n)}" for n in range(9)},
    "sources/0/9.compact": "v1\n" + "\n".join(FILE % (n, 100 + n, n) for n in range(10)),
    "sources/0/10": f"v1\n{FILE % (10, 110, 10)}",
    "sources/1/0": 'v1\n{"0":7}',
    "sources/2/offsets/0": '{"snapshot_id":12}',
    "state/0/_metadata/v2/7": f"v1\n{OPERATOR}",
    "state/0/0/1.changelog": "x",
    "state/0/0/left/1.changelog": "x",
}


def written(root: StatePath) -> TableState:
    """A table with a generation that is published and one that is being built."""
    folder = TableState(root, "lake", "shop", "paid")
    store = store_of(root)
    for generation in (1, 2):
        phase = Phase.PUBLISHED if generation == 1 else Phase.BUILDING
        folder.save_facts(generation, "f", {"sql": "select 1"})
        folder.save(
            ModelState(f"lake.shop.paid__g{generation}" if generation > 1 else "lake.shop.paid", generation, phase)
        )
        for name, text in CHECKPOINT.items():
            store.put(f"lake/shop/paid/{generation}/checkpoint/{name}", text.encode())
    folder.save_note(1, "files.json", {"file:///landing/1.json": 900})
    return folder


@pytest.fixture
def both(tmp_path: Path) -> tuple[TableState, TableState]:
    bucket = ObjectPath(Table(tmp_path / "bucket.db"), "engine/state")
    return written(tmp_path / "state"), written(bucket)


def read(folder: TableState) -> dict[str, Any]:
    """All that is asked of the state of a table, without the paths in it."""
    path = folder.checkpoint(1)
    facts = read_checkpoint(folder, 1)
    return {
        "facts": {name: getattr(facts, name) for name in CheckpointFacts.__slots__ if name != "path"},
        "standing": checkpoint.standing(path),
        "beginnings": checkpoint.beginnings(path),
        "lines": checkpoint.offset_lines(path, 3),
        "operators": checkpoint.operators(path),
        "operator folders": [found.name for found in checkpoint.operator_folders(path)],
        "watermark": checkpoint.next_watermark(path),
        "files": [list(logged(path, source, after_entry=3, to=10)) for source in file_sources(path)],
        "reach": [reaches(path, 0, batch) for batch in (None, 0, 11, 12)],
        "stores": [found.name for found in sorted((path / "state").glob("[0-9]*/[0-9]*"))],
        "partition": sorted((p.name, p.is_dir()) for p in (path / "state" / "0" / "0").glob("*")),
        "all": sorted(str(p).rpartition("/paid/")[2] for p in folder.folder.rglob("*") if p.is_file()),
        "kinds": [(p.exists(), p.is_dir(), p.is_file()) for p in (path, path / "metadata", path / "none")],
        "generations": folder.generations(),
        "states": (folder.load(), folder.unpublished(), folder.note(1, "files.json")),
        "known": [(found.schema, found.table) for found in tables_in(folder.root, "lake")],
    }


def test_a_bucket_is_read_like_a_folder(both: tuple[TableState, TableState]) -> None:
    local, bucket = both
    found = read(bucket)
    assert found == read(local)
    assert found["standing"] == [{"logOffset": 10}, {"0": 10}]
    assert (found["facts"]["started"], found["facts"]["committed"], found["watermark"]) == (11, 10, 100)
    assert found["operators"] == {"stateStoreSave"}
    assert [len(files) for files in found["files"]] == [7]


def test_a_checkpoint_that_is_not_there_says_nothing_in_both(both: tuple[TableState, TableState]) -> None:
    for folder in both:
        folder.discard(1)
    local, bucket = both
    assert read(bucket) == read(local)
    assert not has_beginnings(bucket.checkpoint(1))


def test_damage_is_found_in_both(both: tuple[TableState, TableState]) -> None:
    found = []
    for folder in both:
        store_of(folder.root).put("lake/shop/paid/1/checkpoint/offsets/11", b"v1\n")
        damage = find_damage(folder.checkpoint(1))
        assert damage is not None
        found.append((damage.log, damage.batch, [path.name for path in damage.files]))
    assert found == [("offsets", 11, ["11"])] * 2


def test_a_folder_of_which_each_file_is_read_once_says_the_same(both: tuple[TableState, TableState]) -> None:
    local, _ = both
    once = replace(local, file_store=ReadOnce(Folder(local_path(local.root))))
    facts = read_checkpoint(local, 1)
    assert facts.logs
    assert (read_checkpoint(once, 1), once.load_both()) == (facts, local.load_both())
    # It is as it was when it was first looked at.
    store_of(local.root).put("lake/shop/paid/1/checkpoint/offsets/11", b"v1\n")
    assert read_checkpoint(once, 1) == facts
    # A file that is cut off, and one of which only the checksum is left; their names are those of the folder.
    for log, name in (("offsets", "11"), ("commits", ".11.crc")):
        store_of(local.root).put(f"lake/shop/paid/1/checkpoint/{log}/{name}", b"v1\n")
        again = replace(local, file_store=ReadOnce(Folder(local_path(local.root))))
        damage = read_checkpoint(again, 1).damage
        assert damage is not None
        assert damage == read_checkpoint(local, 1).damage
        assert damage.files == (local.checkpoint(1) / log / name,)
        store_of(local.root).delete(f"lake/shop/paid/1/checkpoint/{log}/{name}")


def test_what_is_removed_of_one_is_removed_of_the_other(both: tuple[TableState, TableState]) -> None:
    local, bucket = both
    for folder in both:
        keep_beginnings(folder.checkpoint(1))
    kept = read(bucket)
    assert kept == read(local)
    assert kept["all"] == sorted(
        ["1/model.json", "1/facts/f.json", "1/checkpoint/sources/1/0"]
        + [name for name in read(local)["all"] if name.startswith("2/")]
    )
    for folder in both:
        remove_tree(folder.checkpoint(2))
    assert (read(bucket), find_damage(bucket.checkpoint(2))) == (read(local), None)
    for folder in both:
        folder.discard_before(3)
        remove(folder)
        assert read(folder)["all"] == []


def test_spark_is_given_the_place_of_both(both: tuple[TableState, TableState], tmp_path: Path) -> None:
    local, bucket = both
    assert spark_location(local.checkpoint(1)) == f"file:{tmp_path}/state/lake/shop/paid/1/checkpoint"
    assert spark_location(bucket.checkpoint(1)) == "s3a://bucket/engine/state/lake/shop/paid/1/checkpoint"


def test_a_file_that_is_removed_twice(both: tuple[TableState, TableState]) -> None:
    for folder in both:
        path = folder.checkpoint(1) / "metadata"
        path.unlink()
        path.unlink(missing_ok=True)
        with pytest.raises(FileNotFoundError):
            path.unlink()
        with pytest.raises(FileNotFoundError):
            path.read_bytes()


READ = {
    "query_id": checkpoint.query_id, "last_started": checkpoint.last_started, "standing": checkpoint.standing,
    "beginnings": checkpoint.beginnings, "find_damage": find_damage, "file_sources": file_sources,
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE], ids=["forbidden", "disk", "too many files"])
def test_a_checkpoint_that_cannot_be_looked_at_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    write_files(tmp_path, CHECKPOINT)
    whole = READ[name](tmp_path)

    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr("os.listdir", fail)
    monkeypatch.setattr("os.scandir", fail)
    monkeypatch.setattr("engine.state.blob_store.read_regular", fail)
    with pytest.raises(StateError) as caught:
        READ[name](tmp_path)
    assert (caught.value.diagnostic.code, bool(whole) or whole is None) == ("state-unreadable", True)
