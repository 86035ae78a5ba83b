"""Replacing the data files of some partitions by staged files, in one marked commit.

The data files of a snapshot and their partitions, listed in this process: no job of Spark is started for them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, RunError
from engine.lake.commit_guard import ExpectedTable, guard
from engine.lake.commits import Commit, settled
from engine.lake.lake_reader import Lake
from engine.lake.table_writer import Staged, commit_marked
from engine.relations import Partition
from engine.spark.internals.handles import each, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# More values than this are in most of the manifests of a table.
_MOST_VALUES = 100
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "date"})


@dataclass(frozen=True, slots=True)
class FieldValues:
    """`texts` are as `ListedFile` has them; None: NULL."""

    part: Partition
    kind: str
    texts: Sequence[str | None]


def replace_files(
    staged: Staged,
    gone: Collection[str],
    markers: Mapping[str, str],
    expected: ExpectedTable,
    among: FieldValues | None = None,
) -> Commit:
    """Put staged files in place of data files of the expected snapshot, in one marked commit.

    It is made onto that snapshot only: a file that was compacted meanwhile would stay beside its new rows.

    Raises:
        RunError: `commit-conflict`; nothing was committed.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    table, snapshot = staged.table, expected.snapshot
    condition = partition_condition(staged.session, table, among) if among is not None else None
    files = _files(table, snapshot, gone, condition)
    if len(files) != len(set(gone)):
        raise RuntimeError(f"{table.name()} does not have all the files that are to be replaced")
    guarded = guard(staged.session, table, None, expected, markers)

    def attempt() -> None:
        if guarded.head != snapshot:
            raise _moved(table, expected)
        change = guarded.validated(table.newOverwrite(), exact=True)
        for file in files:
            change.deleteFile(file)
        for file in staged.files:
            change.addFile(file)
        commit_marked(change, staged, markers)

    return settled(table, markers, attempt, staged.rows, guarded)


def _files(table: Any, snapshot: int | None, gone: Collection[str], condition: Any | None) -> list[Any]:
    scan = table.newScan().useSnapshot(snapshot)
    tasks = each((scan if condition is None else scan.filter(condition)).planFiles())
    return [file for task in tasks if str((file := task.file()).location()) in gone]


def partition_condition(session: SparkSession, table: Any, among: FieldValues) -> Any | None:
    """Return Iceberg's expression for some values of a partition field; None: there is none for such values."""
    texts = [text for text in among.texts if text is not None]
    if len(texts) < len(among.texts) or len(texts) > _MOST_VALUES or among.kind not in {*_NUMBERS, "string"}:
        return None
    expressions: Any = jvm_of(session).org.apache.iceberg.expressions.Expressions
    schema, part = table.schema(), among.part
    column = str(schema.findColumnName(schema.caseInsensitiveFindField(part.column).fieldId()))
    if part.transform == "identity":
        term = expressions.ref(column)
    elif part.number is None:
        term = getattr(expressions, part.transform)(column)
    else:
        term = getattr(expressions, part.transform)(column, part.number)
    found = expressions.alwaysFalse()
    for text in texts:
        equal = expressions.equal(term, int(text) if among.kind in _NUMBERS else text)
        found = getattr(expressions, "or")(found, equal)
    return found


def _moved(table: Any, expected: ExpectedTable) -> RunError:
    message = f"{table.name()} was changed by another writer while '{expected.model}' was refreshed"
    return RunError("commit-conflict", message, f"Build again: engine build -s {expected.model}", node=expected.model)


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
