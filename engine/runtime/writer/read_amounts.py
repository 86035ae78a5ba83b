"""How much unread input a query has, and how much of it a micro-batch read, in units that are counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import StateError
from engine.plan import Action
from engine.state.file_log import files_of_entries
from engine.state.state_path import StatePath

FILES, OFFSETS = "files", "offsets"
# What an offset of another form, or a log that was edited, raises where it is read.
_OTHER = (StateError, OSError, ValueError, LookupError, TypeError, AttributeError)


def unread_amounts(action: Action) -> dict[str, int]:
    """Return how much the inputs of a model have that it has not read, by unit, as far as the plan counted it."""
    sums: dict[str, int] = {}
    for unread in action.unread:
        if unread.what and unread.count:
            sums[unread.what] = sums.get(unread.what, 0) + unread.count
    return sums


def read_amounts(record: Mapping[str, Any], wanted: Iterable[str], checkpoint: StatePath) -> dict[str, int]:
    """Return how many files and offsets a micro-batch read; files are looked up in a local checkpoint only."""
    found: dict[str, int] = {}
    try:
        for line, source in enumerate(record.get("sources") or ()):
            begin, end = (_offset(source.get(key)) for key in ("startOffset", "endOffset"))
            if OFFSETS in wanted and isinstance(begin, dict) and (count := sum(_offsets(begin, end))):
                found[OFFSETS] = found.get(OFFSETS, 0) + count
            if FILES in wanted and isinstance(end, dict) and "logOffset" in end and isinstance(checkpoint, Path):
                first = int(begin["logOffset"]) if isinstance(begin, dict) else -1
                count = files_of_entries(checkpoint, line, first, int(end["logOffset"]))
                found[FILES] = found.get(FILES, 0) + count
    except _OTHER:
        return {}
    return found


def _offset(value: Any) -> Any:
    """An offset as a value: Spark's record has it as JSON or as a string of JSON."""
    return json.loads(value) if isinstance(value, str) else value


def _offsets(begin: Mapping[str, Any], end: Any) -> Iterator[int]:
    for topic, partitions in end.items():
        if isinstance(partitions, dict):
            before = begin.get(topic) or {}
            yield from (int(at) - int(before[p]) for p, at in partitions.items() if p in before)
