"""Who holds the lock of a table: what a process writes into its lock, and what others read there."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.errors import StateError


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds a lock, as its `record` says; any of it may be missing."""

    record: Mapping[str, Any]

    @property
    def process(self) -> str:
        """Return the same text for each lock that a process takes."""
        if "pid" not in self.record:
            return "another run"
        return f"process {self.record['pid']} on {self.record.get('host')} ({self.record.get('command')})"

    @property
    def keeps_running(self) -> bool:
        """Whether it is an `engine start`, which takes the lock again for its next turn."""
        return self.record.get("keeps_running") is True

    @property
    def is_this_process(self) -> bool:
        return self.record.get("pid") == os.getpid() and self.record.get("host") == socket.gethostname()

    @property
    def may_live(self) -> bool:
        """False: it ended, or the record names no process; a process of another machine may always live."""
        pid = self.record.get("pid")
        if not isinstance(pid, int) or self.record.get("host") != socket.gethostname():
            return bool(self.record)
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        return True

    def __str__(self) -> str:
        since = self.record.get("since")
        return f"{self.process[:-1]}, since {since})" if "pid" in self.record else self.process


class TableLockedError(StateError):
    """The error `table-locked`; `holder` None: not known who holds the lock."""

    holder: LockHolder | None = None

    @classmethod
    def by(cls, table: str, holder: LockHolder, released: str) -> TableLockedError:
        """Return the error of a table; `released` says when the lock of a killed run is released."""
        message = f"{table} is being written by {holder}"
        error = cls("table-locked", message, f"Wait until it has ended, or stop it; {released}.")
        error.holder = holder
        return error


def process(*, keeps_running: bool = False) -> dict[str, Any]:
    """The record of this process, for people who meet its lock; `keeps_running`: it is an `engine start`."""
    record: dict[str, Any] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]]),
    }
    return {**record, "keeps_running": True} if keeps_running else record
