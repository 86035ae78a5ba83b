"""A commit is made onto the table that its writer knows, or not at all.

Iceberg commits onto whatever the table is by then: rows that were rolled back would stay hidden for good. So a commit
comes with the table's UUID and the writer's last snapshot, which must be an ancestor of the one that is committed onto.
Each of Iceberg's attempts asks again (`validateWith`); a MERGE has no such hook: it is checked before, Iceberg rejects
a head that does not descend from the one it read (measured), and what came in between is taken back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import REBUILD, StateError
from engine.lake.table_fence import Fence, fence_of
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals.connection import await_callbacks
from engine.spark.internals.handles import jvm_of

_MAIN = "main"
# What Java says of a table that was dropped, or dropped and recreated.
_DROPPED = "NoSuchTableException"
_REPLACED = "Table UUID does not match"


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """What a table must be for a commit.

    `uuid` None: any. `snapshot`: the last that the writer knows to be in the table; None: it has written nothing.
    `descends`: whether the first snapshot has the second for an ancestor, where those in between have expired.
    """

    model: str
    uuid: str | None
    snapshot: int | None
    descends: Callable[[int, int], bool] = lambda _, __: False


@dataclass(slots=True)
class Guard:
    """Checks a table until a commit is made; `branch` None: main; `fence` None: a lock of the operating system."""

    jvm: Any
    table: Any
    branch: str | None
    expected: ExpectedTable
    fence: Fence | None = None
    head: int | None = None

    def check(self) -> None:
        """Look at the table as it is now.

        Raises StateError: `table-missing`, `table-replaced`, `table-rolled-back`, `lease-lost`.
        """
        expected = self.expected
        self.refresh()
        if self.fence is not None:
            self.fence.check(self.table.operations().current())
        if expected.uuid is not None and str(self.table.uuid()) != expected.uuid:
            raise self._replaced()
        self.head = head_of(self.table, self.branch)
        if expected.snapshot is not None and not self._follows(self.head):
            raise self.rolled_back()

    def refresh(self) -> None:
        """Read the table's metadata again. Raises StateError: `table-missing`, `table-replaced`."""
        try:
            self.table.refresh()
        except spark_exceptions() as error:
            if _REPLACED in str(error):
                raise self._replaced() from error
            if _DROPPED in str(error):
                raise self._missing() from error
            raise

    def _follows(self, head: int | None) -> bool:
        last = self.expected.snapshot
        if head is None or last is None:
            return False
        util = self.jvm.org.apache.iceberg.util.SnapshotUtil
        # The parent of the oldest snapshot that is kept is named there, expired or not.
        is_ancestor = util.isAncestorOf(self.table, head, last) or util.isParentAncestorOf(self.table, head, last)
        return bool(is_ancestor) or self.expected.descends(head, last)

    def validated(self, change: Any, *, exact: bool = False) -> Any:
        """Return a change that Iceberg makes only onto what was checked; `exact`: onto no snapshot that follows it."""
        last = self.expected.snapshot
        if exact:
            return change.validateWith(_Ancestry(frozenset({last}), self._is_behind, exact=True))
        if last is None and self.fence is None:
            return change
        return change.validateWith(_Ancestry(frozenset({last, self.head} if last is not None else ()), self._is_behind))

    def _is_behind(self) -> bool:
        return self.fence is not None and self.fence.is_behind(self.table.operations().current())

    def made_onto(self, snapshot: Any) -> bool:
        if self.expected.snapshot is None:
            return True
        util, snapshot_id = self.jvm.org.apache.iceberg.util.SnapshotUtil, int(snapshot.snapshotId())
        return (self.head is not None and bool(util.isAncestorOf(self.table, snapshot_id, self.head))) or self._follows(
            snapshot_id
        )

    def rolled_back(self, *, is_written: bool = False) -> StateError:
        """The error of a table that is not what it was; `is_written`: the micro-batch is in it nevertheless."""
        model = self.expected.model
        where = f"{self.table.name()} (branch {self.branch})" if self.branch else str(self.table.name())
        message = (
            f"the last commit of '{model}' (snapshot {self.expected.snapshot}) is no longer in the history of {where}: "
            "the table was rolled back while the model was running"
        )
        not_written = "" if is_written else "The micro-batch was not written. "
        hint = f"{not_written}Roll the table forward to that snapshot, or {REBUILD.format(model)}"
        return StateError("table-rolled-back", message, hint, node=model)

    def _replaced(self) -> StateError:
        model = self.expected.model
        message = f"{self.table.name()} was dropped and recreated by another program while '{model}' was running"
        return StateError("table-replaced", message, f"Restore the table, or {REBUILD.format(model)}", node=model)

    def _missing(self) -> StateError:
        model = self.expected.model
        message = f"{self.table.name()} was dropped by another program while '{model}' was running"
        return StateError("table-missing", message, f"Restore the table, or {REBUILD.format(model)}", node=model)


@dataclass(slots=True)
class _Ancestry:
    """Iceberg's `SnapshotAncestryValidator`, asked about the ancestors of what an attempt commits onto.

    It must not look for the commit's own markers: an attempt whose answer was lost is repeated by Iceberg under the
    same snapshot id, which it knows; were it rejected, its files would be deleted under the table (measured).
    """

    allowed: frozenset[int | None]
    is_behind: Callable[[], bool]
    exact: bool = False

    def validate(self, ancestors: Any) -> bool:
        """Whether one of them is what was checked, and no later lease is named; nothing allowed allows all."""
        if self.is_behind():
            return False
        if not self.allowed:
            return True
        each = ancestors.iterator()
        while each.hasNext():
            if int(each.next().snapshotId()) in self.allowed:
                return True
            if self.exact:
                return False
        return False

    def errorMessage(self) -> str:  # noqa: N802 - Java's name
        return "the table was rolled back, or is written by another run"

    class Java:
        implements = ("org.apache.iceberg.SnapshotAncestryValidator",)


def guard(
    session: Any, table: Any, branch: str | None, expected: ExpectedTable | None, markers: Mapping[str, str]
) -> Guard:
    """The guard of a commit with some markers; without `expected` any table will do.

    Raises StateError: `lease-lost`.
    """
    # Java asks back.
    await_callbacks(session)
    made_onto = expected or ExpectedTable("", None, None)
    return Guard(jvm_of(session), table, branch, made_onto, fence_of(markers))


def head_of(table: Any, branch: str | None) -> int | None:
    """The newest snapshot of a branch of a table in Java; of main where there is no such branch."""
    snapshot = (table.snapshot(branch) if branch else None) or table.currentSnapshot()
    return int(snapshot.snapshotId()) if snapshot is not None else None


def has_all_files(table: Any, snapshot: Any) -> bool:
    """Return whether the lists of a snapshot's files are there.

    Iceberg deletes them when it takes a commit for failed, also if only the catalog's answer was wrong (measured:
    MERGE).
    """
    files = table.io()
    if not files.newInputFile(snapshot.manifestListLocation()).exists():
        return False
    return all(files.newInputFile(part.path()).exists() for part in snapshot.allManifests(files))


def undo_commit(jvm: Any, table: Any, snapshot: Any, branch: str | None) -> bool:
    """Undo a commit in one step, unless others have committed since; whether that was done."""
    table.refresh()
    operations, snapshot_id, parent = table.operations(), int(snapshot.snapshotId()), snapshot.parentId()
    metadata = operations.current()
    ref = metadata.ref(branch or _MAIN)
    if ref is None or int(ref.snapshotId()) != snapshot_id:
        return False
    builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(metadata)
    if parent is None:
        builder = builder.removeRef(branch or _MAIN)
    else:
        builder = builder.setBranchSnapshot(int(parent), branch or _MAIN)
    undone = jvm.java.util.ArrayList()
    undone.add(snapshot)
    # Compared with what is there and swapped by the catalog: a commit of others in between makes it fail.
    operations.commit(metadata, builder.removeSnapshots(undone).build())
    table.refresh()
    return True
