"""Which files a source has: where they are, as Spark would list them, with sizes and times."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from engine.object_store.s3_settings import is_s3
from engine.sources.files import s3_listing
from engine.sources.spec import Place, SourceSpec, connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The only place that is looked at without Spark.
_LOCAL = re.compile(r"file:/+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_GLOB = re.compile(r"[\[\]{}*?\\]")
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
        """The file, if it is on this machine."""
        return local(self.uri)


def is_uri(path: str) -> bool:
    """Whether a path is a URI (s3a://bucket/folder), and not a path of this machine."""
    return bool(_SCHEME.match(path))


def base(path: str) -> str:
    """The folder of a path up to its first pattern: landing/2024-*/x gives landing."""
    kept = []
    for part in path.split("/"):
        if _GLOB.search(part):
            break
        kept.append(part)
    return "/".join(kept) or ("/" if path.startswith("/") else "")


def folder(spec: SourceSpec, place: Place) -> Path | None:
    """The folder or file that is read, up to the first pattern; None if it is not on this machine.

    It is in the project, or wherever an absolute path leads.
    """
    path = str(spec.settings.get("path", ""))
    if not is_uri(path):
        exact = place.root / path
        return exact if exact.exists() else place.root / base(path)
    return local(base(path)) if _LOCAL.match(path) else None


def local(uri: str) -> Path | None:
    """The path behind a URI of this machine as Hadoop prints it (nothing is encoded); None if it is elsewhere."""
    return Path("/" + _LOCAL.sub("", uri, count=1)) if _LOCAL.match(uri) else None


def decoded(uri: str) -> str:
    """A URI from Spark's log, in which everything is encoded, as Hadoop prints it."""
    return _LOCAL.sub("file:/", unquote(uri), count=1)


def times_now(uris: Collection[str], specs: Iterable[SourceSpec], place: Place) -> Mapping[str, int] | None:
    """The times of files in an object store, in milliseconds; None: they are elsewhere, or nobody can ask for them.

    Raises:
        SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
    """
    if place.store is None or not uris or not all(is_s3(uri) for uri in uris):
        return None
    folders = [base(path) for spec in specs if is_s3(path := str(spec.settings.get("path", "")))]
    return s3_listing.times(uris, folders, place.store())


def for_spark(spec: SourceSpec, place: Place) -> str:
    """The path for Spark's reader: patterns stay, but what is meant by its letter is not taken for one.

    Hadoop takes a path as it is, not as a URI: `%20` would be a file's name.
    """
    path = str(spec.settings.get("path", ""))
    if is_uri(path):
        return path
    exact = (place.root / path).exists()
    if exact:
        return exactly(place.root / path)
    return f"file:{path}" if path.startswith("/") else f"{exactly(place.root)}/{path}"


def exactly(path: Path) -> str:
    """A path of this machine for Spark's readers, with nothing in it that is taken for a pattern."""
    return literally(f"file:{path}")


def literally(location: str) -> str:
    """A location for Spark's readers, with nothing in it that is taken for a pattern."""
    return _GLOB.sub(r"\\\g<0>", location)


def listed(session: SparkSession, spec: SourceSpec, place: Place) -> list[Listed]:
    """The files that a batch would read now, in the order of their names."""
    found = listed_here(spec, place)
    if found is not None:
        return found
    # What a connection brings says how the file system is reached.
    brought = connected(replace(spec, options={}), place).options
    chosen = {key: value for key, value in spec.options.items() if key in _FILTERS}
    return sorted(_asked(session, for_spark(spec, place), {**brought, **chosen}), key=lambda file: file.uri)


def listed_here(spec: SourceSpec, place: Place) -> list[Listed] | None:
    """The same without Spark; None: only Spark can list them (another file system, a pattern, a filter)."""
    path = str(spec.settings.get("path", ""))
    if place.store is not None and is_s3(path):
        if base(path) != path or any(key in spec.options for key in _FILTERS):
            return None
        return sorted((Listed(*found) for found in s3_listing.walk(path, place.store())), key=lambda file: file.uri)
    found = folder(spec, place)
    plain = found is not None and not is_uri(path) and (place.root / path).exists()
    if found is None or not plain or any(key in spec.options for key in _FILTERS):
        return None
    return sorted(_walk(found), key=lambda file: file.uri)


def _walk(top: Path) -> Iterator[Listed]:
    if top.is_file():
        yield _facts(str(top), top.stat())
        return
    waiting = [str(top)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.is_file():
                    yield _facts(entry.path, entry.stat())


def _facts(path: str, stat: os.stat_result) -> Listed:
    return Listed(f"file:{path}", stat.st_size, stat.st_mtime_ns // 1_000_000)


def _asked(session: SparkSession, path: str, options: Mapping[str, str]) -> Iterator[Listed]:
    """Spark's own listing, of any file system: a format that opens no file unless its content is asked for."""
    from pyspark.sql import functions as f

    chosen = {"recursiveFileLookup": "true", **options}
    reader = session.read.format("binaryFile").options(**chosen)
    rows = reader.load(path).select("path", "length", f.unix_millis("modificationTime").alias("modified"))
    yield from (Listed(row["path"], int(row["length"]), int(row["modified"])) for row in rows.collect())
