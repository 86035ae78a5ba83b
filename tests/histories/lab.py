"""Projects without pytest: one session of this process, and what commands print."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.lab import LabSession, share_session


class Printed:
    """What this process prints, as pytest's `capsys` gives it."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()

    def readouterr(self) -> Any:
        found = SimpleNamespace(out=self.out.getvalue(), err=self.err.getvalue())
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return found


@contextlib.contextmanager
def opened(folder: Path, *, own_lakes: bool = False) -> Iterator[tuple[LabSession, Printed]]:
    """One session for all commands that run in here; what they print is kept."""
    printed, session = Printed(), LabSession(folder)
    # A thread that was stopped by a planted fault may say so after its command has ended.
    # py4j logs what its finalizers could not send to the root, which prints it where nothing listens.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("py4j").addFilter(lambda _: False)
    logging.getLogger("py4j.clientserver").addFilter(lambda _: False)
    with share_session(session, own_lakes=own_lakes):
        try:
            before = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = printed.out, printed.err
            yield session, printed
        finally:
            sys.stdout, sys.stderr = before
            session.close()
