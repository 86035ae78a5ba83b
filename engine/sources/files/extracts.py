"""Files that are full extracts (`full_extracts`): which have not been taken, and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.errors import RunError
from engine.sources.files import listing
from engine.sources.files.listing import Listed
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = 3
# A day, and a time of the day behind it: 2024-05-01, 20240501, 2024-05-01T0630, 20240501_063000.
_DAY = r"(?<!\d)(\d{4})(-?)(\d{2})\2(\d{2})"
_TIME = re.compile(_DAY + r"(?:[T_ -]?(\d{2})[:-]?(\d{2})(?:[:-]?(\d{2}))?)?(?!\d)")


@dataclass(frozen=True, slots=True)
class ExtractFile:
    """`modified` is in milliseconds, `at` (the time that its rows are of) in microseconds since 1970."""

    uri: str
    name: str
    modified: int
    at: int

    @property
    def path(self) -> str:
        here = listing.local(self.uri)
        return str(here) if here is not None else local_paths.literally(self.uri)


def waiting(session: SparkSession, spec: SourceSpec, place: Place, taken: Mapping[str, Any]) -> tuple[ExtractFile, ...]:
    """The files that have not been taken, the oldest first.

    Raises:
        RunError: `extract-order`: two files are of one time, one has no date in its name, one is of a time that was
            taken before, or changed after it was taken.
    """
    return in_order(spec, listing.listed(session, spec, place), taken)


def in_order(spec: SourceSpec, files: list[Listed], taken: Mapping[str, Any]) -> tuple[ExtractFile, ...]:
    by_name = spec.settings["full_extracts"] == "by_name"
    known: Mapping[str, int] = taken.get("files", {})
    new = [file for file in files if known.get(file.uri) != file.modified]
    if by_name and (changed := [file for file in new if file.uri in known]):
        if spec.settings.get("on_changed_file") != "ignore":
            message = f"{_names(changed)} of '{spec.name}' changed after being taken as an extract"
            hint = "Restore the file, and land other rows under a later date; or set 'on_changed_file: ignore'."
            raise RunError("extract-order", message, hint)
        new = [file for file in new if file.uri not in known]
    found = sorted((_extract(spec, file, by_name=by_name) for file in new), key=lambda file: (file.at, file.uri))
    last = taken.get("at")
    late = [file for file in found if last is not None and file.at <= last]
    if last is not None and late:
        message = f"{_names(late)} of '{spec.name}' arrived late: an extract of {_shown(last)} was taken already"
        hint = "Move the file away, or give it a later time: extracts are taken in the order of time."
        raise RunError("extract-order", message, hint)
    for one, other in pairwise(found):
        if one.at == other.at:
            message = f"'{one.name}' and '{other.name}' of '{spec.name}' are of one time, {_shown(one.at)}"
            hint = "Each file is a full extract of a time of its own: add a time to their names, or land one file."
            raise RunError("extract-order", message, hint)
    return tuple(found)


def with_taken(taken: Mapping[str, Any], file: ExtractFile) -> dict[str, Any]:
    return {"at": file.at, "files": {**taken.get("files", {}), file.uri: file.modified}}


def _extract(spec: SourceSpec, file: Listed, *, by_name: bool) -> ExtractFile:
    name = file.uri.rpartition("/")[2]
    at = _time_in(name) if by_name else file.modified * 1000
    if at is None:
        message = f"'{name}' of '{spec.name}' has no date in its name"
        hint = "Name extracts by their day, as in customers_2024-05-01.json, or set 'full_extracts: by_time'."
        raise RunError("extract-order", message, hint)
    return ExtractFile(file.uri, name, file.modified, at)


def _time_in(name: str) -> int | None:
    for match in _TIME.finditer(name):
        year, _, month, day, *clock = match.groups()
        try:
            hour, minute, second = (int(part or 0) for part in clock)
            found = datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
        return int(found.timestamp()) * 1_000_000
    return None


def _names(files: list[Any]) -> str:
    names = [f"'{file.uri.rpartition('/')[2]}'" for file in files]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _shown(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
