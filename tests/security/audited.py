"""Runs `engine` commands and records what they do outside their process: `python -m tests.security.audited LOG ARGS..`.

A JSON list in place of ARGS is a list of commands: each runs in a fork of the process that has loaded the engine, and its
exit code is a line of the log.

Python's audit hooks (PEP 578) see each program that is started, each connection and each module that is imported; the
compiler's worker processes are forked and inherit the hook.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

# What starts a program, opens a connection or loads native code.
RECORDED = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "webbrowser.open", "ctypes.dlopen",
)  # fmt: skip


def record_to(path: str) -> None:
    """Append a line to a file for each recorded event, and for each module that is loaded by file name."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # An import is recorded by its compiled code: `exec` carries the code object with its file.
        if event == "exec" and hasattr(arguments[0], "co_filename"):
            os.write(log, f"exec {arguments[0].co_filename}\n".encode(errors="replace"))
        elif event in RECORDED:
            os.write(log, f"{event} {arguments!r}\n".encode(errors="replace"))

    sys.addaudithook(hook)


def run_each(commands: list[list[str]], log: Path) -> None:
    from engine.cli.main import invoke

    for command in commands:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = invoke(command)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"code {code} {' '.join(command)}\n")


if __name__ == "__main__":
    record_to(sys.argv[1])
    if sys.argv[2].startswith("["):
        run_each(json.loads(sys.argv[2]), Path(sys.argv[1]))
    else:
        from engine.cli.main import invoke

        sys.exit(invoke(sys.argv[2:]))
