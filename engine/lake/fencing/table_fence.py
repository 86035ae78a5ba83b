"""What the writer of a commit has to find in the table's metadata: no lease later than its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import StateError
from engine.state.lease import Lease, lease_of_token

# The property of a table: the number of the lease whose holder took over from a run that may still be there.
FENCE = "engine.fence"
# The marker of a commit that was made under a lease.
MARKER = "lease"


@dataclass(frozen=True, slots=True)
class Fence:
    lease: Lease

    def check(self, metadata: Any) -> None:
        """Check that the lease is still held, and that the table, by its metadata in Java, names no later one.

        Raises:
            StateError: `lease-lost`.
        """
        if self.is_behind(metadata):
            raise self.lease.lost()
        self.lease.check()

    def is_behind(self, metadata: Any) -> bool:
        """Whether a table names a later lease; None is a table that does not exist yet."""
        number = metadata.properties().get(FENCE) if metadata is not None else None
        return number is not None and int(number) > self.lease.number


def fence_of(markers: Mapping[str, str]) -> Fence | None:
    """The fence of a commit by its markers; None: its writer has a lock of the operating system.

    Raises:
        StateError: `lease-lost`: the lease has ended.
    """
    token = markers.get(MARKER)
    if token is None:
        return None
    lease = lease_of_token(token)
    if lease is None:
        hint = "Nothing was written; build again."
        raise StateError("lease-lost", f"the lock of '{markers.get('model')}' was released before its commit", hint)
    return Fence(lease)
