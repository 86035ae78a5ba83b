"""A writer whose lease was taken over commits nothing, at whatever moment it was stopped.

A lease is read again before each commit, but a process can be suspended between that and the commit. So whoever takes
a lease over from a run that did not release it first raises a fence in the table: the number of its lease in a property
and a snapshot without rows, in one commit. A commit that was under way then conflicts (a catalog compares the whole
table or, as REST does, the snapshot it was made onto), looks at the table again, and finds a number above its own.

What the writer of a commit has to find in the table's metadata: no lease later than its own.

The commit that replaces a table as a whole, under a lease: onto the table that was looked at, or not at all.

Iceberg's own replaces whatever is there by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import StateError
from engine.lake.table_layout import find_table
from engine.state.lease import Lease, lease_of_token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The property of a table: the number of the lease whose holder took over from a run that may still be there.
FENCE = "engine.fence"
# The marker of a commit that was made under a lease.
MARKER = "lease"


@dataclass(frozen=True, slots=True)
class Fence:
    lease: Lease

    def check(self, metadata: Any) -> None:
        """Check that the lease is still held, and that the table, by its metadata in Java, names no later one.

        Raises StateError: `lease-lost`.
        """
        if self.is_behind(metadata):
            raise self.lease.lost_error()
        self.lease.check()

    def is_behind(self, metadata: Any) -> bool:
        """Whether a table names a later lease; None is a table that does not exist yet."""
        number = metadata.properties().get(FENCE) if metadata is not None else None
        return number is not None and int(number) > self.lease.number


def fence_of(markers: Mapping[str, str]) -> Fence | None:
    """The fence of a commit by its markers; None: its writer has a lock of the operating system.

    Raises StateError: `lease-lost`: the lease has ended.
    """
    token = markers.get(MARKER)
    if token is None:
        return None
    lease = lease_of_token(token)
    if lease is None:
        hint = "Nothing was written; build again."
        raise StateError("lease-lost", f"the lock of '{markers.get('model')}' was released before its commit", hint)
    return Fence(lease)


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


def check_before_replacement(session: SparkSession, relation: str, markers: Mapping[str, str]) -> BeforeReplacement:
    """Look at a table that is about to be replaced in a commit with some markers. Raises StateError: `lease-lost`."""
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
