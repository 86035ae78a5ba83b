"""Traits of a kind of source, beside how it is read: others ask for them here, and not for its name.

`TRAITS` has a record for each format; the defaults are those of a kind of which nothing is known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.sources.spec import ClusterOffsets, Place, Resumption, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from engine.errors import EngineError
    from engine.lake.snapshot_history import Start
    from engine.lake.table_facts import TableFacts
    from engine.sources.listing import Listed


FILES, TABLE = "files", "table"
_TOPICS = ("topic", "topics", "topic_pattern", "assign")


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """`kind` is `files`, `table`, or the format of a source; `facts` are plain JSON."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def of_settings(format_: str, settings: Mapping[str, Any]) -> StreamIdentity:
    if "path" in settings:
        return StreamIdentity(FILES, {"path": normalized(str(settings["path"])), "format": format_})
    facts: dict[str, Any] = {}
    for key in _TOPICS:
        if key in settings:
            topic_setting = settings[key]
            facts = {"pattern": topic_setting} if key == "topic_pattern" else {"topics": _names(topic_setting)}
            if key == "assign":
                facts["assigned"] = sorted(
                    f"{topic}-{number}" for topic, some in topic_setting.items() for number in some
                )
    return StreamIdentity(format_, facts)


def _names(names: object) -> list[str]:
    return [names] if isinstance(names, str) else sorted(str(name) for name in names)  # type: ignore[attr-defined]


def normalized(path: str) -> str:
    """A path or URI in one spelling, as Hadoop reads it: no `./`, no doubled or trailing slash."""
    scheme, colon, rest = path.partition(":/")
    if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        authority, slash, inside = rest.removeprefix("/").partition("/")
        if scheme == "file" or not rest.startswith("/"):
            return f"{scheme}:{posixpath.normpath('/' + rest.lstrip('/'))}"
        return f"{scheme}://{authority}{posixpath.normpath('/' + inside.lstrip('/')) if slash and inside else ''}"
    return posixpath.normpath(path)


class ColumnsBy(StrEnum):
    NAME = "name"
    POSITION = "position"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KnownNow:
    """None in `files`: only Spark knows; `columns` have Spark's types and are those of an undeclared table."""

    files: tuple[Listed, ...] | None = None
    table: TableFacts | None = None
    parts: tuple[str, str, str] = ("", "", "")
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableTraits:
    """How a source that is an Iceberg table is read.

    Attributes:
        now: catalog, schema and name, and the table as it is; raises SetupError, `source-table`, `catalog-unusable`.
        start: where the declaration says that a stream begins; None: with the first row; raises StateError,
            `upstream-history`.
        stream: its rows from a start on; `has_begun` and `skip_deletes` as in `table_stream`.
        as_declared: the declared columns of a frame over the table, and where the rows came from; raises RunError,
            `source-columns`.
    """

    now: Callable[[SourceSpec, Place], tuple[tuple[str, str, str], TableFacts]]
    start: Callable[[SourceSpec, TableFacts], Start | None]
    stream: Callable[[SparkSession, SourceSpec, Place, Start, bool, bool], DataFrame]
    as_declared: Callable[[DataFrame, SourceSpec, Place], DataFrame]


@dataclass(frozen=True, slots=True)
class FileTraits:
    """How the files of a source are read and checked.

    Attributes:
        read: all rows of some files, given by URI as Hadoop prints them.
        has_schemas: the files have schemas of their own, which may differ from the declared one.
        misfits: what does not fit in a file, each in a few words; a file without content fits.
        unfit: the error that lists misfits.
        unreadable: the error that lists faults of files of a source, given by name.
        columns_in_folders: the declared columns whose values are in the names of the files' folders.
    """

    read: Callable[[SparkSession, SourceSpec, Place, Collection[str]], DataFrame]
    has_schemas: Callable[[SourceSpec], bool]
    misfits: Callable[[Path | str, SourceSpec, Place], list[str]]
    unfit: Callable[[Sequence[str]], EngineError]
    unreadable: Callable[[str, list[str]], EngineError]
    columns_in_folders: Callable[[Iterable[str], SourceSpec, Place], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """What a source is whose records are changes of the rows of a table.

    `columns` are added to the declared ones, as DDL. `key` identifies a row; empty: rows are only added. `sequence_by`
    orders the changes of a key, `changed_at` has their time. `delete_when` is true for a change that deletes its row,
    which has no columns beside the key. `exclude`: columns that a table of the rows does not have.
    `unavailable`: the column with the names of columns that were not sent because they did not change (NULL: all were
    sent); empty: there is none. `insert_when`: true for a row without a stored value. `truncate_when`: true for a
    record without columns that deletes all older rows; empty: there are none. `shows_declaration`: whether records
    show the key and the columns of the table.
    """

    columns: str
    key: tuple[str, ...]
    sequence_by: tuple[str, ...]
    changed_at: str
    delete_when: str
    exclude: tuple[str, ...]
    unavailable: str = ""
    insert_when: str = "false"
    truncate_when: str = ""
    shows_declaration: bool = False


class Poller(Protocol):
    """Asks again and again where sources end, without Java; what it needs for that is kept between."""

    def ends(self, specs: Mapping[str, SourceSpec], place: Place, /) -> Mapping[str, Hashable]:
        """Return, by any name, a value that differs when there is something new; omitted: nobody can tell now."""

    @property
    def waits(self) -> bool: ...

    def wait(self, seconds: float, /) -> bool:
        """Return whether something came, in at most so many seconds; at once if nobody can tell."""


class UnreadTimes(Protocol):
    """Asks again and again when the oldest unread records were written, without Java; used by one thread."""

    def oldest(
        self, spec: SourceSpec, place: Place, offsets: Sequence[Mapping[str, Any]], now: ClusterOffsets, /
    ) -> Mapping[tuple[str, int], float]:
        """Return the times in seconds since 1970, by topic and partition; omitted: nothing is unread, or not known."""

    def close(self) -> None: ...


def _nothing_known(_: SourceSpec, __: Place) -> KnownNow:
    return KnownNow()


def _no_topics(_: Mapping[str, SourceSpec], __: Place) -> Mapping[str, ClusterOffsets]:
    return {}


def _resumes(
    _: SourceSpec, __: Mapping[str, Any], ___: Sequence[Mapping[str, Any]], ____: ClusterOffsets
) -> Resumption:
    return Resumption()


def _another_start(_: SourceSpec, __: Mapping[str, Any], ___: ClusterOffsets) -> bool:
    return False


def _read_before(_: Mapping[str, Any], __: ClusterOffsets) -> bool:
    return False


def _not_counted(_: ClusterOffsets, __: Sequence[Mapping[str, Any]]) -> int | None:
    return None


def _as_declared(_: SparkSession, spec: SourceSpec, __: Place) -> SourceSpec:
    return spec


def _never(_: SourceSpec) -> bool:
    return False


def _rows(_: SourceSpec) -> ChangeFeed | None:
    return None


def _no_records(_: SparkSession, __: SourceSpec, ___: Place) -> list[tuple[bytes | None, bytes | None]]:
    return []


def _no_error(_: str) -> EngineError | None:
    return None


def _unnamed(_: SourceSpec) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """What a kind of source answers, for one of its formats.

    What its records are:

    Attributes:
        files: how its files are read; Spark notes them in its log when it lists them. None: it has none.
        connects: records of a server, whose address and credentials a connection of the target has.
        fixes_start: records at offsets, the first of which a checkpoint has before anything is read.
        table: how the Iceberg table that its location names is read; None: it is none.

    What may be declared:
        closed_options: its options are a closed list; `allow_unknown_options` means nothing.
        rows_wait: there may be unread data and a newest row; they are not made when they are read.
        columns_by: how its columns are found.
        caseless: the names of its columns have no letter case: they are found in any, or by position.
        marks_bad: its frames have the column that marks records which cannot be read.
        topic_names: of its topics, as they are declared; empty: they are not named.
        change_feed: what its records are changes of; None: they are rows.

    Where a stream of it begins and continues:
        identity: what distinguishes it in a checkpoint, from its format and settings alone.
        placed: the same of where it is, with places resolved; None: `location` says that.
        begun_at: the source with a stream that begins at a time (milliseconds since 1970), or, with None, with the
            first record; None in its place: it cannot begin at a time.
        skipped_by: the part of `_metadata` that is compared with that time, where that is how it begins there.
        start_is_repeatable: where it begins is found again from what is there, as long as nothing was read.
        rereads: what a micro-batch has read is there again for certain when it is repeated.

    What is known without Spark:
        known_now: what there is of it, after `check`.
        topics_now: of several sources, by any name, what their topics have; those that only Java can ask are omitted.
        resumption: what a stream finds before it resumes, given what was remembered, where its checkpoint is and what
            its topics have; raises what a build would.
        same_start: a stream reads the topics of its last start, given what was remembered then and what they have.
        is_new: a stream has read nothing of what is there, given what was remembered at its last start and the topics:
            no record of them can be in its table.
        unread: how many offsets a stream has not read, given the topics and where its checkpoint is.
        waiting: how many records a stream has not read, given `position` and where its checkpoint is; None in its
            place: nobody can tell.
        unread_times: makes what asks when the oldest unread records were written, given the source, where its
            checkpoint is and its topics; None: nobody can tell.
        committed_at: when rows were last added; None in its place: that takes a look at the rows.
        folder: on this machine, for polls.
        poller: makes what asks for its end, for polls; None: nobody can tell.
        knows_columns: without a schema its columns are known, from the kind or the catalog, whenever a plan is made.
        columns_now: name, type and description of its columns, where that takes no look at records.

    What Spark is asked for:
        until_now: the source with its end, however often it is read.
        records_between: the source with what a stream has read, given where its checkpoint began and is; raises
            `source-gap`. None in its place: that cannot be re-read in this way.
        newest: the newest part of it, enough to find its newest time; None: there is nothing. None in its place: all.
        sampled: the columns of a sample of its records; None in its place: those that a batch has.
        change_records: keys and values of some records, where these are changes of rows.
        told_by_worker: the error of its own that a worker of Spark ended with, from Spark's text of it.
    """

    files: FileTraits | None = None
    connects: bool = False
    fixes_start: bool = False
    table: TableTraits | None = None

    closed_options: bool = False
    rows_wait: bool = True
    columns_by: ColumnsBy = ColumnsBy.UNKNOWN
    caseless: bool = False
    marks_bad: bool = True
    topic_names: Callable[[SourceSpec], tuple[str, ...]] = _unnamed
    change_feed: Callable[[SourceSpec], ChangeFeed | None] = _rows

    identity: Callable[[str, Mapping[str, Any]], StreamIdentity] = of_settings
    placed: Callable[[SourceSpec, Place], Mapping[str, Any]] | None = None
    begun_at: Callable[[SourceSpec, int | None], SourceSpec] | None = None
    skipped_by: str = ""
    start_is_repeatable: bool = False
    rereads: Callable[[SourceSpec], bool] = _never

    known_now: Callable[[SourceSpec, Place], KnownNow] = _nothing_known
    topics_now: Callable[[Mapping[str, SourceSpec], Place], Mapping[str, ClusterOffsets]] = _no_topics
    resumption: Callable[[SourceSpec, Mapping[str, Any], Sequence[Mapping[str, Any]], ClusterOffsets], Resumption] = (
        _resumes
    )
    same_start: Callable[[SourceSpec, Mapping[str, Any], ClusterOffsets], bool] = _another_start
    is_new: Callable[[Mapping[str, Any], ClusterOffsets], bool] = _read_before
    unread: Callable[[ClusterOffsets, Sequence[Mapping[str, Any]]], int | None] = _not_counted
    waiting: Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], int] | None = None
    unread_times: Callable[[], UnreadTimes] | None = None
    committed_at: Callable[[SourceSpec, Place], datetime | None] | None = None
    folder: Callable[[SourceSpec, Place], str | None] | None = None
    poller: Callable[[], Poller] | None = None
    knows_columns: bool = False
    columns_now: Callable[[SourceSpec, Place], Iterable[tuple[str, str, str]] | None] | None = None

    until_now: Callable[[SparkSession, SourceSpec, Place], SourceSpec] = _as_declared
    records_between: (
        Callable[[SparkSession, SourceSpec, Place, Mapping[str, Any], Mapping[str, Any]], SourceSpec] | None
    ) = None
    newest: Callable[[SparkSession, SourceSpec, Place], DataFrame | None] | None = None
    sampled: Callable[[SparkSession, SourceSpec, Place], StructType] | None = None
    change_records: Callable[[SparkSession, SourceSpec, Place], list[tuple[bytes | None, bytes | None]]] = _no_records
    told_by_worker: Callable[[str], EngineError | None] = _no_error

    @property
    def reads_files(self) -> bool:
        return self.files is not None

    @property
    def is_table(self) -> bool:
        return self.table is not None


# Of a format that no module reads, and of a module that says nothing.
UNKNOWN = SourceTraits()
