"""Computing again the rows of a table whose keys may have changed, and replacing the files that hold them.

Files are rewritten whole: what they hold of other keys is kept beside the new rows. Under `refresh: auto` all is
computed where that reads less; both are compared by the rows that their plans read.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from engine.lake import table_writer as lake
from engine.lake.changes.file_replacement import replace_files
from engine.lake.changes.read_files import forget_tasks, read_tasks, tasks_of
from engine.lake.changes.snapshot_changes import comparable
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.quoted_names import quoted
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, no_commit
from engine.runtime.batch.key_ranges import key_ranges
from engine.runtime.batch.rows_read import rows_read
from engine.runtime.sinks import table_setup

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Tables of fewer rows, with those of their inputs, are computed in full: some jobs more take longer than that.
_FEW_ROWS = 20_000_000
# All is computed where keys would read more than this part of it.
_MOST_READ = 0.5
# A row that is written costs as much as some that are read.
_WRITE = 2
_MOST_KEYS = 1_000_000


def affected_keys(changes: FollowedChanges, stack: ExitStack) -> Affected:
    """Find the keys that may have changed, and compute their rows.

    Raises:
        FullRefreshError: all of the table has to be computed, or it is quicker.
        PySparkException, Py4JError: Spark failed.
    """
    names = [key for key in changes.choice.keys if comparable(changes.types.get(key, "map"))]
    if not names:
        raise FullRefreshError("no column that says which rows belong together can be compared")
    found, files = changes.affected_keys(names), _files(changes)
    cost = _Cost(rows_read(changes.now()) + _WRITE * sum(files.values())) if changes.auto else None
    if cost is not None:
        cost.check(rows_read(found))
    keys = found.distinct().persist()
    stack.callback(keys.unpersist)
    number = keys.count()
    if not number:
        return Affected(None, no_commit, "no row of it is affected")
    if number > _MOST_KEYS:
        raise FullRefreshError(f"more than {_MOST_KEYS:,} keys are affected")
    ranges = key_ranges(keys)
    frame = changes.now(ranges.certain)
    frame = frame.where(ranges.where) if ranges.where else frame
    there = _there(changes, names, ranges.where)
    if cost is not None:
        cost.check(rows_read(found) + rows_read(frame) + (1 + _WRITE) * rows_read(there))
    held = frozenset(_held(there, keys)) if files else frozenset()
    shown = "1 key" if number == 1 else f"{number:,} keys"
    note = f"refreshed the rows of {shown}, in {len(held):,} of {len(files):,} files"
    return Affected(_having(frame, keys, "left_semi"), _commit(changes, keys, held, stack), note)


class _Cost:
    """What a full computation would read and write, in rows that are read."""

    def __init__(self, full: int) -> None:
        self.full = full
        if full < _FEW_ROWS:
            raise FullRefreshError(f"it is small ({full:,} rows with those that it reads)")

    def check(self, rows: int) -> None:
        """Check that following keys reads less.

        Raises:
            FullRefreshError: it does not.
        """
        if rows > _MOST_READ * self.full:
            raise FullRefreshError(f"by keys {rows:,} rows would be read, in full {self.full:,}")


def _having(frame: DataFrame, keys: DataFrame, how: str) -> DataFrame:
    """The rows of a frame that have one of some keys (`left_semi`), or none (`left_anti`)."""
    names = keys.columns
    other = keys.toDF(*(f"__key{number}" for number in range(len(names))))
    condition: Column | None = None
    for number, name in enumerate(names):
        equal = frame[quoted(name)].eqNullSafe(other[f"__key{number}"])
        condition = equal if condition is None else condition & equal
    return frame.join(other, condition, how)


def _files(changes: FollowedChanges) -> dict[str, int]:
    """The data files of the table, and their rows."""
    query = f"SELECT file_path, record_count FROM {changes.model.relation.sql}.data_files"  # noqa: S608 - quoted
    return {row["file_path"]: row["record_count"] for row in changes.session.sql(query).collect()}


def _there(changes: FollowedChanges, names: Sequence[str], ranges: str) -> DataFrame:
    """The key columns of the table, and the file of each row."""
    columns = ", ".join(map(quoted, names))
    there = changes.session.sql(f"SELECT {columns}, _file FROM {changes.model.relation.sql}")  # noqa: S608 - quoted
    return there.where(ranges) if ranges else there


def _held(there: DataFrame, keys: DataFrame) -> Iterator[str]:
    """Yield the data files that hold rows of the keys."""
    for row in _having(there, keys, "left_semi").select("_file").distinct().collect():
        yield row["_file"]


def _commit(changes: FollowedChanges, keys: DataFrame, files: frozenset[str], stack: ExitStack) -> Any:
    model, table = changes.model, changes.table
    expected = ExpectedTable(model.name, table.uuid, table.snapshot)

    def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        if files:
            fitted = fitted.unionByName(_kept(changes, keys, files, stack), allowMissingColumns=True)
        staged = lake.stage(fitted, model.relation.sql, model.write.write_options)
        if not staged.files and not files:
            return None
        return replace_files(staged, files, markers, expected)

    return commit


def _kept(changes: FollowedChanges, keys: DataFrame, files: frozenset[str], stack: ExitStack) -> DataFrame:
    """The rows of some files of the table that have none of the keys."""
    session, relation = changes.session, changes.model.relation
    table = lake.load(session, relation.sql)
    name = f"{relation.sql.replace('`', '')}#kept-{uuid.uuid4().hex}"
    there = read_tasks(session, table, tasks_of(table, changes.table.snapshot or 0, files), name)
    stack.callback(forget_tasks, session, table, name)
    return _having(there, keys, "left_anti")
