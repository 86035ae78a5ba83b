"""Refreshing a batch table from the rows of its inputs that changed: nothing, or the affected partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import FollowedQuery, InputState, follow
from engine.lake import table_writer as lake
from engine.lake.changes.file_replacement import replace_files
from engine.lake.changes.snapshot_changes import SIDE, ChangedFiles, changed_files, comparable, forget, net_changes
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import same_partitions
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, plain
from engine.runtime.batch.partition_values import field_sql, partition_values
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.prepared_batch import Committing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Under `auto` all is computed where more rows would be read to find the changes than this part of the rows there are.
_MOST_READ = 0.5
# Small tables are compared whatever part of them changed.
_FEW_ROWS = 100_000
# Partitions that are named in conditions; more are not a small part of a table.
_MOST_PARTITIONS = 1_000
_MOST_REPLACED, _FEW_PARTITIONS = 0.5, 4


class FullRefreshError(Exception):
    """The table has to be computed in full; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Affected:
    """What is to be computed again.

    Attributes:
        frame: the new rows of the partitions; None: no row that is read changed.
        commit: puts them into the table.
        note: what is refreshed, for the line of the build.
    """

    frame: DataFrame | None
    commit: Committing
    note: str


def affected(
    session: SparkSession, manifest: Manifest, model: Model, choice: RefreshChoice, table: TableFacts, stack: ExitStack
) -> Affected:
    """Find what the changes of a model's inputs affect.

    Args:
        session: the model's own, with its inputs registered.
        manifest: the compiled project.
        model: a batch table.
        choice: what the plan found.
        table: of the model, as it was written.
        stack: releases what was read, once the rows are committed.

    Raises:
        FullRefreshError: all of it has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    auto = model.write.refresh is Refresh.AUTO
    files = _files(session, manifest, choice, stack)
    read = sum(one.rows for one in files.values())
    rows = sum(one.total for one in files.values())
    if auto and read > max(_FEW_ROWS, _MOST_READ * rows):
        raise FullRefreshError(f"{read:,} rows are in files that changed, of {rows:,}")
    changed = _changed(session, manifest, choice, files, stack)
    if not changed:
        return Affected(None, _no_commit, f"no column that it reads changed ({read:,} rows compared)")
    if not choice.partitions:
        raise FullRefreshError(choice.unfollowed)
    columns = {plain(one.view): one.columns for one in choice.inputs}
    query = follow(model.sql, columns)
    _register(session, manifest, choice)
    return _partitions(session, model, choice, query, changed, table)


def _no_commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
    del rows, markers
    return None


def _files(
    session: SparkSession, manifest: Manifest, choice: RefreshChoice, stack: ExitStack
) -> dict[str, ChangedFiles]:
    """The files by which the inputs differ, by view; those whose file plans are the same are left out."""
    found = {}
    for one in choice.inputs:
        if one.changed:
            files = changed_files(session, _relation(manifest, one), one.before, one.after)
            stack.callback(forget, session, files)
            if not files.none:
                found[plain(one.view)] = files
    return found


def _relation(manifest: Manifest, one: InputChange) -> str:
    node = manifest.nodes[one.node]
    if not isinstance(node, Model):
        raise TypeError(one.node)
    return node.relation.sql


def _changed(
    session: SparkSession,
    manifest: Manifest,
    choice: RefreshChoice,
    files: Mapping[str, ChangedFiles],
    stack: ExitStack,
) -> list[str]:
    """Register the rows that were removed and added, by input; return the inputs of which there are any."""
    changed = []
    for one in choice.inputs:
        view = plain(one.view)
        if view not in files:
            continue
        frame = session.table(_relation(manifest, one))
        types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
        odd = [name for name in one.columns if not comparable(types[name.lower()])]
        if odd:
            raise FullRefreshError(f"the values of '{one.name}.{odd[0]}' ({types[odd[0].lower()]}) cannot be compared")
        # A query that reads no column counts rows.
        columns = one.columns or (frame.columns[0],)
        rows = net_changes(session, files[view], columns).persist()
        stack.callback(rows.unpersist)
        if rows.isEmpty():
            continue
        changed.append(view)
        for state, sign in ((InputState.REMOVED, "<"), (InputState.ADDED, ">")):
            side = rows.where(f"{SIDE} {sign} 0").drop(SIDE)
            side.createOrReplaceTempView(_name(choice, view, state))
    return changed


def _name(choice: RefreshChoice, view: str, state: InputState) -> str:
    """The temporary view of an input in one of its states."""
    number = [plain(one.view) for one in choice.inputs].index(view)
    return f"__{state.value}_{number}"


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    """Register the inputs as they were before and as they are now."""
    for one in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, one.before), (InputState.AFTER, one.after)):
            frame = session.sql(f"SELECT * FROM {_relation(manifest, one)} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            kept = frame.select(*map(quoted, one.columns)) if one.columns else frame
            kept.createOrReplaceTempView(_name(choice, plain(one.view), state))


def _partitions(
    session: SparkSession,
    model: Model,
    choice: RefreshChoice,
    query: FollowedQuery,
    changed: Sequence[str],
    table: TableFacts,
) -> Affected:
    """The partitions of the table that hold rows that may have changed, with literal conditions."""
    relation, parts, catalog = model.relation.sql, model.write.partition_by, model.relation.catalog
    current = lake.load(session, relation)
    if not same_partitions(current, table_setup.layout(model, 1)):
        raise FullRefreshError("the table is not partitioned as 'partition_by' declares")
    keys = list(dict.fromkeys(part.column.lower() for part in parts))
    found = session.sql(query.search(keys, changed, lambda view, state: _name(choice, view, state)))
    values = partition_values(found, parts, catalog, _MOST_PARTITIONS)
    if values is None:
        raise FullRefreshError(f"more than {_MOST_PARTITIONS:,} partitions are affected")
    listed = session.sql(f"SELECT file_path, spec_id, record_count, partition FROM {relation}.data_files")  # noqa: S608 - quoted
    listed = listed.persist()
    try:
        if listed.where(f"spec_id <> {int(current.spec().specId())}").limit(1).count():
            raise FullRefreshError("the table has files of an earlier partitioning")
        total = listed.select("partition").distinct().count()
        if not values.values:
            return Affected(None, _no_commit, f"no row of it is affected, 0 of {total:,} partitions")
        names = [f"partition.{quoted(part.field_name)}" for part in parts]
        gone = listed.where(values.where(names)).select("file_path", "partition").collect() if total else []
    finally:
        listed.unpersist()
    replaced = len({row["partition"] for row in gone})
    if model.write.refresh is Refresh.AUTO and total > _FEW_PARTITIONS and replaced > _MOST_REPLACED * total:
        raise FullRefreshError(f"{replaced:,} of {total:,} partitions are affected")
    frame = _now(session, model, choice)
    types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    exact = values.where([field_sql(part, catalog) for part in parts])
    ranges = values.ranges([types[part.column.lower()] for part in parts])
    frame = frame.where(f"({exact})" + (f" AND {ranges}" if ranges else ""))
    files = frozenset(row["file_path"] for row in gone)
    expected = ExpectedTable(model.name, table.uuid, table.snapshot)

    def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        staged = lake.stage(fitted, relation, model.write.write_options)
        if not staged.files and not files:
            return None
        return replace_files(staged, files, markers, expected)

    number = len(values.values)
    return Affected(frame, commit, f"refreshed {number:,} of {total + number - replaced:,} partitions")


def _now(session: SparkSession, model: Model, choice: RefreshChoice) -> DataFrame:
    """The query over its inputs as they are now, by the snapshots that are compared."""
    names = {one.view: _name(choice, plain(one.view), InputState.AFTER) for one in choice.inputs}
    return session.sql(model.sql_with(names))
