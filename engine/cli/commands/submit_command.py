"""`engine submit`: hand a command to spark-submit, or show what would be handed over."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report
from engine.cli.console.safe_output import write
from engine.runtime.operations.submit import DeployMode, Submission, submission, submit

_MOST_NAMED = 10


def submit_command(
    settings: CommandSettings, command: Sequence[str], mode: str | None, environment: str, *, dry_run: bool
) -> bool:
    result = compile_and_report(settings, warnings=Warnings.DAILY)
    job = submission(
        result.target,
        result.manifest,
        settings.root,
        settings.target_dir,
        command,
        DeployMode(mode) if mode else None,
        environment,
    )
    if dry_run:
        _show(job)
        if job.withheld:
            write(f"\n{_withheld(job)}")
        return True
    if job.withheld:
        settings.out.say(_withheld(job))
    # Readable by its owner alone.
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        return submit(job, Path(folder)) == 0


def _withheld(job: Submission) -> str:
    names = ", ".join(map(one_line, job.withheld[:_MOST_NAMED]))
    others_text = f" and {len(job.withheld) - _MOST_NAMED} more" if len(job.withheld) > _MOST_NAMED else ""
    return f"Not handed to the cluster, as they may hold keys and no model reads them: {names}{others_text}"


def _show(job: Submission) -> None:
    files = {"properties": "spark.properties", "archive": "headrace.tar.gz", "main": "headrace_main.py"}
    write(one_line(shlex.join(["spark-submit", *job.arguments(files)])))
    write("\nspark.properties:")
    for key, value in job.conf.items():
        write(f"  {key} {one_line(value)}")
    if job.members:
        size = sum(path.stat().st_size for path in job.members.values())
        write(f"\nheadrace.tar.gz: {len(job.members)} files, {size / 1e6:.1f} MB")
        for name in job.members:
            if name.startswith("project/"):
                write(f"  {one_line(name)}")
