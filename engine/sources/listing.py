"""Which files a source has: where they are, as Spark would list them, with sizes and times.

Files that are full extracts (`full_extracts`): which have not been taken, and in which order.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.errors import RunError
from engine.object_store.s3_settings import is_s3
from engine.sources.files import local_files, s3_files
from engine.sources.spec import Place, SourceSpec, with_connection_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# Options that change which files are read.
_FILTERS = ("recursiveFileLookup", "pathGlobFilter", "modifiedAfter", "modifiedBefore")


@dataclass(frozen=True, slots=True)
class Listed:
    """A file: where it is, its size in bytes and its modification time in milliseconds since 1970."""

    uri: str
    size: int
    modified: int

    @property
    def path(self) -> Path | None:
        return local(self.uri)


def is_uri(path: str) -> bool:
    """Whether a path is a URI (s3a://bucket/folder), and not a path of this machine."""
    return bool(_SCHEME.match(path))


def base(path: str) -> str:
    """The folder of a path up to its first pattern: landing/2024-*/x gives landing."""
    fixed_parts = []
    for part in path.split("/"):
        if local_paths.pattern_letter(part):
            break
        fixed_parts.append(part)
    return "/".join(fixed_parts) or ("/" if path.startswith("/") else "")


def folder(spec: SourceSpec, place: Place) -> Path | None:
    """The folder or file that is read, up to the first pattern; None if it is not on this machine."""
    path = str(spec.settings.get("path", ""))
    if not is_uri(path):
        exact = place.root / path
        return exact if exact.exists() else place.root / base(path)
    return local(base(path))


def local(uri: str) -> Path | None:
    """The path behind a location as Hadoop prints it; None if it is not on this machine."""
    path = local_paths.path_of_location(uri)
    return None if path is None else Path(path)


def times_now(uris: Collection[str], specs: Iterable[SourceSpec], place: Place) -> Mapping[str, int] | None:
    """The times of files in an object store, in milliseconds; None: they are elsewhere, or nobody can ask for them.

    Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
    """
    if place.store is None or not uris or not all(is_s3(uri) for uri in uris):
        return None
    folders = [base(path) for spec in specs if is_s3(path := str(spec.settings.get("path", "")))]
    return s3_files.times(uris, folders, place.store())


def for_spark(spec: SourceSpec, place: Place) -> str:
    """Return the path for Spark's reader: a path, not a URI, so that `%20` stays a file's name; patterns stay."""
    path = str(spec.settings.get("path", ""))
    if is_uri(path):
        return path
    exact = (place.root / path).exists()
    if exact:
        return exactly(place.root / path)
    return local_paths.hadoop(path) if path.startswith("/") else f"{exactly(place.root)}/{path}"


def exactly(path: Path) -> str:
    """A path of this machine for Spark's readers, with nothing in it that is taken for a pattern."""
    return local_paths.literally(local_paths.hadoop(path))


def listed(session: SparkSession, spec: SourceSpec, place: Place) -> list[Listed]:
    """The files that a batch would read now, in the order of their names. Raises SetupError: as `listed_here`."""
    listed_files = listed_here(spec, place)
    if listed_files is not None:
        return listed_files
    # What a connection brings says how the file system is reached.
    brought = with_connection_options(replace(spec, options={}), place).options
    filters = {key: value for key, value in spec.options.items() if key in _FILTERS}
    files = sorted(_list_with_spark(session, for_spark(spec, place), {**brought, **filters}), key=lambda file: file.uri)
    if faults := faults_of(spec, place, [path for file in files if (path := file.path) is not None]):
        raise local_files.unsuitable(spec.name, faults)
    return files


def check_listed(session: SparkSession, spec: SourceSpec, place: Place) -> None:
    """Check the files of this machine that only Spark lists; all others were checked with their folder.

    Raises SetupError: `source-path`.
    """
    if folder(spec, place) is not None and _unfiltered_path(spec, place) is None:
        listed(session, spec, place)


def faults_of(spec: SourceSpec, place: Place, paths: Iterable[Path]) -> list[str]:
    top = folder(spec, place)
    return local_files.file_faults(top, map(str, paths)) if top is not None and top.is_dir() else []


def check_here(spec: SourceSpec, place: Place) -> None:
    """Check the folder or file of a source on this machine, and what is below it, without Spark.

    Raises SetupError: `source-path`.
    """
    top = folder(spec, place)
    if top is not None and top.exists():
        local_files.check_top(spec.name, top)
        local_files.check_colon(spec.name, top, for_spark(spec, place))
        if top.is_dir() and _unfiltered_path(spec, place, filters=False) is not None:
            for _ in local_files.walk(spec.name, top):
                pass
        elif top.is_dir():
            local_files.check_pattern(spec.name, top, _behind(spec))


def _behind(spec: SourceSpec) -> Sequence[str]:
    path = str(spec.settings["path"])
    return [part for part in path[len(base(path)) :].split("/") if part]


def _unfiltered_path(spec: SourceSpec, place: Place, *, filters: bool = True) -> Path | None:
    """The folder or file on this machine that is read as it is: without a pattern and, where they count, a filter."""
    path = str(spec.settings.get("path", ""))
    path_here = folder(spec, place)
    is_literal = path_here is not None and not is_uri(path) and (place.root / path).exists()
    return path_here if is_literal and not (filters and any(key in spec.options for key in _FILTERS)) else None


def listed_here(spec: SourceSpec, place: Place) -> list[Listed] | None:
    """The same without Spark; None: only Spark can list them (another file system, a pattern, a filter).

    Raises:
        SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
        SetupError: `source-path`, there are files that cannot be read, or links that lead out.
    """
    path = str(spec.settings.get("path", ""))
    if place.store is not None and is_s3(path):
        if base(path) != path or any(key in spec.options for key in _FILTERS):
            return None
        return sorted(
            (Listed(*facts_of_file) for facts_of_file in s3_files.walk(path, place.store())), key=lambda file: file.uri
        )
    top = _unfiltered_path(spec, place)
    if top is None:
        return None
    local_files.check_top(spec.name, top)
    if top.is_file():
        return [_facts(str(top), top.stat())]
    return sorted(_walk(spec.name, top), key=lambda file: file.uri)


def position_of(files: Sequence[Listed]) -> dict[str, Any]:
    text = json.dumps([astuple(file) for file in files])
    return {"files": len(files), "hash": hashlib.sha256(text.encode()).hexdigest()}


def _walk(source: str, top: Path) -> Iterator[Listed]:
    for entry in local_files.walk(source, top):
        # One that has gone meanwhile is not listed.
        with suppress(FileNotFoundError):
            yield _facts(entry.path, entry.stat())


def _facts(path: str, stat: os.stat_result) -> Listed:
    return Listed(local_paths.hadoop(path), stat.st_size, stat.st_mtime_ns // 1_000_000)


def _list_with_spark(session: SparkSession, path: str, options: Mapping[str, str]) -> Iterator[Listed]:
    """Spark's own listing, of any file system: a format that opens no file unless its content is asked for."""
    from pyspark.sql import functions as f

    reader_options = {"recursiveFileLookup": "true", **options}
    reader = session.read.format("binaryFile").options(**reader_options)
    rows = reader.load(path).select("path", "length", f.unix_millis("modificationTime").alias("modified"))
    yield from (Listed(row["path"], int(row["length"]), int(row["modified"])) for row in rows.collect())


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
        local_path = local(self.uri)
        return str(local_path) if local_path is not None else local_paths.literally(self.uri)


def waiting(
    session: SparkSession, spec: SourceSpec, place: Place, taken_extracts: Mapping[str, Any]
) -> tuple[ExtractFile, ...]:
    """The files that have not been taken, the oldest first.

    Raises:
        RunError: `extract-order`: two files are of one time, one has no date in its name, one is of a time that was
            taken before, or changed after it was taken.
    """
    return in_order(spec, listed(session, spec, place), taken_extracts)


def in_order(spec: SourceSpec, files: list[Listed], taken_extracts: Mapping[str, Any]) -> tuple[ExtractFile, ...]:
    by_name = spec.settings["full_extracts"] == "by_name"
    taken_times: Mapping[str, int] = taken_extracts.get("files", {})
    new = [file for file in files if taken_times.get(file.uri) != file.modified]
    if by_name and (changed := [file for file in new if file.uri in taken_times]):
        if spec.settings.get("on_changed_file") != "ignore":
            message = f"{_names(changed)} of '{spec.name}' changed after being taken as an extract"
            hint = "Restore the file, and land other rows under a later date; or set 'on_changed_file: ignore'."
            raise RunError("extract-order", message, hint)
        new = [file for file in new if file.uri not in taken_times]
    extracts = sorted((_extract(spec, file, by_name=by_name) for file in new), key=lambda file: (file.at, file.uri))
    last = taken_extracts.get("at")
    late = [file for file in extracts if last is not None and file.at <= last]
    if last is not None and late:
        message = f"{_names(late)} of '{spec.name}' arrived late: an extract of {_time_text(last)} was taken already"
        hint = "Move the file away, or give it a later time: extracts are taken in the order of time."
        raise RunError("extract-order", message, hint)
    for one, other in pairwise(extracts):
        if one.at == other.at:
            message = f"'{one.name}' and '{other.name}' of '{spec.name}' are of one time, {_time_text(one.at)}"
            hint = "Each file is a full extract of a time of its own: add a time to their names, or land one file."
            raise RunError("extract-order", message, hint)
    return tuple(extracts)


def with_taken(taken_extracts: Mapping[str, Any], file: ExtractFile) -> dict[str, Any]:
    return {"at": file.at, "files": {**taken_extracts.get("files", {}), file.uri: file.modified}}


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
            moment = datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
        return int(moment.timestamp()) * 1_000_000
    return None


def _names(files: list[Any]) -> str:
    names = [f"'{file.uri.rpartition('/')[2]}'" for file in files]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _time_text(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
