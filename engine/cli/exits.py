"""How a command ends: its work is carried out, and what comes of it is lines and an exit code.

0 all good; 1 something the user must fix failed; 2 usage or internal error; 130 interrupted (Ctrl-C), 143 terminated
(SIGTERM), as a shell reports both.
"""

from __future__ import annotations

import errno
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

import click

from engine.cli.command_setup import CommandSettings, Failed, exit_code_of, read_settings, report_internal_error
from engine.cli.console.live_area import AREA
from engine.cli.console.log_level import LogLevel, level_of
from engine.cli.console.printing import Printer
from engine.cli.console.safe_output import take_write_failure, write, writing
from engine.cli.log_output import LastResortHandler
from engine.errors import EngineError, SetupError, causes

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


class Terminated(KeyboardInterrupt):
    """SIGTERM asked the command to stop, as Ctrl-C does."""


class TerminatedWaitingError(Terminated):
    pass


@dataclass(slots=True)
class StopSignals:
    """Ctrl-C and SIGTERM of a command that works and waits in turns.

    What a handler raises in the middle of a finalizer is lost (Python prints and forgets it): the signal is noted, too.

    Attributes:
        interrupting: what is under way ends at once; else whoever waits looks at `received`.
        came: the signal that asked the command to stop.
    """

    interrupting: bool = True
    received: int | None = None

    def handle(self, number: int, _: object) -> None:
        self.received = number
        if self.interrupting:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Note Ctrl-C and SIGTERM while the block runs; a signal that the process ignores stays ignored."""
    signals = StopSignals()
    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in previous_handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signals.handle)
    try:
        yield signals
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM stops the command as Ctrl-C does: what runs is ended, and nothing is left behind."""

    def terminate(*_: object) -> None:
        raise Terminated

    previous_handlers = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handlers)


def run_command(work: Callable[[CommandSettings], bool | None], *, stopped: str = "", **shared: Any) -> int:
    """Do a command's work (False: something failed, and was reported); turn errors into lines and an exit code.

    `stopped`: what an interruption means for the next command.
    """
    code, out = _carried_out(work, stopped, shared)
    # In a terminal, where somebody may ask; a log has the codes.
    if out is not None and out.errors and sys.stderr.isatty() and _level(shared) is not LogLevel.ERROR:
        from engine.cli.explain_command import pointer

        if text := pointer(out.errors):
            write(text, error=True)
    return code


def _carried_out(
    work: Callable[[CommandSettings], bool | None], stopped: str, shared: Mapping[str, Any]
) -> tuple[int, Printer | None]:
    settings: CommandSettings | None = None
    # Python's own handler would write the output of templates to the terminal unescaped.
    logging.lastResort = LastResortHandler(logging.WARNING if _level(shared).warns else logging.ERROR)
    try:
        settings = read_settings(**shared)
        code = 1 if work(settings) is False else 0
    except Failed:
        code = 1
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the process ends here
        code = _report_error(error, settings, shared, stopped)
    return code, settings.out if settings else None


def _level(shared: Mapping[str, Any]) -> LogLevel:
    return level_of(shared["log_level"], quiet=shared["quiet"], debug=shared["debug"])


def exit_code(command: click.Command, arguments: Sequence[str] | None) -> int:
    try:
        return code_after_writing(_invoke(command, arguments))
    finally:
        AREA.close()


def _invoke(command: click.Command, arguments: Sequence[str] | None) -> int:
    result: object = None
    try:
        # Its help is what click prints by itself.
        with writing(sys.stdout):
            result = command.main(args=arguments, prog_name="engine", standalone_mode=False)
    except click.exceptions.Abort:
        return report_interruption(INTERRUPTED)
    except click.ClickException as error:
        usage_text = StringIO()
        error.show(usage_text)
        write(usage_text.getvalue(), error=True, end="")
        return 2
    except SystemExit:
        # click ends the process itself when the reader of its help has left.
        return 0
    return result if isinstance(result, int) else 0


def code_after_writing(code: int) -> int:
    """The exit code of a command some of whose output could not be written; a reader that left is not an error."""
    failure = take_write_failure()
    if failure is None:
        return code
    write(f"error: the output cannot be written: {failure.strerror} [output-unwritable]", error=True)
    return code or 1


def report_interruption(code: int, after: str = "") -> int:
    word = "terminated" if code == TERMINATED else "interrupted"
    write(f"{word}; {after}" if after else word, error=True)
    return code


def _report_error(
    error: BaseException, settings: CommandSettings | None, shared: Mapping[str, Any], stopped: str
) -> int:
    cause = _interruption_in(error)
    if cause is not None or isinstance(error, click.exceptions.Abort):
        stopped = "" if isinstance(cause, TerminatedWaitingError) else stopped
        return report_interruption(TERMINATED if isinstance(cause, Terminated) else INTERRUPTED, stopped)
    failure = _access_error(error) if isinstance(error, OSError) else error
    if isinstance(failure, EngineError):
        from engine.cli.console.printing import printer

        out = settings.out if settings else printer(shared["log_format"], _level(shared))
        out.diagnostics(failure.diagnostics)
        return exit_code_of(failure)
    report_internal_error(error, settings)
    return 2


def _interruption_in(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption that an error is, or came from: what is cut off in the middle may fail in its own way."""
    return next((cause for cause in causes(error) if isinstance(cause, KeyboardInterrupt)), None)


def _access_error(error: OSError) -> EngineError | OSError:
    if error.errno not in _NO_ACCESS or not error.filename:
        return error
    hint = "Check the permissions and the free space there."
    return SetupError("no-access", f"{error.filename} cannot be used: {error.strerror}", hint)
