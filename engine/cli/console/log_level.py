"""How much a command prints."""

from __future__ import annotations

from enum import StrEnum


class LogLevel(StrEnum):
    """Values of --log-level, each with what it prints.

    DEBUG: everything, with the lines and traces that else are in the log only. INFO: the default. WARN: warnings,
    errors and the result. ERROR: errors and the result.
    """

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def informs(self) -> bool:
        return self in {LogLevel.DEBUG, LogLevel.INFO}

    @property
    def warns(self) -> bool:
        return self is not LogLevel.ERROR


def level_of(log_level: str, *, quiet: bool, debug: bool) -> LogLevel:
    """The level that the options name; -q wins over -d, and both over --log-level."""
    return LogLevel.ERROR if quiet else LogLevel.DEBUG if debug else LogLevel(log_level)
