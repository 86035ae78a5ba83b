"""Reading Spark's checkpoint: the query's id, and which micro-batches were started and committed.

Formats: `metadata` is one line of JSON with the id; `offsets/<n>` is written before batch n and holds a
version line, a line of JSON about the batch and one line per source; `commits/<n>` is written after it
(Spark classes OffsetSeqLog and CommitLog).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from engine.characters import whole_number
from engine.state.state_path import StatePath, content, names_below

# What Spark writes for a source that has none (OffsetSeqLog).
_NO_OFFSET = "-"


def query_id(checkpoint: StatePath) -> str | None:
    """The id of the streaming query, or None if it never started."""
    try:
        identifier = json.loads((checkpoint / "metadata").read_text(encoding="utf-8")).get("id")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return identifier if isinstance(identifier, str) else None


def last_started(checkpoint: StatePath) -> int | None:
    """The newest batch whose offsets were written."""
    return _newest(checkpoint / "offsets")


def last_committed(checkpoint: StatePath) -> int | None:
    """The newest batch that Spark holds for done."""
    return _newest(checkpoint / "commits")


def standing(checkpoint: StatePath) -> list[dict[str, Any]]:
    """Where each source is: what is before it was read and committed, what is behind it may come (again).

    A first batch that was started and not committed comes again from where its sources began.
    """
    committed = last_committed(checkpoint)
    if committed is not None:
        return source_offsets(checkpoint, committed)
    return beginnings(checkpoint)


def beginnings(checkpoint: StatePath) -> list[dict[str, Any]]:
    """Where the sources of a query began: `sources/<n>/0`, and of Iceberg `sources/<n>/offsets/0`."""
    folder = checkpoint / "sources"
    try:
        begun = sorted([*folder.glob("*/0"), *folder.glob("*/offsets/0")])
        # A source that keeps its beginning writes a version line and JSON (Spark's HDFSMetadataLog), or JSON alone.
        lines = [path.read_text(encoding="utf-8", errors="replace").splitlines()[-1:] for path in begun]
    except OSError:
        return []
    return _objects(line for found in lines for line in found)


def is_unread(checkpoint: StatePath) -> bool:
    """Whether no record was read: each source is where it began, by the newest micro-batch that was started.

    Over an empty topic or table Spark runs a first micro-batch all the same.
    """
    batch = last_started(checkpoint)
    if batch is None:
        return True
    begun, offsets = beginnings(checkpoint), offset_lines(checkpoint, batch)
    lines = content(checkpoint / "offsets" / str(batch)).decode(errors="replace").splitlines()[2:]
    return all(line == _NO_OFFSET or offset in begun for line, offset in zip(lines, offsets, strict=True))


def source_offsets(checkpoint: StatePath, batch: int) -> list[dict[str, Any]]:
    """Where each source stood at the end of a batch; sources without an offset are left out."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8", errors="replace").splitlines()[2:]
    except OSError:
        return []
    return _objects(lines)


def offset_lines(checkpoint: StatePath, batch: int) -> list[dict[str, Any] | None]:
    """The same by position: None for a source without an offset, or with one that is not an object."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8", errors="replace").splitlines()[2:]
    except OSError:
        return []
    return [next(iter(_objects([line])), None) for line in lines]


def settings(checkpoint: StatePath) -> dict[str, str]:
    """Spark's settings that a checkpoint keeps from its first micro-batch on, whatever a session says later."""
    batch = last_started(checkpoint)
    try:
        lines = content(checkpoint / "offsets" / str(batch)).decode(errors="replace").splitlines()[1:2]
    except OSError:
        return {}
    known = next((value.get("conf") for value in _objects(lines)), None)
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}


def operators(checkpoint: StatePath) -> frozenset[str]:
    """What keeps state, as Spark calls it: stateStoreSave, dedupe, globalLimit, ... Empty: nothing, or not known."""
    return frozenset(operator_folders(checkpoint).values())


def operator_folders(checkpoint: StatePath) -> dict[StatePath, str]:
    """The folder of each step that keeps state, with what Spark calls the step.

    `state/<n>/_metadata` has a version line and JSON with `operatorInfo` (Spark class OperatorStateMetadata).
    """
    found: dict[StatePath, str] = {}
    for path in sorted((checkpoint / "state").glob("*/_metadata/**/*")):
        if path.is_file() and not path.name.startswith("."):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
            folder = checkpoint / "state" / names_below(path, checkpoint / "state")[0]
            for value in _objects(lines):
                info = value.get("operatorInfo")
                found[folder] = str(info.get("operatorName") if isinstance(info, dict) else None)
    return found


def _objects(lines: Iterable[str]) -> list[dict[str, Any]]:
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _newest(folder: StatePath) -> int | None:
    try:
        numbers = [number for p in folder.iterdir() if (number := whole_number(p.name)) is not None]
    except OSError:
        return None
    return max(numbers, default=None)


def watermark_of(checkpoint: StatePath, batch: int) -> int | None:
    """The watermark by which a micro-batch closed windows, milliseconds since 1970; None: it is not known."""
    try:
        lines = content(checkpoint / "offsets" / str(batch)).decode().splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    found = _objects(lines[1:2])
    mark = found[0].get("batchWatermarkMs") if found else None
    return mark if isinstance(mark, int) else None


def next_watermark(checkpoint: StatePath) -> int | None:
    """The watermark with which the next micro-batch begins, milliseconds since 1970; None: there is none yet."""
    batch = last_committed(checkpoint)
    if batch is None:
        return None
    lines = content(checkpoint / "commits" / str(batch)).decode().splitlines()
    found = _objects(lines[1:])
    mark = found[0].get("nextBatchWatermarkMs") if found else None
    return mark or None if isinstance(mark, int) else None
