"""A machine of a test: a process with a warm Java that carries out commands, one a line; it can be suspended as a whole.

`python -m tests.store_faults.machine PROJECT SECONDS`: a line of standard input is the arguments of a command in JSON; a
line of standard output its exit code and what it printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import REPOSITORY, Result
from tests.services.process import family

_END_SECONDS = 60.0


@dataclass(slots=True)
class Machine:
    """The process."""

    process: subprocess.Popen[str]

    def begin(self, *arguments: str) -> None:
        """Begin a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def end(self) -> Result:
        """Wait for the command that was begun."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the machine has ended")
        said: dict[str, Any] = json.loads(line)
        return Result(said["code"], said["out"], said["err"])

    def run(self, *arguments: str) -> Result:
        """Carry out a command."""
        self.begin(*arguments)
        return self.end()

    def suspend(self) -> None:
        """Stop it and its Java, in the middle of whatever they do."""
        for pid in family(self.process.pid):
            os.kill(pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it continue."""
        for pid in family(self.process.pid):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def running(root: Path, gone_after: float) -> Iterator[Machine]:
    """A machine with a project, which ends with the block."""
    command = [sys.executable, "-m", "tests.store_faults.machine", str(root), str(gone_after)]
    with (root / "machine.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    machine = Machine(process)
    try:
        yield machine
    finally:
        machine.wake()
        pids = family(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def main() -> None:
    """Carry out the commands of standard input."""
    from engine.api.warm_session import WarmSession
    from engine.cli.main import invoke
    from engine.runtime.build import sessions_from
    from engine.state import lease

    root = sys.argv[1]
    lease.GONE_AFTER, lease.RENEWED_EVERY = float(sys.argv[2]), 0.5
    answers, warm = sys.stdout, WarmSession(lambda reason: print(reason, file=sys.stderr))
    try:
        with sessions_from(warm.run):
            for line in sys.stdin:
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    code = invoke([*json.loads(line), "--project-dir", root, "--log-format", "json"])
                print(
                    json.dumps({"code": code, "out": out.getvalue(), "err": err.getvalue()}), file=answers, flush=True
                )
    finally:
        warm.close()


if __name__ == "__main__":
    main()
