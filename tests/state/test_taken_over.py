"""What a run that took a lease over continues: copies, which whoever held the lease before never looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state import ModelState, TableState
from engine.state.blob_store import Folder
from engine.state.lease import Holder, Lease, _leases
from engine.state.object_path import ObjectPath
from engine.state.taken_over import BATCHES, CHECKPOINT, continue_in_copies, folder_in_use

GENERATION = "lake/shop/paid/1"
# Micro-batch 1 is committed, so that version 2 of the state is; micro-batch 2 was begun.
WRITTEN = (
    "metadata", "offsets/0", "offsets/1", "offsets/2", "offsets/3", "commits/0", "commits/1", "sources/0/0", "sources/0/3",
    "state/0/_metadata/metadata", "state/0/0/1.changelog", "state/0/0/2.changelog", "state/0/0/3.changelog",
    "state/0/0/2.zip", "state/0/0/4.zip", "state/0/0/SSTs/000009-f00.sst", "state/0/0/left-keys/3_id.delta",
)  # fmt: skip
LEFT_OUT = {"offsets/3", "state/0/0/3.changelog", "state/0/0/4.zip", "state/0/0/left-keys/3_id.delta"}


def written(store: Folder) -> TableState:
    for name in WRITTEN:
        store.put(f"{GENERATION}/checkpoint/{name}", name.encode())
    store.put(f"{GENERATION}/batches/2-f/part", b"rows")
    folder = TableState(ObjectPath(store), "lake", "shop", "paid")
    folder.save(ModelState("lake.shop.paid"))
    return folder


@contextmanager
def holding(folder: TableState, number: int) -> Iterator[Lease]:
    """Be the process that holds a lease of a table."""
    assert isinstance(folder.root, ObjectPath)
    lease = Lease(
        Holder(folder.root.as_store(), str(folder.root), f"run-{number}", {}), folder.key, number, fenced=False
    )
    _leases[lease.token] = lease
    try:
        yield lease
    finally:
        del _leases[lease.token]


def keys(folder: TableState, number: int = 1) -> set[str]:
    path = folder.checkpoint(number)
    assert isinstance(path, ObjectPath)
    return set(path.store.keys(path.key))


def test_what_is_committed_is_copied_and_nothing_of_what_may_be_written_later(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    folder = written(store)
    with holding(folder, 7) as lease:
        assert folder.checkpoint(1).name == "checkpoint"
        folder.continue_in_copies(lease)
        assert (folder.checkpoint(1).name, folder.batches(1).name) == ("checkpoint.7", "batches.7")
        assert keys(folder) == set(WRITTEN) - LEFT_OUT
        assert (folder.batches(1) / "2-f" / "part").read_bytes() == b"rows"
    # Whoever reads, or builds next, finds the copy; nothing else is left.
    assert folder.checkpoint(1).name == "checkpoint.7"
    assert store.list(GENERATION) == ("batches.7", "checkpoint.7", "model.json", "taken-over.7")
    with holding(folder, 8):
        assert folder.checkpoint(1).name == "checkpoint.7"


def test_one_that_wakes_up_keeps_to_its_own_folder(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    folder = written(store)
    with holding(folder, 7) as lease:
        folder.continue_in_copies(lease)
    with holding(folder, 6):
        path = folder.checkpoint(1)
        assert path.name == "checkpoint"
        store.put(f"{GENERATION}/checkpoint/offsets/2", b"woken")
    assert (folder.checkpoint(1) / "offsets" / "2").read_bytes() == b"offsets/2"
    # The next one that takes over copies the copy, and removes what was left.
    with holding(folder, 9) as lease:
        folder.continue_in_copies(lease)
        assert (folder.checkpoint(1) / "offsets" / "2").read_bytes() == b"offsets/2"
    assert store.list(GENERATION) == ("batches.9", "checkpoint.9", "model.json", "taken-over.9")


def test_a_takeover_that_was_killed_is_made_again_and_one_that_is_done_is_not(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    folder = written(store)
    store.put(f"{GENERATION}/checkpoint.7/offsets/9", b"half a copy")
    with holding(folder, 7) as lease:
        assert folder.checkpoint(1).name == "checkpoint", "a copy without its note does not count"
        folder.continue_in_copies(lease)
        assert keys(folder) == set(WRITTEN) - LEFT_OUT
        store.put(f"{GENERATION}/checkpoint.7/offsets/3", b"since")
        folder.continue_in_copies(lease)
        assert (folder.checkpoint(1) / "offsets" / "3").read_bytes() == b"since"


def test_a_generation_without_a_checkpoint_gets_one_that_others_do_not_have(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    folder = TableState(ObjectPath(store, "engine/state"), "lake", "shop", "paid")
    folder.save(ModelState("lake.shop.paid"))
    with holding(folder, 2) as lease:
        folder.continue_in_copies(lease)
        assert str(folder.checkpoint(1)).endswith("engine/state/lake/shop/paid/1/checkpoint.2")


def test_files_that_vanish_while_they_are_copied_are_listed_again(tmp_path: Path) -> None:
    class Vanishing(Folder):
        left = 2

        def copy(self, key: str, to: str) -> bool:
            if key.endswith("offsets/1") and Vanishing.left:
                Vanishing.left -= 1
                return False
            return super().copy(key, to)

    store = Vanishing(tmp_path)
    folder = written(store)
    continue_in_copies(store, GENERATION, 7)
    assert keys(folder) == set(WRITTEN) - LEFT_OUT
    Vanishing.left = 1_000
    with pytest.raises(StateError) as caught:
        continue_in_copies(store, GENERATION, 8)
    assert caught.value.diagnostic.code == "state-unreadable"
    assert folder.checkpoint(1).name == "checkpoint.7"


def test_local_state_has_the_names_it_had(tmp_path: Path) -> None:
    folder = replace(written(Folder(tmp_path)), root=tmp_path)
    assert (folder.checkpoint(1), folder.batches(1)) == (
        tmp_path / GENERATION / CHECKPOINT, tmp_path / GENERATION / BATCHES,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "lease", "expected"),
    [
        ((), None, "checkpoint"),
        (("checkpoint",), 4, "checkpoint"),
        (("taken-over.3", "taken-over.12"), None, "checkpoint.12"),
        (("taken-over.3", "taken-over.12"), 12, "checkpoint.12"),
        (("taken-over.3", "taken-over.12"), 11, "checkpoint.3"),
        (("taken-over.3", "taken-over.12"), 2, "checkpoint"),
        (("taken-over.", "taken-over.x", "taken-over.-1"), None, "checkpoint"),
    ],
)
def test_the_newest_note_counts_that_the_lease_knows_of(
    names: tuple[str, ...], lease: int | None, expected: str
) -> None:
    assert folder_in_use(names, CHECKPOINT, lease) == expected
