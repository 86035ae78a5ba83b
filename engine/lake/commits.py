"""One commit, whatever happens on the way: conflicts are tried again, and a marker says whether it had succeeded."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine import kill_points
from engine.errors import RunError
from engine.events import Metrics
from engine.lake.clients.catalog_errors import awaited, is_outage
from engine.lake.commit_guard import Guard, has_all_files, undo_commit
from engine.spark.exceptions import spark_exceptions

_log = logging.getLogger("engine.lake")
# Seconds between attempts; Iceberg's own attempts at a plain append come on top of each.
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
# Somebody holds the embedded catalog: no conflict, but worth the same patience.
_CATALOG_BUSY = ("database is locked", "SQLITE_BUSY")
# Iceberg retries the first by itself for appends; a MERGE that meets another writer fails with the second.
CONFLICTS = (
    "CommitFailedException",
    "ValidationException",
    "CommitStateUnknownException",
    *_CATALOG_BUSY,
)
# Iceberg takes a commit that is up to a minute older than the one before.
_CLOCK = ("Expected sorted snapshot log entries", "Invalid snapshot timestamp", "Invalid update timestamp")
# So often a commit is tried that can be made twice.
_ATTEMPTS = 5
# The branch in which rows wait for their tests (see `engine.lake.staging_branch`).
STAGED = "engine_staged"
# The tag of what a full refresh has replaced (see `engine.lake.changes.put_back`).
PREVIOUS = "engine_previous"
# The property of a table with a staged replacement: what its layout becomes (see `engine.lake.staging_branch`).
STAGED_LAYOUT = "engine.staged-layout"
Done = TypeVar("Done")
_MERGED = "spark.merge-into.num-target-rows-"
# A commit of ours is found this close to the end of the history, or others commit faster than we can look.
_MAX_DEPTH = 100


class HeadMovedError(Exception):
    """Others have committed while a MERGE was made; `CommitFailedException` in its text has it tried again."""


@dataclass(frozen=True, slots=True)
class Commit:
    """`rows` were added or changed, `updated` are those of them that were there before, `deleted` went by their key."""

    snapshot: int
    rows: int
    updated: int = 0
    deleted: int = 0

    def counted(self, metrics: Metrics) -> Metrics:
        return replace(metrics, rows_out=self.rows, rows_updated=self.updated, rows_deleted=self.deleted)


def batch_of(markers: Mapping[str, str]) -> int | None:
    batch = markers.get("batch-id")
    return None if batch is None else int(batch)


def until_committed(attempt: Callable[[], Done], conflicts: Collection[str]) -> Done:
    """Try again what meets another writer, if nothing is lost by making it twice; the last of some attempts raises."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except spark_exceptions() as error:
            if not any(conflict in str(error) for conflict in conflicts):
                raise
    return attempt()


def commit_with_retries(
    table: Any, markers: Mapping[str, str], attempt: Callable[[], object], rows: int, guard: Guard
) -> Commit:
    """Make a commit, and try it again after conflicts.

    A server that is away is waited for, for a minute. One whose answer was lost may have made the commit: its markers
    decide.

    Raises:
        RunError: `commit-conflict` after the last attempt; nothing was committed.
        StateError: `table-missing`, `table-replaced`, `table-rolled-back`, `lease-lost`; nothing was committed.
        Py4JError, PySparkException: anything else that went wrong.
    """
    place = markers.get("model", ""), batch_of(markers), str(table.name())
    kill_points.reach("committing", *place)
    failures: tuple[type[Exception], ...] = (*spark_exceptions(), HeadMovedError)
    for pause in (*_PAUSES, None):
        try:
            awaited(guard.check, str(table.name()))
            kill_points.reach("checked", *place)
            attempt()
        except failures as error:
            if _committed_after_all(table, markers, guard, error):
                break
            text = str(error)
            if pause is None and (is_outage(text) or any(name in text for name in _CATALOG_BUSY)):
                raise
            if pause is None:
                raise _conflict(table, text) from error
            _log.warning(
                "a commit to %s conflicted with another one and is retried in %s s: %s", table.name(), pause, text
            )
            time.sleep(pause)
        else:
            break
    awaited(table.refresh, str(table.name()))
    snapshot = _snapshot_with_markers(table, markers, guard.branch)
    if snapshot is None:
        raise RuntimeError(f"{table.name()} does not have a commit that succeeded")
    if not guard.made_onto(snapshot):
        raise guard.rolled_back(is_written=not undo_commit(guard.jvm, table, snapshot, guard.branch))
    return _commit_of(snapshot, rows)


def _committed_after_all(table: Any, markers: Mapping[str, str], guard: Guard, error: Exception) -> bool:
    """Whether a commit that failed is in the table, its answer lost; raises what is not worth another attempt."""
    awaited(guard.refresh, str(table.name()))
    snapshot = _snapshot_with_markers(table, markers, guard.branch)
    if snapshot is None:
        if any(text in str(error) for text in _CLOCK):
            raise _clock_behind(table) from error
        if not any(name in str(error) for name in CONFLICTS) and not is_outage(str(error)):
            raise error
        return False
    if has_all_files(table, snapshot):
        return True
    _log.warning("a commit to %s was made, but its files were removed: it is rolled back: %s", table.name(), error)
    if not undo_commit(guard.jvm, table, snapshot, guard.branch):
        raise error
    return False


def current_commit(table: Any, rows: int) -> Commit:
    return _commit_of(table.currentSnapshot(), rows)


def _commit_of(snapshot: Any, rows: int) -> Commit:
    summary = snapshot.summary()
    counts = [summary.get(_MERGED + kind) for kind in ("inserted", "updated", "deleted")]
    if counts[0] is None:
        return Commit(int(snapshot.snapshotId()), rows)
    inserted, updated, deleted = (int(count or 0) for count in counts)
    return Commit(int(snapshot.snapshotId()), inserted + updated, updated, deleted)


def _snapshot_with_markers(table: Any, markers: Mapping[str, str], branch: str | None) -> Any | None:
    snapshot, depth = (table.snapshot(branch) if branch else table.currentSnapshot()), 0
    while snapshot is not None and depth < _MAX_DEPTH:
        summary = snapshot.summary()
        if all(summary.get(f"engine.{key}") == value for key, value in markers.items()):
            return snapshot
        parent = snapshot.parentId()
        snapshot, depth = (table.snapshot(parent) if parent is not None else None), depth + 1
    return None


def _clock_behind(table: Any) -> RunError:
    last = datetime.fromtimestamp(int(table.operations().current().lastUpdatedMillis()) / 1000, UTC)
    message = (
        f"the clock of this machine is behind: the last commit to {table.name()} is of {last:%Y-%m-%d %H:%M:%S} "
        f"(UTC), and it is {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    )
    hint = (
        "Set the clock right on the machine whose clock is wrong, and build again; nothing of the micro-batch "
        "was written."
    )
    return RunError("clock-behind", message, hint)


def _conflict(table: Any, text: str) -> RunError:
    # Py4J says first that an error occurred.
    first = next((line for line in text.strip().splitlines() if not line.startswith("An error occurred")), text)
    often = f"{table.name()} was changed by other writers during each of {len(_PAUSES) + 1} attempts to commit"
    message = f"{often}: {first.lstrip(': ')}"
    hint = "Nothing of the micro-batch was written; build again when the other writer, such as a compaction, has ended."
    return RunError("commit-conflict", message, hint)


def retry_replacement(
    attempt: Callable[[], Commit], load: Callable[[], Any], markers: Mapping[str, str], branch: str | None = None
) -> Commit:
    """Make a commit that needs no table before it, and try it again where it meets others.

    Raises Py4JError, PySparkException: what went wrong at the last attempt, or cannot be tried again.
    """
    for pause in (*_PAUSES, None):
        try:
            return attempt()
        except spark_exceptions() as error:
            made_snapshot = _lost_commit(load, markers, branch)
            if made_snapshot is not None:
                return _commit_of(made_snapshot, int(made_snapshot.summary().get("added-records") or 0))
            is_retryable = is_outage(str(error)) or any(name in str(error) for name in CONFLICTS)
            if pause is None or not is_retryable:
                raise
            _log.warning("a table could not be replaced; retrying in %s s: %s", pause, error)
            time.sleep(pause)
    raise AssertionError


def _lost_commit(load: Callable[[], Any], markers: Mapping[str, str], branch: str | None) -> Any | None:
    """The snapshot of a commit whose answer was lost; None: it was not made, or there is nobody to ask."""
    try:
        return _snapshot_with_markers(awaited(load, "the table"), markers, branch)
    except spark_exceptions():
        return None
