"""Refreshing a batch table from the rows of its inputs that changed: nothing, or the affected partitions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import InputState, follow_changes
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, unquoted_view
from engine.relations import quoted
from engine.runtime.batch.affected_partitions import affected_partitions
from engine.runtime.batch.followed_changes import (
    Affected,
    FollowedChanges,
    FullRefreshError,
    InputReading,
    no_commit,
    state_name,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Under `auto` all is computed where more rows would be read to find the changes than this part of the rows there are. A
# table of which no partition can be replaced gains only where nothing that it reads changed: less is tried for it.
_MAX_READ_SHARE, _MAX_READ_SHARE_UNFOLLOWED = 0.5, 0.1
# So few rows are always compared: that takes less than to write a table again without need, and whatever reads it.
_FEW_ROWS = 100_000


def find_affected(
    session: SparkSession,
    lake: Lake,
    manifest: Manifest,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    stack: ExitStack,
) -> Affected:
    """Find what the changes of a model's inputs affect.

    Raises:
        FullRefreshError: all of it has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    auto = model.write.refresh is Refresh.AUTO
    reading = InputReading(session, lake, manifest, stack)
    found_files = {unquoted_view(change.view): reading.files(change) for change in choice.inputs if change.changed}
    files = {view: differing for view, differing in found_files.items() if not differing.none}
    differing_rows = sum(change.rows for change in files.values())
    rows = sum(change.total for change in files.values())
    max_share = _MAX_READ_SHARE_UNFOLLOWED if choice.unfollowed else _MAX_READ_SHARE
    if auto and differing_rows > max(_FEW_ROWS, max_share * rows):
        raise FullRefreshError(f"{differing_rows:,} rows are in files that changed, of {rows:,}")
    changed_views, are_few = [], True
    for change in choice.inputs:
        view = unquoted_view(change.view)
        if view in files and (net_input := reading.net_rows(change, files[view])) is not None:
            changed_views.append(view)
            are_few = are_few and net_input.are_few
            net_input.removed.createOrReplaceTempView(state_name(choice, view, InputState.REMOVED))
            net_input.added.createOrReplaceTempView(state_name(choice, view, InputState.ADDED))
    if not changed_views:
        return Affected(None, no_commit, f"no column that it reads changed ({differing_rows:,} rows compared)")
    try:
        return _affected_rows(reading, model, choice, table, tuple(changed_views), few=are_few)
    except FullRefreshError as full:
        names = ", ".join(f"'{change.name}'" for change in choice.inputs if unquoted_view(change.view) in changed_views)
        raise FullRefreshError(f"rows of {names} changed, and {full.reason}") from full


def _affected_rows(
    reading: InputReading,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    changed_views: tuple[str, ...],
    *,
    few: bool,
) -> Affected:
    if choice.unfollowed:
        raise FullRefreshError(choice.unfollowed)
    session = reading.session
    query = follow_changes(model.sql, {unquoted_view(change.view): change.columns for change in choice.inputs})
    _register(session, reading.manifest, choice)
    # The registered inputs have the types of those that are compared.
    types = {field.name.lower(): field.dataType.simpleString() for field in session.sql(model.sql).schema.fields}
    return affected_partitions(
        FollowedChanges(session, reading.lake, model, choice, query, changed_views, table, types, few)
    )


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    for change in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, change.before), (InputState.AFTER, change.after)):
            frame = session.sql(f"SELECT * FROM {table_of(manifest, change).relation.sql} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            read_columns = frame.select(*map(quoted, change.columns)) if change.columns else frame
            read_columns.createOrReplaceTempView(state_name(choice, unquoted_view(change.view), state))
