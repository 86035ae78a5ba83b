"""`engine debug --security`, printed."""

from __future__ import annotations

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings
from engine.cli.console.safe_output import Styled, write
from engine.compile import Target
from engine.runtime.operations.security_report import CheckResult, checks

_COLOURS = {CheckResult.OK: "green", CheckResult.WARN: "yellow", CheckResult.FAIL: "red"}


def show_security(chosen: CommandSettings, target: Target) -> bool:
    """Print one line a check, with a hint below where there is one; whether none failed."""
    good = True
    for check in checks(target, chosen.root, chosen.target_dir):
        good = good and check.level is not CheckResult.FAIL
        mark = Styled(check.level.value.upper().ljust(5), _COLOURS[check.level])
        write(mark, f" {check.part.ljust(10)} {one_line(check.text)}")
        if check.hint:
            write(f"      {' ' * 10} {one_line(check.hint)}")
    return good
