"""The commit that replaces a table as a whole, under a lease: onto the table that was looked at, or not at all.

Iceberg's own replaces whatever is there by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake.fencing.table_fence import Fence, fence_of
from engine.lake.table_layout import find_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class BeforeReplacement:
    """`fence` None: a lock of the operating system; `operations` None: there is no table, or no fence."""

    fence: Fence | None = None
    operations: Any = None
    base: Any = None

    @property
    def is_new(self) -> bool:
        return self.fence is not None and self.operations is None

    def commit(self, change: Any) -> None:
        """Commit a transaction of Iceberg's that replaces the table.

        Raises:
            StateError: `lease-lost`.
            Py4JJavaError: others have committed to the table since it was looked at.
        """
        if self.fence is not None:
            self.fence.check(self.base)
        if self.operations is None:
            change.commitTransaction()
        else:
            # Compared with what is there and swapped by the catalog.
            self.operations.commit(self.base, change.table().operations().current())


def begin(session: SparkSession, relation: str, markers: Mapping[str, str]) -> BeforeReplacement:
    """Look at a table that is about to be replaced in a commit with some markers.

    Raises:
        StateError: `lease-lost`.
    """
    fence = fence_of(markers)
    if fence is None:
        return BeforeReplacement()
    table = find_table(session, relation)
    if table is None:
        fence.check(None)
        return BeforeReplacement(fence)
    table.refresh()
    operations = table.operations()
    base = operations.current()
    fence.check(base)
    return BeforeReplacement(fence, operations, base)
