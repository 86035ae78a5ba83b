"""The data files of a snapshot and their partitions, listed in this process: no job of Spark is started for them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from engine.errors import EngineError
from engine.lake.lake_reader import Lake

# PyIceberg lists some thousands of files in a second; Spark takes longer for few of them.
_MOST_FILES = 5_000
_log = logging.getLogger("engine.lake")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """`partition` holds text: days of dates and microseconds of times since 1970; None: NULL."""

    path: str
    spec: int
    partition: tuple[str | None, ...]


def listed_files(lake: Lake, schema: str, name: str, snapshot: int | None) -> list[ListedFile] | None:
    """Return the data files of a snapshot; None: there are many, or PyIceberg cannot read of them."""
    if snapshot is None:
        return []
    try:
        with lake.opened(schema, name) as table:
            found = table.snapshot_by_id(snapshot) if table is not None else None
            if table is None or found is None:
                return None
            summary: Any = found.summary
            if summary is None or int(summary["total-data-files"] or 0) > _MOST_FILES:
                return None
            tasks = table.scan(snapshot_id=snapshot).plan_files()
            return [ListedFile(t.file.file_path, t.file.spec_id, _texts(t.file.partition)) for t in tasks]
    # Equality deletes, a value that is none of the kinds below, bytes that are no Avro: Spark lists them, or says why.
    except EngineError as error:
        _log.debug("the files of %s.%s are listed by Spark: %s", schema, name, error)
        return None


def _texts(partition: Any) -> tuple[str | None, ...]:
    return tuple(_text(partition[position]) for position in range(len(partition)))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    raise TypeError(type(value).__name__)
