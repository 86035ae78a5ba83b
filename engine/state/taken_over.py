"""The folders of a generation that Spark writes, of which a run that took a lease over continues a copy.

A suspended machine may wake up and write over its successor's files, or remove them, and no condition of a store helps
where Spark's names of state must be overwritten. So the successor copies what is committed into folders with the number
of its lease, notes that they are whole, and removes the others. After an ended run, or a lock of the operating system,
the folders are continued.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from engine.characters import whole_number
from engine.errors import StateError
from engine.state.object_path import KeyedStore

CHECKPOINT: Final = "checkpoint"
# Micro-batches that cannot be computed again (see `engine.runtime.writer.micro_batch_writer`).
BATCHES: Final = "batches"
_NOTE: Final = "taken-over."
_AT_ONCE: Final = 16
# A run that is not gone after all removes old files while they are copied.
_ATTEMPTS: Final = 5
# The version is the number of the micro-batch after the one that made it.
_VERSIONED: Final = re.compile(r"([0-9]+)(?:_[^./]*)?\.(?:changelog|zip|delta|snapshot)(?:\.crc)?")


def folder_in_use(names: Iterable[str], base: str, lease: int | None) -> str:
    """Return the name of the folder that counts; `lease` None: none is held, and the newest counts."""
    noted = [number for name in names if (number := _noted(name)) is not None and (lease is None or number <= lease)]
    return f"{base}.{max(noted)}" if noted else base


def is_note(name: str) -> bool:
    return _noted(name) is not None


def continue_in_copies(store: KeyedStore, generation: str, lease: int) -> None:
    """Copy what Spark has written for a generation, and let it continue in the copies.

    Raises:
        StateError: `state-unreadable`: files vanish while they are copied, each time.
        SetupError: the store did not answer, or denied it.
    """
    names = [name for name, _ in store.entries(generation)]
    folders_in_use = {base: folder_in_use(names, base, lease) for base in (CHECKPOINT, BATCHES)}
    if f"{_NOTE}{lease}" in names:
        return
    for _ in range(_ATTEMPTS):
        copies = [
            _Copy(store, f"{generation}/{name}", f"{generation}/{base}.{lease}")
            for base, name in folders_in_use.items()
        ]
        for copy in copies:
            store.delete(copy.to)
        if all(copy.copy() for copy in copies):
            break
    else:
        message = f"the checkpoint in {store.uri}/{generation}/{folders_in_use[CHECKPOINT]} changes while it is copied"
        raise StateError("state-unreadable", message, "Stop the run that still writes to it, and build again.")
    store.put(f"{generation}/{_NOTE}{lease}", b"{}")
    old = re.compile(rf"({CHECKPOINT}|{BATCHES})(\.[0-9]+)?|{re.escape(_NOTE)}[0-9]+")
    for name in names:
        if old.fullmatch(name) and not name.endswith(f".{lease}"):
            store.delete(f"{generation}/{name}")


def _noted(name: str) -> int | None:
    return whole_number(name.removeprefix(_NOTE)) if name.startswith(_NOTE) else None


@dataclass(frozen=True, slots=True)
class _Copy:
    store: KeyedStore
    source: str
    to: str

    def copy(self) -> bool:
        """Copy it, what Spark writes last first, so that nothing is missed; False: something vanished meanwhile.

        What is behind the micro-batch after the last committed one is left out: it could be from other offsets.
        """
        commits = self._below("commits")
        committed = max((number for name in commits if (number := _number(name)) is not None), default=-1)
        if not self._copied(commits):
            return False
        state = [key for key in self._below("state") if _version(key) <= committed + 1]
        if not self._copied(state):
            return False
        offsets = [key for key in self._below("offsets") if (_number(key) or 0) <= committed + 1]
        if not self._copied(offsets):
            return False
        copied_prefixes = ("commits/", "state/", "offsets/")
        return self._copied([key for key in self.store.keys(self.source) if not key.startswith(copied_prefixes)])

    def _below(self, folder: str) -> list[str]:
        return [f"{folder}/{key}" for key in self.store.keys(f"{self.source}/{folder}")]

    def _copied(self, keys: list[str]) -> bool:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return all(pool.map(self._copied_one, keys))

    def _copied_one(self, key: str) -> bool:
        return self.store.copy(f"{self.source}/{key}", f"{self.to}/{key}")


def _number(key: str) -> int | None:
    return whole_number(key.rpartition("/")[2])


def _version(key: str) -> int:
    match = _VERSIONED.fullmatch(key.rpartition("/")[2])
    return int(match[1]) if match else -1
