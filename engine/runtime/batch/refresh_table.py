"""Refreshing a batch table from the rows of its inputs that changed: nothing, affected partitions, or affected keys."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import InputState, follow
from engine.lake.changes.snapshot_changes import SIDE, ChangedFiles, changed_files, comparable, forget, net_changes
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, plain
from engine.runtime.batch.affected_keys import affected_keys
from engine.runtime.batch.affected_partitions import affected_partitions
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, no_commit, state_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Under `auto` all is computed where more rows would be read to find the changes than this part of the rows there are.
_MOST_READ = 0.5
# Small tables are compared whatever part of them changed.
_FEW_ROWS = 100_000


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
        return Affected(None, no_commit, f"no column that it reads changed ({read:,} rows compared)")
    if choice.unfollowed:
        # A table without partitions that has no keys was never meant to be refreshed in part.
        raise FullRefreshError(choice.unfollowed, said=bool(model.write.partition_by))
    query = follow(model.sql, {plain(one.view): one.columns for one in choice.inputs})
    _register(session, manifest, choice)
    # The registered inputs have the types of those that are compared.
    types = {field.name.lower(): field.dataType.simpleString() for field in session.sql(model.sql).schema.fields}
    changes = FollowedChanges(session, model, choice, query, tuple(changed), table, types)
    return affected_partitions(changes) if choice.partitions else affected_keys(changes, stack)


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
            side.createOrReplaceTempView(state_name(choice, view, state))
    return changed


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    """Register the inputs as they were before and as they are now."""
    for one in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, one.before), (InputState.AFTER, one.after)):
            frame = session.sql(f"SELECT * FROM {_relation(manifest, one)} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            kept = frame.select(*map(quoted, one.columns)) if one.columns else frame
            kept.createOrReplaceTempView(state_name(choice, plain(one.view), state))
