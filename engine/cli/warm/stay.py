"""`engine warmup --stay`: a process that keeps a Spark session open and carries out commands in it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.api import runnable
from engine.api.one_session import alone
from engine.api.warm_session import WarmSession
from engine.api.watched_project import WatchedProject
from engine.cli.command_setup import CommandSettings, compiled
from engine.cli.warm.command_server import CommandServer
from engine.control import ControlServer, Request, connect, socket_path
from engine.errors import EngineError, SetupError
from engine.secrets import with_secrets
from engine.target_folder import TargetFolder

_LOG = "logs/warm.log"
_START_SECONDS = 180.0
_POLL_SECONDS = 0.1


def stay(chosen: CommandSettings, seconds: float, invoke: Callable[[Sequence[str]], int]) -> None:
    """Be the warm process of a project and target until no command came for some seconds.

    Args:
        chosen: the shared options.
        seconds: without a command, after which it ends.
        invoke: carries out a command line and returns its exit code.

    Raises:
        Failed: the project has errors.
        StateError: `project-running`: there is one already.
        SetupError: `control-folder`; Java, jars or the session cannot be had.
    """
    from engine.runtime.build import sessions_from

    result = compiled(chosen)
    nodes = runnable(result.manifest, list(result.manifest.nodes), "build")
    path = socket_path(chosen.root, f"warm {result.target.name}")
    commands = CommandServer(invoke)
    ready = False

    def stop(_: Request) -> Iterator[Mapping[str, Any]]:
        commands.stop()
        yield {"end": True}

    def status(_: Request) -> Iterator[Mapping[str, Any]]:
        yield {"end": True, "ready": ready}

    handlers = {"command": commands.handle, "stop": stop, "status": status}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, commands.stop)
    with ControlServer(path, handlers), WarmSession(lambda _: None) as session:
        with alone():
            WatchedProject(chosen.project, "build", {}, session).warm_up(result, nodes)
        import engine.runtime.run_nodes
        import engine.unit_tests.unit_test_session  # noqa: F401 - the first command finds them loaded

        ready = True
        with sessions_from(session.run):
            commands.serve(seconds, session.rest)


def start(chosen: CommandSettings, arguments: list[str]) -> int:
    """Start a warm process in the background, and return its process id when it is ready.

    Raises:
        Failed: the project has errors.
        SetupError: it has ended; its own message is in the log.
        StateError: `project-running`.
    """
    path = socket_path(chosen.root, f"warm {compiled(chosen).target.name}")
    if (running := connect(path)) is not None:
        with running:
            chosen.out.say(f"Already warm: process {running.pid}")
            return running.pid
    with TargetFolder(chosen.target_dir) as folder, folder.append(_LOG) as log:
        begin = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine", "warmup", *arguments, "--foreground"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=with_secrets(),
        )  # fmt: skip
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise _not_started(chosen.target_dir / _LOG, begin)
        if (client := connect(path)) is not None:
            with client:
                if next(client.ask("status")).get("ready"):
                    return process.pid
        time.sleep(_POLL_SECONDS)
    process.terminate()
    raise _not_started(chosen.target_dir / _LOG, begin)


def stop(chosen: CommandSettings) -> bool:
    """End the warm process of a project and target, with the command that it carries out; False: there is none."""
    path = socket_path(chosen.root, f"warm {compiled(chosen).target.name}")
    client = connect(path)
    if client is None or path is None:
        return False
    with client:
        try:
            list(client.ask("stop"))
        except EngineError:
            return True
    until = time.monotonic() + _START_SECONDS
    while path.exists() and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    return True


def _not_started(log: Path, begin: int) -> SetupError:
    with log.open("rb") as stream:
        stream.seek(begin)
        lines = stream.read(100_000).decode(errors="replace").strip().splitlines()
    last = next((line for line in reversed(lines) if "error" in line), lines[-1] if lines else "it has ended")
    return SetupError("spark-session", f"the warm process did not start: {last}", f"See {log}.")
