"""Folders of files as sources: JSON lines, CSV and Parquet with a declared schema.

A stream reads each file once, in the order of modification times. Spark's file source silently skips
files that are seven days older than the newest one it saw (option maxFileAge, measured); here no file is
skipped by age. A record that does not fit the schema fails the query (FAILFAST): Spark's default would
turn it into a row of NULLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.sources.spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("json", "csv", "parquet")
KEYS = ("path", "options", "max_files_per_trigger", "timezone")
REPLAYABLE = True
STREAM_BY_DEFAULT = False
_NO_AGE_LIMIT = "36500d"
_OWN_OPTIONS = {"mode", "path", "maxfilespertrigger", "latestfirst", "maxfileage", "timezone"}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as listed: path relative to the source's folder, size in bytes, modification time in ns."""

    path: str
    size: int
    modified: int


def check_options(options: dict[str, str]) -> list[str]:
    """The reader options that the engine sets itself and a source may not."""
    return [key for key in options if key.lower() in _OWN_OPTIONS]


def location(spec: SourceSpec, root: Path) -> Path:
    """The folder or file of the source."""
    return root / spec.path


def check(spec: SourceSpec, root: Path) -> None:
    """Make sure that there is something to read.

    Raises:
        SetupError: `landing-missing` if the folder does not exist.
    """
    if not location(spec, root).exists():
        hint = "Land the data first (in the example: make demo, or python -m producer), or correct 'path'."
        raise SetupError("landing-missing", f"the folder '{spec.path}' of source '{spec.name}' does not exist", hint)


def position(spec: SourceSpec, root: Path) -> tuple[FileFacts, ...]:
    """What is there now: the files Spark would read, by path."""
    base = location(spec, root)
    if base.is_file():
        return (_facts(base, base.parent),)
    return tuple(_facts(p, base) for p in sorted(base.rglob("*")) if p.is_file() and _visible(p, base))


def _visible(path: Path, base: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.relative_to(base).parts)


def _facts(path: Path, base: Path) -> FileFacts:
    stat = path.stat()
    return FileFacts(path.relative_to(base).as_posix(), stat.st_size, stat.st_mtime_ns)


def reader_options(spec: SourceSpec, *, stream: bool, max_files: int | None = None) -> dict[str, str]:
    """The options for Spark's reader; `max_files` in a micro-batch."""
    options = {"recursiveFileLookup": "true", **spec.options, "mode": "FAILFAST"}
    if spec.timezone:
        options["timeZone"] = spec.timezone
    if spec.format == "csv":
        # Spark writes a quote inside a quoted field with a backslash; everyone else doubles it.
        options.setdefault("escape", '"')
        options.setdefault("header", "true")
    limit = max_files or spec.max_files_per_trigger
    if stream:
        options["maxFileAge"] = _NO_AGE_LIMIT
        if limit:
            options["maxFilesPerTrigger"] = str(limit)
    return options


def _read_whole_records(session: SparkSession) -> None:
    """Filters pushed into the JSON and CSV parsers would hide bad records, and rows from the count of rows read."""
    for kind in ("json", "csv"):
        session.conf.set(f"spark.sql.{kind}.filterPushdown.enabled", "false")


def read_batch(session: SparkSession, spec: SourceSpec, root: Path) -> DataFrame:
    """All rows as they are now."""
    _read_whole_records(session)
    reader = session.read.format(spec.format).schema(spec.schema)
    return reader.options(**reader_options(spec, stream=False)).load(location(spec, root).as_uri())


def read_stream(session: SparkSession, spec: SourceSpec, root: Path, max_files: int | None) -> DataFrame:
    """Each file once, oldest first; `max_files` in a micro-batch."""
    _read_whole_records(session)
    reader = session.readStream.format(spec.format).schema(spec.schema)
    options = reader_options(spec, stream=True, max_files=max_files)
    return reader.options(**options).load(location(spec, root).as_uri())
