"""`engine debug --security`, printed."""

from __future__ import annotations

import click

from engine.cli.project import Settings
from engine.compile import Target
from engine.runtime.security import Level, checks
from engine.secrets import scrub

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def show_security(chosen: Settings, target: Target) -> bool:
    """Print one line a check, with a hint below where there is one; whether none failed."""
    good = True
    for check in checks(target, chosen.root, chosen.target_dir):
        good = good and check.level is not Level.FAIL
        mark = click.style(check.level.value.upper().ljust(5), fg=_COLOURS[check.level])
        click.echo(f"{mark} {check.part.ljust(10)} {scrub(check.text)}")
        if check.hint:
            click.echo(f"      {' ' * 10} {scrub(check.hint)}")
    return good
