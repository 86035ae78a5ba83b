"""Writing tables through Spark: creation, marked commits, replacement.

Rows are written into data files first and committed by us, in one commit that carries `engine.*` markers in its
snapshot's summary; they decide after a crash whether a micro-batch has reached the table.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake import table_fence, table_replacement
from engine.lake.commit_guard import ExpectedTable, Guard, guard
from engine.lake.commits import (
    STAGED,
    STAGED_LAYOUT,
    Commit,
    batch_of,
    commit_with_retries,
    current_commit,
    retry_replacement,
)
from engine.lake.table_fence import Fence
from engine.lake.table_layout import TableLayout, builder, iceberg_schema
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals.handles import activate, each, java_session, jvm_of, static_call

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.state.lease import Lease

_STAGED = "#staged-"
_STAGED_NAME = re.compile(r"`default_rewrite_catalog`\.`([^`#]+)" + _STAGED + "[0-9a-f]+`")
_SUMMARY = "snapshot-property."


def literal(text: str) -> str:
    """A text as a Spark SQL literal, for statements that take no parameters; read with the settings that are pinned."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def create_namespace(session: SparkSession, catalog: str, schema: str) -> None:
    levels = schema.split(".")
    for depth in range(len(levels)):
        name = ".".join(f"`{level}`" for level in levels[: depth + 1])
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS `{catalog}`.{name}")


def create_table(session: SparkSession, relation: str, frame: DataFrame, layout: TableLayout) -> None:
    builder(session, relation, frame, layout).create()
    kill_points.reach("created", relation)


def recreate_table(
    session: SparkSession, relation: str, frame: DataFrame, layout: TableLayout, lease: Lease | None
) -> None:
    """Make an empty table with the columns of a frame; one without rows that exists stays the same table.

    Raises StateError: `lease-lost`; nothing was changed.
    """
    table_replacement.make_empty(session, relation, frame, layout, Fence(lease) if lease is not None else None)
    kill_points.reach("created", relation)


def add_columns(relation: str, frame: DataFrame) -> None:
    session = frame.sparkSession
    change = load(session, relation).updateSchema().caseSensitive(False)
    change.unionByNameWith(iceberg_schema(session, frame)).commit()


def fitting(frame: DataFrame, relation: str) -> DataFrame:
    columns = load(frame.sparkSession, relation).schema().columns()
    table_columns = {str(column.name()).lower() for column in columns}
    return frame.drop(*(name for name in frame.columns if name.lower() not in table_columns))


def set_properties(session: SparkSession, relation: str, properties: Mapping[str, str]) -> None:
    update = load(session, relation).updateProperties()
    for key, value in properties.items():
        update.set(key, value)
    update.commit()


def properties(session: SparkSession, relation: str) -> dict[str, str] | None:
    if not session.catalog.tableExists(relation):
        return None
    try:
        return {str(key): str(text) for key, text in dict(load(session, relation).properties()).items()}
    except spark_exceptions():
        return {}


def drop_table(session: SparkSession, relation: str) -> None:
    session.sql(f"DROP TABLE IF EXISTS {relation} PURGE")


def stage(frame: DataFrame, relation: str, options: Mapping[str, str] | None = None) -> Staged:
    """Write the rows of a frame into data files of a table, without a commit: nobody sees them yet.

    Rows are distributed and ordered as the table demands. It is Iceberg's way of rewriting files, used for an
    append: the number of rows, and what the execution counted, are known before the commit, and a batch without
    rows commits nothing, at the price of a plain append (a cached batch costs a fifth more, measured).
    """
    return stage_in(frame, load(frame.sparkSession, relation), relation, options or {})


def stage_in(frame: DataFrame, table: Any, relation: str, options: Mapping[str, str]) -> Staged:
    session = frame.sparkSession
    spark: Any = jvm_of(session).org.apache.iceberg.spark
    activate(session)
    files, tables = spark.FileRewriteCoordinator.get(), tables_by_name(session)
    # The name is in Spark's errors; `plain_name` takes the rest out of them again.
    name = f"{relation.replace('`', '')}{_STAGED}{uuid.uuid4().hex}"
    tables.add(name, table)
    try:
        frame.write.format("iceberg").options(**options).mode("append").save(name)
        summary = {key.removeprefix(_SUMMARY): text for key, text in options.items() if key.startswith(_SUMMARY)}
        return Staged(session, table, tuple(each(files.fetchNewFiles(table, name))), summary)
    finally:
        tables.remove(name)
        files.clearRewrite(table, name)


def tables_by_name(session: SparkSession) -> Any:
    """Iceberg's tables by name, in Java; the class has a static `get` and an ordinary one."""
    return static_call(session, "org.apache.iceberg.spark.SparkTableCache", "get")


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files that are written and not committed; `summary` is what the commit says beside the markers."""

    session: SparkSession
    table: Any
    files: tuple[Any, ...]
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(int(file.recordCount()) for file in self.files)

    def discard(self) -> None:
        """Remove them; only before a commit was tried."""
        for file in self.files:
            self.table.io().deleteFile(file.location())


def append(
    staged: Staged, markers: Mapping[str, str], branch: str | None = None, expected: ExpectedTable | None = None
) -> Commit | None:
    """Append staged files in one marked commit, to main or a branch; None, and no commit, if there are none.

    Raises:
        RunError: `commit-conflict`.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    _reach("written", staged, markers)
    if not staged.files:
        return None
    guarded = guard(staged.session, staged.table, branch, expected, markers)

    def new_change() -> Any:
        change = guarded.validated(staged.table.newAppend())
        # A branch that is missing begins where main is.
        return change if branch is None else change.toBranch(branch)

    return _commit_files(staged, markers, guarded, new_change, add="appendFile")


def overwrite(staged: Staged, markers: Mapping[str, str], expected: ExpectedTable | None = None) -> Commit | None:
    """Put staged files in place of all rows, in one marked commit; None, and no commit, if there is nothing in both.

    Raises:
        RunError: `commit-conflict`.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    _reach("written", staged, markers)
    guarded = guard(staged.session, staged.table, None, expected, markers)
    snapshot = staged.table.currentSnapshot()
    if not staged.files and (snapshot is None or snapshot.summary().get("total-data-files") == "0"):
        return None

    def new_change() -> Any:
        expressions: Any = jvm_of(staged.session).org.apache.iceberg.expressions.Expressions
        return guarded.validated(staged.table.newOverwrite()).overwriteByRowFilter(expressions.alwaysTrue())

    return _commit_files(staged, markers, guarded, new_change)


def overwrite_partitions(staged: Staged, markers: Mapping[str, str], branch: str | None = None) -> Commit | None:
    """Put staged files in place of the partitions that they fall into; None, and no commit, if there are none.

    It is committed to main or a branch; one that is missing begins where main is.
    """
    _reach("written", staged, markers)
    if not staged.files:
        return None
    guarded = guard(staged.session, staged.table, branch, None, markers)

    def new_change() -> Any:
        change = guarded.validated(staged.table.newReplacePartitions())
        return change if branch is None else change.toBranch(branch)

    return _commit_files(staged, markers, guarded, new_change)


def exchange(
    staged: Staged, snapshot: int, markers: Mapping[str, str], expected: ExpectedTable | None = None
) -> Commit:
    """Put staged files, if there are any, in place of those that a snapshot added, in one marked commit.

    Raises:
        RunError: `commit-conflict`.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    guarded = guard(staged.session, staged.table, None, expected, markers)

    def new_change() -> Any:
        change = guarded.validated(staged.table.newOverwrite())
        for file in staged.table.snapshot(snapshot).addedDataFiles(staged.table.io()):
            change.deleteFile(file)
        return change

    return _commit_files(staged, markers, guarded, new_change)


def _commit_files(
    staged: Staged, markers: Mapping[str, str], guarded: Guard, new_change: Callable[[], Any], add: str = "addFile"
) -> Commit:
    def attempt() -> None:
        change = new_change()
        for file in staged.files:
            getattr(change, add)(file)
        commit_marked(change, staged, markers)

    commit = commit_with_retries(staged.table, markers, attempt, staged.rows, guarded)
    _reach("appended", staged, markers)
    return commit


def replace(
    frame: DataFrame,
    relation: str,
    layout: TableLayout,
    markers: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Commit:
    """Recreate a table from a frame, in one marked commit: rows, columns, partitioning, order and properties at once.

    Readers see the old or the new table. An earlier table keeps its UUID; staged rows in it for tests go with the
    rows that they were to follow. A commit is made without rows too. Where the catalog is busy all of it is done again,
    a few times, rows included: files of an attempt before belong to a table that was never made.
    """
    session = frame.sparkSession
    kill_points.reach("replacing", relation)

    def attempt() -> Commit:
        checked_table = table_fence.check_before_replacement(session, relation, markers)
        change = table_replacement.begin_replacement(session, relation, frame, layout, new=checked_table.is_new)
        staged = stage_in(frame, change.table(), relation, options or {})
        added = change.newFastAppend()
        for file in staged.files:
            added.appendFile(file)
        commit_marked(added, staged, markers)
        if change.table().refs().containsKey(STAGED):
            change.manageSnapshots().removeBranch(STAGED).commit()
        obsolete = [
            key for key in (STAGED_LAYOUT, *layout.absent_properties()) if change.table().properties().containsKey(key)
        ]
        if obsolete:
            update = change.updateProperties()
            for key in obsolete:
                update.remove(key)
            update.commit()
        checked_table.commit(change)
        return current_commit(load(session, relation), staged.rows)

    commit = retry_replacement(attempt, lambda: load(session, relation), markers)
    kill_points.reach("replaced", relation)
    return commit


def _reach(point: str, staged: Staged, markers: Mapping[str, str]) -> None:
    name = str(staged.table.name())
    kill_points.reach(point, name, batch_of(markers), name)


def commit_marked(change: Any, staged: Staged, markers: Mapping[str, str]) -> None:
    for key, value in staged.summary.items():
        change.set(key, value)
    for key, value in markers.items():
        change.set(f"engine.{key}", value)
    change.commit()


def plain_name(text: str) -> str:
    return _STAGED_NAME.sub(r"\1", text)


def table_uuid(session: SparkSession, relation: str) -> str:
    return str(load(session, relation).uuid())


def load(session: SparkSession, relation: str) -> Any:
    activate(session)
    jvm = jvm_of(session)
    util = jvm.org.apache.iceberg.spark.Spark3Util
    return util.loadIcebergTable(java_session(session), relation.replace("`", ""))
