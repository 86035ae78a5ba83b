"""Runs one `engine` command and records what it does outside its own process: `python -m tests.security.audited LOG ARGS..`.

Python's audit hooks (PEP 578) see each program that is started, each connection and each module that is imported; the
compiler's worker processes are forked and inherit the hook.
"""

from __future__ import annotations

import os
import sys
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


if __name__ == "__main__":
    record_to(sys.argv[1])
    from engine.cli.main import invoke

    sys.exit(invoke(sys.argv[2:]))
