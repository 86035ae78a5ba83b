"""A checkpoint whose newest logs a crash of the machine cut off, found before Spark is asked.

Spark writes its logs beside and moves them into place, so that a killed process leaves whole files; a machine that
lost power, or a copy of a folder that was not finished, leaves others. Spark then says "Incomplete log file", or that
several queries use the checkpoint where only the checksum of a file is left (both measured, Spark 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from engine.characters import whole_number
from engine.state.state_path import StatePath, content, names_in

OFFSETS, COMMITS = "offsets", "commits"
_VERSION, _SUM = "v", ".crc"


@dataclass(frozen=True, slots=True)
class Damage:
    """`log` is `offsets` (written before a micro-batch) or `commits` (after it); `files` are what is left of it."""

    log: str
    batch: int
    files: tuple[StatePath, ...]


def find_damage(checkpoint: StatePath, named: StatePath | None = None) -> Damage | None:
    """Return what is wrong with the newest logs, all that Spark reads; `named` gives the names in the answer."""
    for log in (OFFSETS, COMMITS):
        folder = checkpoint / log
        names = _names(folder)
        whole = _numbers(names)
        sums = _numbers([name[1 : -len(_SUM)] for name in names if name.startswith(".") and name.endswith(_SUM)])
        newest = max(whole | sums, default=None)
        if newest is None or (newest in whole and _readable(folder / str(newest), log)):
            continue
        left = [name for name in (str(newest), f".{newest}{_SUM}") if (folder / name).exists()]
        return Damage(log, newest, tuple((named or checkpoint) / log / name for name in left))
    return None


def _names(folder: StatePath) -> list[str]:
    try:
        return names_in(folder)
    except OSError:
        return []


def _numbers(names: list[str]) -> set[int]:
    return {number for name in names if (number := whole_number(name)) is not None}


def _readable(path: StatePath, log: str) -> bool:
    try:
        version, *lines = content(path).decode().splitlines()
        values = [msgspec.json.decode(line) for line in lines if line != "-"]
    except (OSError, ValueError, RecursionError):
        return False
    return version.startswith(_VERSION) and len(lines) > (1 if log == OFFSETS else 0) and isinstance(values[0], dict)
