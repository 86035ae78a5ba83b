"""The locks of tables that others write in turns: a command that needs them waits for its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from engine.errors import StateError
from engine.state import TableState, locked

_log = logging.getLogger("engine.runtime")

# How long to wait for a turn of `engine start`, or for a build.
_WAIT_SECONDS, _POLL_SECONDS = 600.0, 1.0


@contextmanager
def locked_when_free(states: Sequence[TableState]) -> Iterator[tuple[int, ...]]:
    """Hold the locks of tables, after the turn of whoever writes them.

    Raises:
        StateError: `table-locked`.
    """
    deadline, waits = time.monotonic() + _WAIT_SECONDS, False
    with ExitStack() as stack:
        while True:
            try:
                locks = stack.enter_context(locked(states))
                break
            except StateError as error:
                if error.diagnostic.code != "table-locked" or time.monotonic() > deadline:
                    raise
                if not waits:
                    _log.info("waiting: %s", error.diagnostic.message)
                waits = True
                time.sleep(_POLL_SECONDS)
        yield locks
