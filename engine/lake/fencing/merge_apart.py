"""A MERGE that is made beside the table, on a branch of its own, and shown by a commit that can be fenced.

Spark commits a MERGE itself and asks nobody: it would be made onto a fence. So it is made onto a branch that only the
holder of a lease has, and becomes the table in a second commit, which compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.lake.commit_guard import Guard
from engine.lake.fencing.table_fence import Fence

_BRANCH_PREFIX = "engine_lease_"
_MAIN = "main"


class HeadMovedError(Exception):
    """Others have committed while a MERGE was made; `CommitFailedException` in its text has it tried again."""


@dataclass(frozen=True, slots=True)
class MergeApart:
    guard: Guard
    fence: Fence
    merge: Callable[[str], object]

    @property
    def branch(self) -> str:
        return f"{_BRANCH_PREFIX}{self.fence.lease.token.replace('-', '_')}"

    def __call__(self) -> None:
        """Make the MERGE and show it.

        Raises:
            HeadMovedError: others have committed in between; nothing was shown.
            StateError: `lease-lost`.
        """
        head = self._begin()
        self.merge(self.branch)
        self._show(head)

    def _begin(self) -> int | None:
        table = self.guard.table
        table.refresh()
        operations = table.operations()
        base = operations.current()
        self.fence.check(base)
        ref = base.ref(self.guard.branch or _MAIN)
        change = self._builder().buildFrom(base)
        for name in [str(name) for name in base.refs() if str(name).startswith(_BRANCH_PREFIX)]:
            change.removeRef(name)
        if ref is None:
            operations.commit(base, change.build())
            table.refresh()
            table.newAppend().toBranch(self.branch).commit()
            table.refresh()
            return None
        head = int(ref.snapshotId())
        operations.commit(base, change.setBranchSnapshot(head, self.branch).build())
        table.refresh()
        return head

    def _show(self, head: int | None) -> None:
        table = self.guard.table
        table.refresh()
        operations = table.operations()
        base = operations.current()
        if self.fence.is_behind(base):
            raise self.fence.lease.lost_error()
        merged, ref = base.ref(self.branch), base.ref(self.guard.branch or _MAIN)
        current_head = int(ref.snapshotId()) if ref is not None else None
        if merged is None or current_head != head:
            raise HeadMovedError(f"CommitFailedException: {table.name()} was changed while rows were merged into it")
        change = self._builder().buildFrom(base).setBranchSnapshot(int(merged.snapshotId()), self.guard.branch or _MAIN)
        # Compared with what is there and swapped by the catalog.
        operations.commit(base, change.removeRef(self.branch).build())
        table.refresh()

    def _builder(self) -> Any:
        return self.guard.jvm.org.apache.iceberg.TableMetadata
