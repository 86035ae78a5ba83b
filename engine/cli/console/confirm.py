"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys

from engine.cli.console.safe_output import write
from engine.errors import UsageError


def confirmed(command: str, question: str) -> bool:
    """Ask a question; no answer is no.

    Raises:
        UsageError: there is no terminal.
    """
    if not sys.stdin.isatty():
        message = f"{command} needs a confirmation, and there is no terminal to ask"
        raise UsageError("usage", message, "Add --yes to confirm.")
    write(f"{question} [y/N] ", end="")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
