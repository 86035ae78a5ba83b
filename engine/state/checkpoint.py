"""Reading Spark's checkpoint: the query's id, and which micro-batches were started and committed.

Formats: `metadata` is one line of JSON with the id; `offsets/<n>` is written before batch n and holds a
version line, a line of JSON about the batch and one line per source; `commits/<n>` is written after it
(Spark classes OffsetSeqLog and CommitLog).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def query_id(checkpoint: Path) -> str | None:
    """The id of the streaming query, or None if it never started."""
    try:
        identifier = json.loads((checkpoint / "metadata").read_text(encoding="utf-8")).get("id")
    except (OSError, ValueError, AttributeError):
        return None
    return identifier if isinstance(identifier, str) else None


def last_started(checkpoint: Path) -> int | None:
    """The newest batch whose offsets were written."""
    return _newest(checkpoint / "offsets")


def last_committed(checkpoint: Path) -> int | None:
    """The newest batch that Spark holds for done."""
    return _newest(checkpoint / "commits")


def source_offsets(checkpoint: Path, batch: int) -> list[dict[str, Any]]:
    """Where each source stood at the end of a batch; sources without an offset are left out."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    except OSError:
        return []
    offsets = []
    for line in lines:
        try:
            offset = json.loads(line)
        except ValueError:
            continue
        if isinstance(offset, dict):
            offsets.append(offset)
    return offsets


def _newest(folder: Path) -> int | None:
    try:
        numbers = [int(p.name) for p in folder.iterdir() if p.name.isdigit()]
    except OSError:
        return None
    return max(numbers, default=None)
