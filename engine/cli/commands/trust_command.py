"""`engine trust`: which secrets the target would give to whom, and the user's word that it may."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, check_project, compile_and_report
from engine.cli.console.safe_output import write, write_json
from engine.errors import UsageError
from engine.secrets.secret_places import Gift
from engine.secrets.trusted_projects import confirm, confirmed, forget


def trust(settings: CommandSettings, log_format: str, *, yes: bool, list_only: bool, forget_all: bool) -> None:
    """Show the secrets of the target and their places, ask, and remember the answer.

    Raises:
        UsageError: nobody can be asked.
        SetupError: `trust-file`.
    """
    check_project(settings)
    if list_only:
        _show(sorted(confirmed(settings.root)), log_format)
        return
    if forget_all:
        path = forget(settings.root)
        settings.out.say(f"Removed the permissions of {path} had of {settings.root}")
        return
    target = compile_and_report(settings, warnings=Warnings.DAILY).target
    gifts = target.gifts()
    already_confirmed = confirmed(settings.root)
    new = [gift for gift in gifts if gift not in already_confirmed]
    if not new:
        settings.out.say(f"The target {target.name} gives away no secret that was not confirmed before")
        return
    if log_format != "json":
        write(one_line(f"The target {target.name} of {settings.root} would give"))
    _show(new, log_format)
    if not yes and not _agreed():
        settings.out.say("Nothing was confirmed")
        raise Failed
    path = confirm(settings.root, new)
    settings.out.say(f"Confirmed, in {path}")


def _show(gifts: Sequence[Gift], log_format: str) -> None:
    for gift in gifts:
        if log_format == "json":
            write_json({"event": "SecretGiven", "secret": gift.secret, "place": gift.place})
        write(one_line(f"  {gift.secret} -> {gift.place}")) if log_format != "json" else None


def _agreed() -> bool:
    """Ask; no answer is no."""
    if not sys.stdin.isatty():
        message = "trust needs a confirmation, and there is no terminal to ask"
        raise UsageError("usage", message, "Add --yes to confirm, or set ENGINE_TRUST in CI.")
    write("Do you trust this project with that? [y/N] ", end="")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
