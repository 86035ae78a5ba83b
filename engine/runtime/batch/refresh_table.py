"""Refreshing a batch table from the rows of its inputs that changed: nothing, or the affected partitions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Refresh
from engine.compile.refresh.changed_keys import InputState, follow
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, plain
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
_MOST_READ, _MOST_READ_WHOLE = 0.5, 0.1
# So few rows are always compared: that takes less than to write a table again without need, and whatever reads it.
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

    Raises:
        FullRefreshError: all of it has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    auto = model.write.refresh is Refresh.AUTO
    reading = InputReading(session, lake, manifest, stack)
    found_files = {plain(one.view): reading.files(one) for one in choice.inputs if one.changed}
    files = {view: differing for view, differing in found_files.items() if not differing.none}
    read = sum(one.rows for one in files.values())
    rows = sum(one.total for one in files.values())
    most = _MOST_READ_WHOLE if choice.unfollowed else _MOST_READ
    if auto and read > max(_FEW_ROWS, most * rows):
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
    try:
        return _replaced(reading, model, choice, table, tuple(changed), few=few)
    except FullRefreshError as full:
        names = ", ".join(f"'{one.name}'" for one in choice.inputs if plain(one.view) in changed)
        raise FullRefreshError(f"rows of {names} changed, and {full.reason}") from full


def _replaced(
    reading: InputReading,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    changed: tuple[str, ...],
    *,
    few: bool,
) -> Affected:
    """Find which rows of a table are replaced.

    Raises:
        FullRefreshError: all of them.
    """
    if choice.unfollowed:
        raise FullRefreshError(choice.unfollowed)
    session = reading.session
    query = follow(model.sql, {plain(one.view): one.columns for one in choice.inputs})
    _register(session, reading.manifest, choice)
    # The registered inputs have the types of those that are compared.
    types = {field.name.lower(): field.dataType.simpleString() for field in session.sql(model.sql).schema.fields}
    return affected_partitions(FollowedChanges(session, reading.lake, model, choice, query, changed, table, types, few))


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    for one in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, one.before), (InputState.AFTER, one.after)):
            frame = session.sql(f"SELECT * FROM {table_of(manifest, one).relation.sql} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            kept = frame.select(*map(quoted, one.columns)) if one.columns else frame
            kept.createOrReplaceTempView(state_name(choice, plain(one.view), state))
