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
from engine.lake.commits import Commit, commit_with_retries
from engine.lake.lake_reader import Lake
from engine.lake.table_writer import Staged, commit_marked
from engine.relations import Partition
from engine.spark.internals.handles import each, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# More values than this are in most of the manifests of a table.
_MAX_VALUES = 100
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "date"})


@dataclass(frozen=True, slots=True)
class FieldValues:
    """`texts` are as `ListedFile` has them; None: NULL."""

    part: Partition
    kind: str
    texts: Sequence[str | None]


def replace_files(
    staged: Staged,
    replaced_paths: Collection[str],
    markers: Mapping[str, str],
    expected: ExpectedTable,
    field_values: FieldValues | None = None,
) -> Commit:
    """Put staged files in place of data files of the expected snapshot, in one marked commit.

    It is made onto that snapshot only: a file that was compacted meanwhile would stay beside its new rows.

    Raises:
        RunError: `commit-conflict`; nothing was committed.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    table, snapshot = staged.table, expected.snapshot
    condition = partition_condition(staged.session, table, field_values) if field_values is not None else None
    files = _files(table, snapshot, replaced_paths, condition)
    if len(files) != len(set(replaced_paths)):
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

    return commit_with_retries(table, markers, attempt, staged.rows, guarded)


def _files(table: Any, snapshot: int | None, replaced_paths: Collection[str], condition: Any | None) -> list[Any]:
    scan = table.newScan().useSnapshot(snapshot)
    tasks = each((scan if condition is None else scan.filter(condition)).planFiles())
    return [file for task in tasks if str((file := task.file()).location()) in replaced_paths]


def partition_condition(session: SparkSession, table: Any, field_values: FieldValues) -> Any | None:
    texts = [text for text in field_values.texts if text is not None]
    if (
        len(texts) < len(field_values.texts)
        or len(texts) > _MAX_VALUES
        or field_values.kind not in {*_NUMBERS, "string"}
    ):
        return None
    expressions: Any = jvm_of(session).org.apache.iceberg.expressions.Expressions
    schema, part = table.schema(), field_values.part
    column = str(schema.findColumnName(schema.caseInsensitiveFindField(part.column).fieldId()))
    if part.transform == "identity":
        term = expressions.ref(column)
    elif part.number is None:
        term = getattr(expressions, part.transform)(column)
    else:
        term = getattr(expressions, part.transform)(column, part.number)
    condition = expressions.alwaysFalse()
    for text in texts:
        equal = expressions.equal(term, int(text) if field_values.kind in _NUMBERS else text)
        condition = getattr(expressions, "or")(condition, equal)
    return condition


def _moved(table: Any, expected: ExpectedTable) -> RunError:
    message = f"{table.name()} was changed by another writer while '{expected.model}' was refreshed"
    return RunError("commit-conflict", message, f"Build again: engine build -s {expected.model}", node=expected.model)


# PyIceberg lists some thousands of files in a second; Spark takes longer for few of them.
_MAX_FILES = 5_000
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
            listed_snapshot = table.snapshot_by_id(snapshot) if table is not None else None
            if table is None or listed_snapshot is None:
                return None
            summary: Any = listed_snapshot.summary
            if summary is None or int(summary["total-data-files"] or 0) > _MAX_FILES:
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
