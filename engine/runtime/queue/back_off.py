"""What becomes of a turn that failed: tried again after a pause, or left until somebody edits the project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.errors import Diagnostic

FIRST: Final = 1.0
MOST: Final = 300.0
# Seconds after which a node on standby finds out whether its table is free.
LOCKED: Final = 10.0

# What only an edit of the project or a decision of the user removes; all else may pass by itself.
_NEEDS_EDIT: Final = frozenset({
    "model-changed", "source-changed", "source-columns", "source-replaced", "source-shrunk", "source-gap",
    "source-path", "table-schema", "table-replaced", "table-rolled-back", "table-missing", "name-taken",
    "checkpoint-lost", "checkpoint-damaged", "state-missing", "state-copied", "state-unreadable",
    "upstream-replaced", "upstream-rewritten", "upstream-history", "file-missing", "file-changed", "not-supported",
    "materialization-changed", "full-refresh-protected", "reset-position", "build-rejected", "sink-schema",
})  # fmt: skip


def pause_after(failures: int) -> float:
    """Return the seconds to wait after that many failures in a row: 1, 2, 4, .. up to 300."""
    return float(min(FIRST * 2 ** min(failures - 1, 16), MOST))


def may_recover(diagnostics: Iterable[Diagnostic]) -> bool:
    return not any(diagnostic.is_error and diagnostic.code in _NEEDS_EDIT for diagnostic in diagnostics)
