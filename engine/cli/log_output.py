"""Where the engine's log goes: target/logs/engine.log, and what of it people see."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO

from engine.characters import visible
from engine.cli.console.log_level import LogLevel
from engine.cli.console.printing import Printer
from engine.cli.console.safe_output import indented, write
from engine.secrets.scrubber import scrub
from engine.target_folder import forget_oldest

LOG = "logs/engine.log"
_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_INDENT = 4
if TYPE_CHECKING:
    _FileHandler = logging.StreamHandler[TextIOWrapper[BinaryIO]]
else:
    _FileHandler = logging.StreamHandler


@contextmanager
def logged(out: Printer, level: LogLevel, file: BinaryIO | None) -> Iterator[None]:
    """Show the log to people while the block runs, and write it to a file, which is closed in the end."""
    root = logging.getLogger("engine")
    log_handler = _file_handler(file) if file is not None else None
    handlers = [
        _ConsoleHandler(out),
        *([log_handler] if log_handler else []),
        *([_TraceHandler()] if level is LogLevel.DEBUG else []),
    ]
    previous_level, spread = root.level, root.propagate
    if log_handler is not None:
        # Py4J's traces of what fails inside a micro-batch would be before the message.
        logging.getLogger().addHandler(log_handler)
    root.setLevel(logging.DEBUG if level is LogLevel.DEBUG else logging.INFO)
    root.propagate = False
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        root.setLevel(previous_level)
        root.propagate = spread
        if log_handler is not None:
            logging.getLogger().removeHandler(log_handler)
            log_handler.close()
            log_handler.stream.close()


def is_shown() -> bool:
    return any(isinstance(handler, _ConsoleHandler) for handler in logging.getLogger("engine").handlers)


def _file_handler(file: BinaryIO) -> _LogFileHandler:
    handler = _LogFileHandler(TextIOWrapper(file, encoding="utf-8", errors="backslashreplace"))
    handler.setFormatter(_Scrubbing(_FORM))
    return handler


class _LogFileHandler(_FileHandler):
    """A file that does not grow without bound; a full disk costs lines and nothing else."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with suppress(OSError, ValueError):
            forget_oldest(self.stream.fileno())

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Nothing: a trace on standard error for each line would be worse than the lost line."""


class _Scrubbing(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(scrub(super().format(record)))


class LastResortHandler(logging.Handler):
    """Where warnings go that no other handler takes (templates are not heard while `ls` prints): standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        write(indented(self.format(record), _INDENT), error=True)


class _ConsoleHandler(logging.Handler):
    """Messages of level info without a trace are for people too (jar downloads, log(..., info=True))."""

    def __init__(self, out: Printer) -> None:
        super().__init__(logging.INFO)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None:
            self._out.say(record.getMessage())


class _TraceHandler(logging.Handler):
    """What `_ConsoleHandler` leaves to the log: traces, and messages below the level info."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(_Scrubbing(_FORM))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None or record.levelno < logging.INFO:
            write(indented(self.format(record), _INDENT), error=True)
