"""Where a stream of an Iceberg table begins, from the snapshots that the table still knows, and how it is read.

Iceberg's own stream begins with the oldest snapshot that is left, so that after a compaction and an expiry a reader
silently misses rows (measured, Iceberg 1.12.0). Asked to begin from a time, it takes the oldest commit of that time or
later; among commits of one millisecond the newest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import Diagnostic, StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.relations import quoted
from engine.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The option of Iceberg's reader.
FROM = "stream-from-timestamp"
# Operations that bring rows.
ADDING = frozenset({"append", "overwrite"})
# Operations that a stream skips rightly: files are rewritten, rows stay.
_SAME_ROWS = frozenset({"append", "replace"})


@dataclass(frozen=True, slots=True)
class Start:
    """`at` (milliseconds) None: all commits. The stream continues after `snapshot`, whose rows the table `seed` has."""

    uuid: str
    at: int | None = None
    snapshot: int | None = None
    seed: str | None = None


def rewriting(snapshots: Sequence[SnapshotFacts], *, ignore_deletes: bool) -> SnapshotFacts | None:
    """The oldest of some snapshots (newest first) that takes rows away; a stream cannot tell them of."""
    allowed = _SAME_ROWS | ({"delete"} if ignore_deletes else set())
    return next((s for s in reversed(snapshots) if s.operation not in allowed), None)


def from_first_row(table: TableFacts, seed: str, *, ignore_deletes: bool) -> Start:
    """Every row is read: by the table's own commits if all are known and add rows, else from a seed."""
    if not table.history or (table.complete and rewriting(table.history, ignore_deletes=ignore_deletes) is None):
        return Start(table.uuid)
    newest = table.history[0]
    return Start(table.uuid, newest.at + 1, newest.id, seed)


def from_time(source: str, table: TableFacts, at: int | None) -> Start:
    """Exactly the commits of a time and later.

    Raises StateError: `upstream-history`, commits of that time may have expired.
    """
    if at is not None and not table.complete and at < table.history[-1].at:
        oldest = table.history[-1]
        message = (
            f"the history of '{source}' begins with a commit of {time_of(oldest)}, and commits from {time_text(at)} on "
            "may have expired"
        )
        raise StateError("upstream-history", message, _LATER.format(time_of(oldest)))
    return Start(table.uuid, at)


_LATER = "Start at {0} or later, or remove 'starting_timestamp' to read all rows of the table."


def from_snapshot(source: str, table: TableFacts, snapshot: int) -> Start:
    """Exactly the commits from a snapshot on.

    Raises StateError: `upstream-history`, it is not in the table's history, or cannot be told from its neighbours.
    """
    first_commit = next((s for s in table.history if s.id == snapshot), None)
    if first_commit is None:
        message = f"'{source}' cannot start at snapshot {snapshot}: it is not in the history of the table"
        why = (
            "it was rolled back, or is on a branch"
            if snapshot in table.snapshots
            else "it has expired, or never existed"
        )
        newest_commits = ", ".join(f"{s.id} ({time_of(s)})" for s in table.history[:3]) or "none"
        raise StateError("upstream-history", f"{message} ({why})", f"The newest snapshots: {newest_commits}.")
    if (first_unread := first_read(table.history, first_commit.at)) is None or first_unread.id != snapshot:
        raise StateError("upstream-history", tied(source, first_commit), "Start at an earlier or a later snapshot.")
    return Start(table.uuid, first_commit.at)


def tied(source: str, snapshot: SnapshotFacts) -> str:
    return (
        f"'{source}' cannot start at snapshot {snapshot.id} of {time_of(snapshot)}: another commit has the same "
        "millisecond, or an earlier one has a later time, and Iceberg selects snapshots by time"
    )


def first_read(history: Sequence[SnapshotFacts], at: int) -> SnapshotFacts | None:
    """The snapshot with which Iceberg begins from a time; None: it waits for one."""
    if not history or history[0].at < at:
        return None
    last = None
    for snapshot in history:
        if snapshot.at < at:
            return last
        if snapshot.at == at:
            return snapshot
        last = snapshot
    return last


def time_of(snapshot: SnapshotFacts) -> str:
    return time_text(snapshot.at)


SKIP_DELETES = "streaming-skip-delete-snapshots"


def table_stream(
    session: SparkSession,
    name: str,
    start: Start | None,
    *,
    has_begun: bool = False,
    skip_deletes: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of each commit of a table; a micro-batch takes whole commits, all unread ones.

    `start` None: with the first commit that the table knows. `has_begun`: the checkpoint is in the table, and the time
    to begin from is left out, as Iceberg measures the newest commit against it also when it continues (iceberg#10156).
    `skip_deletes`: snapshots that only delete are skipped.
    """
    reader_options = dict(options or {})
    if start is not None and start.at is not None and not has_begun:
        reader_options[FROM] = str(start.at)
    if skip_deletes:
        reader_options[SKIP_DELETES] = "true"
    frame = session.readStream.format("iceberg").options(**reader_options).load(name)
    if start is None or start.seed is None:
        return frame
    return _like(session.readStream.format("iceberg").load(start.seed), frame).union(frame)


def _like(seed: DataFrame, frame: DataFrame) -> DataFrame:
    """The seed with the columns that the table has by now; those that it got later are NULL in older rows."""
    from pyspark.sql import functions as f

    seed_columns = set(seed.columns)
    return seed.select(
        *(
            f.col(quoted(field.name))
            if field.name in seed_columns
            else f.lit(None).cast(field.dataType).alias(field.name)
            for field in frame.schema.fields
        )
    )


def changed_columns(table: str, reader: str, before: Mapping[str, str], now: Mapping[str, str]) -> Diagnostic | None:
    """Return how a table's columns (with types) differ from those at a stream's last start; None: all are there."""
    wrong = [
        f"{name} {type_}: " + (f"is {now[name]} now" if name in now else "is gone")
        for name, type_ in before.items()
        if now.get(name) != type_
    ]
    if not wrong:
        return None
    message = f"{table} has changed since '{reader}' last read it: {'; '.join(wrong)}"
    hint = (
        "Declare the new columns ('schema:' of the source), undo the change of the table, or rebuild the "
        f"table: engine build -f -s {reader}"
    )
    return Diagnostic("source-columns", message, hint)
