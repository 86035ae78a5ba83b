"""`engine debug --security`, printed."""

from __future__ import annotations

from engine.characters import one_line
from engine.cli.project import Settings
from engine.cli.terminal import Styled, write
from engine.compile import Target
from engine.runtime.security import Level, checks

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def show_security(chosen: Settings, target: Target) -> bool:
    """Print one line a check, with a hint below where there is one; whether none failed."""
    good = True
    for check in checks(target, chosen.root, chosen.target_dir):
        good = good and check.level is not Level.FAIL
        mark = Styled(check.level.value.upper().ljust(5), _COLOURS[check.level])
        write(mark, f" {check.part.ljust(10)} {one_line(check.text)}")
        if check.hint:
            write(f"      {' ' * 10} {one_line(check.hint)}")
    return good
