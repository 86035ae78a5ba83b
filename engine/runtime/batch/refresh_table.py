"""Refreshing a batch table from the rows of its inputs that changed: nothing, affected partitions, or affected keys."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import InputState, follow
from engine.lake.changes.arrow_changes import DifferingFiles, NetRows, differing_files
from engine.lake.changes.snapshot_changes import SIDE, ChangedFiles, changed_files, comparable, forget, net_changes
from engine.lake.lake_reader import Lake
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, plain
from engine.runtime.batch.affected_keys import affected_keys
from engine.runtime.batch.affected_partitions import affected_partitions
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, no_commit, state_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Under `auto` all is computed where more rows would be read to find the changes than this part of the rows there are.
_MOST_READ = 0.5
# Small tables are compared whatever part of them changed.
_FEW_ROWS = 100_000


def affected(
    session: SparkSession,
    lake: Lake,
    manifest: Manifest,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    stack: ExitStack,
) -> Affected:
    """Find what the changes of a model's inputs affect.

    Args:
        session: the model's own, with its inputs registered.
        lake: the catalog.
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
    reading = _Reading(session, lake, manifest, stack)
    found_files = {plain(one.view): reading.files(one) for one in choice.inputs if one.changed}
    files = {view: differing for view, differing in found_files.items() if not differing.none}
    read = sum(one.rows for one in files.values())
    rows = sum(one.total for one in files.values())
    if auto and read > max(_FEW_ROWS, _MOST_READ * rows):
        raise FullRefreshError(f"{read:,} rows are in files that changed, of {rows:,}")
    changed, few = [], True
    for one in choice.inputs:
        view = plain(one.view)
        if view in files and (found := reading.net_rows(one, files[view])) is not None:
            changed.append(view)
            few = few and found.few
            found.removed.createOrReplaceTempView(state_name(choice, view, InputState.REMOVED))
            found.added.createOrReplaceTempView(state_name(choice, view, InputState.ADDED))
    if not changed:
        return Affected(None, no_commit, f"no column that it reads changed ({read:,} rows compared)")
    if choice.unfollowed:
        # A table without partitions that has no keys was never meant to be refreshed in part.
        raise FullRefreshError(choice.unfollowed, said=bool(model.write.partition_by))
    query = follow(model.sql, {plain(one.view): one.columns for one in choice.inputs})
    _register(session, manifest, choice)
    # The registered inputs have the types of those that are compared.
    types = {field.name.lower(): field.dataType.simpleString() for field in session.sql(model.sql).schema.fields}
    changes = FollowedChanges(session, lake, model, choice, query, tuple(changed), table, types, few)
    return affected_partitions(changes) if choice.partitions else affected_keys(changes, stack)


@dataclass(frozen=True, slots=True)
class _Net:
    """The rows by which an input differs; `few`: they were compared in this process."""

    removed: DataFrame
    added: DataFrame
    few: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the changes of inputs are read: few plain rows in this process, all else by Spark.

    Attributes:
        session: the model's own.
        lake: the catalog.
        manifest: the compiled project.
        stack: releases what is read.
    """

    session: SparkSession
    lake: Lake
    manifest: Manifest
    stack: ExitStack

    def files(self, one: InputChange) -> DifferingFiles | ChangedFiles:
        """The files by which an input differs."""
        node = _table(self.manifest, one)
        found = differing_files(self.lake, node.relation.schema, node.relation.name, one.before, one.after)
        return self._in_java(one) if found is None else found

    def _in_java(self, one: InputChange) -> ChangedFiles:
        found = changed_files(self.session, _table(self.manifest, one).relation.sql, one.before, one.after)
        self.stack.callback(forget, self.session, found)
        return found

    def net_rows(self, one: InputChange, files: DifferingFiles | ChangedFiles) -> _Net | None:
        """The rows that were removed and those that were added, by the columns that are read; None: there are none.

        Raises:
            FullRefreshError: they cannot be compared.
        """
        frame = self.session.table(_table(self.manifest, one).relation.sql)
        types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
        odd = [name for name in one.columns if not comparable(types[name.lower()])]
        if odd:
            raise FullRefreshError(f"the values of '{one.name}.{odd[0]}' ({types[odd[0].lower()]}) cannot be compared")
        # A query that reads no column counts rows.
        columns = one.columns or (frame.columns[0],)
        if isinstance(files, DifferingFiles):
            if (net := files.net_rows(columns)) is not None:
                return None if net.none else self._net(net, frame.select(*map(quoted, columns)).schema)
            files = self._in_java(one)
        rows = net_changes(self.session, files, columns).persist()
        self.stack.callback(rows.unpersist)
        if rows.isEmpty():
            return None
        removed, added = (rows.where(f"{SIDE} {sign} 0").drop(SIDE) for sign in "<>")
        return _Net(removed, added, few=False)

    def _net(self, net: NetRows, schema: StructType) -> _Net:
        """The rows in Spark: a relation that is in its plan, of which no job is needed to look at it."""
        from pyspark.sql.types import StructField, StructType

        # Earlier rows may lack what is required by now.
        fields = StructType([StructField(field.name, field.dataType) for field in schema.fields])
        make = self.session.createDataFrame
        return _Net(make(net.removed, fields), make(net.added, fields), few=True)


def _table(manifest: Manifest, one: InputChange) -> Model:
    node = manifest.nodes[one.node]
    if not isinstance(node, Model):
        raise TypeError(one.node)
    return node


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    """Register the inputs as they were before and as they are now."""
    for one in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, one.before), (InputState.AFTER, one.after)):
            frame = session.sql(f"SELECT * FROM {_table(manifest, one).relation.sql} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            kept = frame.select(*map(quoted, one.columns)) if one.columns else frame
            kept.createOrReplaceTempView(state_name(choice, plain(one.view), state))
