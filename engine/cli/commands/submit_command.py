"""`engine submit`: hand a command to spark-submit, or show what would be handed over."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compiled
from engine.cli.console.safe_output import write
from engine.runtime.operations.submit import DeployMode, Submission, submission, submit

_MOST_NAMED = 10


def submit_command(
    chosen: CommandSettings, command: Sequence[str], mode: str | None, environment: str, *, dry_run: bool
) -> bool:
    result = compiled(chosen, warnings=Warnings.DAILY)
    made = submission(
        result.target,
        result.manifest,
        chosen.root,
        chosen.target_dir,
        command,
        DeployMode(mode) if mode else None,
        environment,
    )
    if dry_run:
        _show(made)
        if made.withheld:
            write(f"\n{_withheld(made)}")
        return True
    if made.withheld:
        chosen.out.say(_withheld(made))
    # Readable by its owner alone.
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        return submit(made, Path(folder)) == 0


def _withheld(made: Submission) -> str:
    listed = ", ".join(map(one_line, made.withheld[:_MOST_NAMED]))
    more = f" and {len(made.withheld) - _MOST_NAMED} more" if len(made.withheld) > _MOST_NAMED else ""
    return f"Not handed to the cluster, as they may hold keys and no model reads them: {listed}{more}"


def _show(made: Submission) -> None:
    files = {"properties": "spark.properties", "archive": "headrace.tar.gz", "main": "headrace_main.py"}
    write(one_line(shlex.join(["spark-submit", *made.arguments(files)])))
    write("\nspark.properties:")
    for key, value in made.conf.items():
        write(f"  {key} {one_line(value)}")
    if made.members:
        size = sum(path.stat().st_size for path in made.members.values())
        write(f"\nheadrace.tar.gz: {len(made.members)} files, {size / 1e6:.1f} MB")
        for name in made.members:
            if name.startswith("project/"):
                write(f"  {one_line(name)}")
