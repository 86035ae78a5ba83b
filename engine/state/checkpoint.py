"""Reading Spark's checkpoint: the query's id, and which micro-batches were started and committed.

`metadata` is one line of JSON with the id; `offsets/<n>` is written before batch n (a version line, JSON about the
batch, one line per source), `commits/<n>` after it (Spark classes OffsetSeqLog and CommitLog).

The commit of a micro-batch and model.json record digests of `offsets/<n>`: Spark believes whatever that says when a
batch comes again, and a changed digit is records read twice, or never (measured, Spark 4.1.4).

A machine that lost power, or a half-copied folder, leaves cut-off logs; Spark then says "Incomplete log file", or that
several queries use the checkpoint (both measured): they are found before Spark is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine.characters import whole_number
from engine.state.state_path import StatePath, content, names_below, names_in

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


def with_digest(ends: Mapping[str, Sequence[str]], batch: int, digest: str) -> dict[str, Sequence[str]]:
    previous_batch = {number: digests for number, digests in ends.items() if number == str(batch - 1)}
    return {**previous_batch, str(batch): [digest]}


def with_moved_digests(
    ends: Mapping[str, Sequence[str]], batch: int, digests: Iterable[str]
) -> dict[str, Sequence[str]]:
    return {**ends, str(batch): list(digests)}


# What Spark writes for a source that has none (OffsetSeqLog).
_NO_OFFSET = "-"


def query_id(checkpoint: StatePath) -> str | None:
    try:
        identifier = msgspec.json.decode(content(checkpoint / "metadata")).get("id")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return identifier if isinstance(identifier, str) else None


def last_started(checkpoint: StatePath) -> int | None:
    return _newest(checkpoint / "offsets")


def last_committed(checkpoint: StatePath) -> int | None:
    return _newest(checkpoint / "commits")


def standing(checkpoint: StatePath) -> list[dict[str, Any]]:
    """Return where each source is: what is before it was read and committed, what is behind it may come (again).

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
        names = sorted(names_in(folder))
    except OSError:
        return []
    first_offsets = [
        file_content
        for name in names
        for part in ("0", "offsets/0")
        if (file_content := _content(folder / name / part))
    ]
    # A source that keeps its beginning writes a version line and JSON (Spark's HDFSMetadataLog), or JSON alone.
    lines = [text.decode(errors="replace").splitlines()[-1:] for text in first_offsets]
    return _objects(line for last_lines in lines for line in last_lines)


def is_unread(checkpoint: StatePath) -> bool:
    """Whether no record was read; over an empty topic or table Spark runs a first micro-batch all the same."""
    batch = last_started(checkpoint)
    if batch is None:
        return True
    first_offsets, offsets = beginnings(checkpoint), offset_lines(checkpoint, batch)
    lines = content(checkpoint / "offsets" / str(batch)).decode(errors="replace").splitlines()[2:]
    return all(line == _NO_OFFSET or offset in first_offsets for line, offset in zip(lines, offsets, strict=True))


@dataclass(frozen=True, slots=True)
class OffsetsLog:
    """`watermark` is in milliseconds since 1970, None: not known; `sources` has None for one without an offset."""

    settings: Mapping[str, str]
    watermark: int | None
    sources: tuple[dict[str, Any] | None, ...]
    digest: str = ""

    @property
    def offsets(self) -> tuple[dict[str, Any], ...]:
        return tuple(offset for offset in self.sources if offset is not None)


def read_offsets(checkpoint: StatePath, batch: int | None) -> OffsetsLog | None:
    if batch is None:
        return None
    try:
        file_content = content(checkpoint / "offsets" / str(batch))
        _, *lines = file_content.decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return None
    head = next(iter(_objects(lines[:1])), {})
    conf, mark = head.get("conf"), head.get("batchWatermarkMs")
    return OffsetsLog(
        {str(key): str(value) for key, value in conf.items()} if isinstance(conf, dict) else {},
        mark if isinstance(mark, int) else None,
        tuple(next(iter(_objects([line])), None) for line in lines[1:]),
        digest_of(file_content),
    )


def source_offsets(checkpoint: StatePath, batch: int) -> list[dict[str, Any]]:
    log = read_offsets(checkpoint, batch)
    return [] if log is None else list(log.offsets)


def offset_lines(checkpoint: StatePath, batch: int) -> list[dict[str, Any] | None]:
    """The same by position: None for a source without an offset, or with one that is not an object."""
    log = read_offsets(checkpoint, batch)
    return [] if log is None else list(log.sources)


def settings(checkpoint: StatePath) -> Mapping[str, str]:
    """Spark's settings that a checkpoint keeps from its first micro-batch on, whatever a session says later."""
    log = read_offsets(checkpoint, last_started(checkpoint))
    return {} if log is None else log.settings


def operators(checkpoint: StatePath) -> frozenset[str]:
    """What keeps state, as Spark calls it: stateStoreSave, dedupe, globalLimit, ... Empty: nothing, or not known."""
    return frozenset(operator_folders(checkpoint).values())


def operator_folders(checkpoint: StatePath) -> dict[StatePath, str]:
    """The folder of each step that keeps state, with what Spark calls the step.

    `state/<n>/_metadata` has a version line and JSON with `operatorInfo` (Spark class OperatorStateMetadata).
    """
    names_by_folder: dict[StatePath, str] = {}
    for path in sorted((checkpoint / "state").glob("*/_metadata/**/*")):
        if path.is_file() and not path.name.startswith("."):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
            folder = checkpoint / "state" / names_below(path, checkpoint / "state")[0]
            for value in _objects(lines):
                info = value.get("operatorInfo")
                names_by_folder[folder] = str(info.get("operatorName") if isinstance(info, dict) else None)
    return names_by_folder


def _objects(lines: Iterable[str]) -> list[dict[str, Any]]:
    documents = []
    for line in lines:
        try:
            value = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            documents.append(value)
    return documents


def _content(path: StatePath) -> bytes | None:
    try:
        return content(path)
    except OSError:
        return None


def _newest(folder: StatePath) -> int | None:
    try:
        numbers = [number for name in names_in(folder) if (number := whole_number(name)) is not None]
    except OSError:
        return None
    return max(numbers, default=None)


def watermark_of(checkpoint: StatePath, batch: int) -> int | None:
    """The watermark by which a micro-batch closed windows, milliseconds since 1970; None: it is not known."""
    log = read_offsets(checkpoint, batch)
    return None if log is None else log.watermark


def next_watermark(checkpoint: StatePath) -> int | None:
    """The watermark with which the next micro-batch begins, milliseconds since 1970; None: there is none yet."""
    batch = last_committed(checkpoint)
    if batch is None:
        return None
    lines = content(checkpoint / "commits" / str(batch)).decode(errors="replace").splitlines()
    documents = _objects(lines[1:])
    mark = documents[0].get("nextBatchWatermarkMs") if documents else None
    return mark or None if isinstance(mark, int) else None


OFFSETS, COMMITS = "offsets", "commits"
_VERSION, _SUM = "v", ".crc"


@dataclass(frozen=True, slots=True)
class Damage:
    """`log` is `offsets` (written before a micro-batch) or `commits` (after it); `files` are what is left of it."""

    log: str
    batch: int
    files: tuple[StatePath, ...]


def find_damage(checkpoint: StatePath, shown_root: StatePath | None = None) -> Damage | None:
    """Return what is wrong with the newest logs, all that Spark reads; `shown_root` gives the names in the answer."""
    for log in (OFFSETS, COMMITS):
        folder = checkpoint / log
        names = _names(folder)
        complete = _numbers(names)
        sums = _numbers([name[1 : -len(_SUM)] for name in names if name.startswith(".") and name.endswith(_SUM)])
        newest = max(complete | sums, default=None)
        if newest is None or (newest in complete and _readable(folder / str(newest), log)):
            continue
        remaining_files = [name for name in (str(newest), f".{newest}{_SUM}") if (folder / name).exists()]
        return Damage(log, newest, tuple((shown_root or checkpoint) / log / name for name in remaining_files))
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
