"""Spark's log of the files that a stream was given: `sources/<n>/<entry>` in its checkpoint.

An entry, written before the micro-batch that reads it, is a version line and a line of JSON a file: its path as an
encoded URI and its time. Every tenth is `<entry>.compact` and holds all files so far (FileStreamSourceLog).
`offsets/<batch>` says up to which entry a micro-batch reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from engine.characters import whole_number
from engine.errors import StateError
from engine.ignored_file_names import holds_rows
from engine.state.state_path import StatePath, content, names_in

_COMPACT = ".compact"
# Spark class OffsetSeqLog: a source that has had nothing yet.
_NO_OFFSET = "-"
# Beside the checkpoint: the times of files that were read as they are now, not as Spark noted them.
ACCEPTED = "files.json"
# What JSON that is another than was written raises where it is read.
_DAMAGE: Final = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Logged:
    """`uri` is encoded; `modified` is in milliseconds."""

    uri: str
    modified: int
    entry: int


def file_sources(checkpoint: StatePath) -> list[int]:
    folder = checkpoint / "sources"
    try:
        names = names_in(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(n for name in names if (n := whole_number(name)) is not None and _is_log(folder / name))


def _is_log(folder: StatePath) -> bool:
    first = next((name for name in names_in(folder) if _number(name) is not None), None)
    if first is None:
        return False
    lines = content(folder / first).decode(errors="replace").splitlines()
    # Of what other sources keep there nothing names a path.
    return len(lines) == 1 or '"path":' in lines[1]


def reaches(checkpoint: StatePath, source: int, batch: int | None) -> int:
    """The last entry that a micro-batch reads; -1: none, or there is no such batch.

    Raises StateError: `state-unreadable`: nobody knows; files might be taken for read that are not.
    """
    if batch is None:
        return -1
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = content(path).decode().splitlines()[2:]
    except FileNotFoundError:
        return -1
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    line = _line(checkpoint, source)
    if line >= len(lines) or lines[line] == _NO_OFFSET:
        return -1
    try:
        return int(msgspec.json.decode(lines[line])["logOffset"])
    except _DAMAGE as error:
        raise _unreadable(path, error) from error


def _line(checkpoint: StatePath, source: int) -> int:
    """Which of the offsets is that of a source: a relation that is read twice has one number and two offsets."""
    numbers = _numbers(checkpoint)
    return numbers.index(source) if numbers is not None and source in numbers else source


def _numbers(checkpoint: StatePath) -> list[int] | None:
    """Return source numbers of `sources.json`; None: not recorded, they are those of the lines. Raises StateError."""
    path = checkpoint.parent / "sources.json"
    try:
        return [int(stream["number"]) for stream in json.loads(content(path).decode())["streams"]]
    except FileNotFoundError:
        return None
    except (OSError, *_DAMAGE) as error:
        raise _unreadable(path, error) from error


def logged(checkpoint: StatePath, source: int, *, after_entry: int = -1, to: int | None = None) -> Iterator[Logged]:
    folder = checkpoint / "sources" / str(source)
    numbers = {name: number for name in names_in(folder) if (number := _number(name)) is not None}
    compact = max((n for name, n in numbers.items() if name.endswith(_COMPACT)), default=-1)
    needs_compact = after_entry < compact
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        if number > compact or (needs_compact and number == compact and name.endswith(_COMPACT)):
            yield from (
                file for file in _files(folder / name) if after_entry < file.entry and (to is None or file.entry <= to)
            )


def files_of_entries(checkpoint: StatePath, line: int, after_entry: int, to: int) -> int:
    """Count the files of a source's entries behind `after_entry` up to `to`, without listing the log.

    Raises:
        OSError, ValueError, LookupError: the log is another than Spark writes.
        StateError: likewise, `state-unreadable`.
    """
    numbers = _numbers(checkpoint)
    folder = checkpoint / "sources" / str(line if numbers is None else numbers[line])
    count = 0
    for entry in range(after_entry + 1, to + 1):
        path = folder / str(entry)
        entry_files = _files(path if path.is_file() else folder / f"{entry}{_COMPACT}")
        count += sum(file.entry == entry for file in entry_files)
    return count


def _number(name: str) -> int | None:
    return whole_number(name.removesuffix(_COMPACT))


def _files(path: StatePath) -> Iterator[Logged]:
    try:
        for line in content(path).decode().splitlines()[1:]:
            entry = msgspec.json.decode(line)
            # Summaries of Parquet are noted, and nothing of them is read: they may come and go.
            if holds_rows(entry["path"].rpartition("/")[2]):
                yield Logged(entry["path"], int(entry["timestamp"]), int(entry["batchId"]))
    except _DAMAGE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: StatePath, error: Exception) -> StateError:
    hint = "Restore the state from a backup: the file records the position of a stream."
    return StateError("state-unreadable", f"{path} cannot be read: {error}", hint)


def accepted_times(generation: StatePath) -> dict[str, int]:
    """The times of files, by URI, that count instead of those in Spark's log of a generation (its folder).

    Raises StateError: `state-unreadable`.
    """
    path = generation / ACCEPTED
    try:
        return {str(uri): int(time) for uri, time in json.loads(content(path).decode()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, *_DAMAGE) as error:
        hint = "Restore the file from a backup: it records which changed files were accepted."
        raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error
