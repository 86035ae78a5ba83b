"""Hand a command over to the warm process of its project and target, if there is one.

This runs before anything of the command line is loaded. It decides little: the warm process reads the same arguments
as this process would. What is not understood here is carried out here.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

_COMMANDS = ("build", "run", "test", "show")
# What is not for a warm process: it does not end by itself, or is for this one alone.
_OWN = {"--watch", "--no-warm", "--help", "-h", "--debug", "-d"}
# Seconds for a warm process to accept a command; one that has stopped does not delay it longer.
_ACCEPT_SECONDS = 5.0
# What is set where no text of project.yml is.
_DEFAULT_TARGET = "dev"
_TARGET = re.compile(r"""^target:[ ]*(["']?)([A-Za-z0-9_-]+)\1[ ]*(?:#.*)?$""", re.MULTILINE)
_ANY_TARGET = re.compile(r"^target[ ]*:", re.MULTILINE)


def hand_over(arguments: Sequence[str], env: Mapping[str, str] = os.environ) -> int | None:
    """Return the exit code of a command that a warm process carried out; None: it is to be carried out here."""
    if not arguments or arguments[0] not in _COMMANDS or env.get("ENGINE_NO_WARM") or _OWN & set(arguments):
        return None
    # Nearly always there is no warm process: then nothing more is loaded.
    base = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/")) / ".cache") / "headrace" / "run"
    if not base.is_dir() or any(not _is_open(number) for number in range(3)):
        return None
    root = Path(_value(arguments, ("--project-dir",)) or env.get("ENGINE_PROJECT_DIR") or ".")
    target = _value(arguments, ("-t", "--target")) or env.get("ENGINE_TARGET") or default_target(root)
    return _carried_out(root, target, arguments) if target else None


def default_target(root: Path) -> str | None:
    """Return the target of a project where the command line has none; None: a template decides."""
    try:
        text = (root / "project.yml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    if (found := _TARGET.search(text)) is not None:
        return found[2]
    return None if _ANY_TARGET.search(text) else _DEFAULT_TARGET


def _value(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    for index, argument in enumerate(arguments):
        for name in names:
            if argument == name:
                return arguments[index + 1] if index + 1 < len(arguments) else None
            if name.startswith("--") and argument.startswith(f"{name}="):
                return argument[len(name) + 1 :]
    return None


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _carried_out(root: Path, target: str, arguments: Sequence[str]) -> int | None:
    from engine.cli.warm.same_process import environment, version
    from engine.control import connect, socket_path
    from engine.errors import StateError

    try:
        # Of a folder that was removed, there is no path.
        folder = str(Path.cwd())
        client = connect(socket_path(root, f"warm {target}"), _ACCEPT_SECONDS)
    except OSError:
        return None
    if client is None:
        return None
    begun = False
    with client, ExitStack() as stack:
        umask = os.umask(0o077)
        os.umask(umask)
        answers = client.ask(
            "command", files=(0, 1, 2), version=version(), arguments=list(arguments), folder=folder,
            environment=environment(), umask=umask,
        )  # fmt: skip
        try:
            for answer in answers:
                if "begun" in answer:
                    begun = True
                    client.set_timeout(None)
                    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                        _pass_on(stack, client.cancel, number)
                elif "code" in answer:
                    return int(answer["code"])
        except StateError as error:
            if begun:
                from engine.cli.console.safe_output import write

                write(str(error), error=True)
                return 1
    return None


def _pass_on(stack: ExitStack, cancel: object, number: int) -> None:
    before = signal.getsignal(number)
    if before is not signal.SIG_IGN and callable(cancel):
        signal.signal(number, lambda came, _: cancel(came))
        stack.callback(signal.signal, number, before)
