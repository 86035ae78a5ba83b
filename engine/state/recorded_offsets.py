"""What is recorded of `offsets/<n>` outside of the checkpoint: in the commit of the micro-batch and in model.json.

A micro-batch that comes again must be the one that was committed. Spark takes for that whatever `offsets/<n>` says: a
digit that a disk or a person changed is records that are read twice, or never (measured, Spark 4.1.4).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

# Markers of a commit: a digest of the file, and where the sources end if that is short.
DIGEST: Final = "offsets-digest"
ENDS: Final = "offsets"
# Each snapshot that is kept has its markers in each metadata file of the table.
_LONGEST: Final = 500
_DIGITS: Final = 32
# The lines before those of the sources: the version, and what holds for the micro-batch.
_HEAD: Final = 2


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def markers_of(content: bytes) -> dict[str, str]:
    lines = content.decode(errors="replace").splitlines()[_HEAD:]
    ends = json.dumps([_parsed(line) for line in lines], separators=(",", ":"))
    return {DIGEST: digest_of(content), **({ENDS: ends} if len(ends) <= _LONGEST else {})}


def _parsed(line: str) -> object:
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError):
        # Spark writes a dash for a source that has none.
        return None if line == "-" else line
    return parsed


def ended(known: Mapping[str, Sequence[str]], batch: int, digest: str) -> dict[str, Sequence[str]]:
    before = {number: digests for number, digests in known.items() if number == str(batch - 1)}
    return {**before, str(batch): [digest]}


def moved(known: Mapping[str, Sequence[str]], batch: int, digests: Iterable[str]) -> dict[str, Sequence[str]]:
    return {**known, str(batch): list(digests)}
