"""The last lines of a terminal, which show what a command is doing and are gone when it ends.

All else is printed above them (`above`). They move by a timer of this process while the project is compiled (forks are
fewer where there are threads), later by a thread. The module imports little: the first line appears early.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

_COMMANDS = {"build", "run", "test", "retry", "start"}
_PLAIN_OPTIONS = {"-h", "--help", "-q", "--quiet", "--log-format=json", "--log-level=warn", "--log-level=error"}
_PLAIN_VALUES = {("--log-format", "json"), ("--log-level", "warn"), ("--log-level", "error")}
_PLAIN_VARIABLES = ("NO_COLOR", "CI", "ENGINE_QUIET", "ENGINE_LOG_FORMAT", "ENGINE_LOG_LEVEL")
_NO = {"", "0", "false", "text", "info", "debug"}
_SECONDS = 0.1
_DOTS, _ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"

Render = Callable[[], Sequence[str]]


def fits(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal on which lines may be redrawn, for a person who watches."""
    try:
        is_terminal = os.isatty(1)
    except OSError:
        return False
    can_redraw = environment.get("TERM", "dumb") not in {"", "dumb", "unknown"}
    colours_off = environment.get("NO_COLOR") or environment.get("CI", "").lower() not in _NO
    return is_terminal and can_redraw and not colours_off


def spinner(since: float) -> str:
    """The spinner as it is now, in characters that standard output has; `since` as `time.monotonic` has it."""
    frames = _DOTS if is_unicode() else _ASCII
    return frames[int((time.monotonic() - since) / _SECONDS) % len(frames)]


def is_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "").startswith("utf")


class LiveArea:
    """The lines of this process. `began`: when the command did, on the monotonic clock; 0: there is nothing to show."""

    def __init__(self) -> None:
        self.began = 0.0
        self._lock = threading.Lock()
        self._render: Render = tuple
        self._lines: Sequence[str] = ()
        self._printed = 0.0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._handler: object = None

    def show_starting(self, arguments: Sequence[str]) -> None:
        if not arguments or arguments[0] not in _COMMANDS or _PLAIN_OPTIONS & set(arguments) or not fits():
            return
        if any(os.environ.get(name, "").lower() not in _NO for name in _PLAIN_VARIABLES):
            return
        if _PLAIN_VALUES & set(pairwise(arguments)):
            return
        self.began = time.monotonic()
        self.by_timer(lambda: (f"{spinner(self.began)} Starting",))

    def by_timer(self, render: Render) -> None:
        """Redraw what `render` returns by a timer that interrupts the main thread; nothing is forked with a thread."""
        self._begin(render)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
            self._handler = signal.signal(signal.SIGALRM, lambda *_: self._tick())
            signal.siginterrupt(signal.SIGALRM, False)
            signal.setitimer(signal.ITIMER_REAL, _SECONDS, _SECONDS)

    def by_thread(self, render: Render) -> None:
        """Redraw what `render` returns in a thread, until it returns nothing."""
        self._end_timer()
        self._begin(render)
        with self._lock:
            if self._thread is None:
                self._stop = threading.Event()
                self._thread = threading.Thread(target=self._follow, args=(self._stop,), name="live-area", daemon=True)
                self._thread.start()

    def close(self) -> None:
        self._end_timer()
        self._stop.set()
        with self._lock:
            self._render, self._thread = tuple, None
            self._replace(())
            self.began = 0.0

    def abandon(self) -> None:
        """Erase the lines without waiting for anybody, before the process ends at once."""
        self._stop.set()
        if self._lock.acquire(timeout=_SECONDS):
            self._replace(())

    @contextmanager
    def above(self) -> Iterator[None]:
        """Print whole lines above while the block runs, which flushes what it prints."""
        if not self.began:
            yield
            return
        with self._lock:
            lines = self._lines
            self._replace(())
            yield
            moment = time.monotonic()
            # Thousands of lines are not each followed by a redrawn area: then the next tick draws it.
            if moment - self._printed > _SECONDS:
                self._replace(lines)
            self._printed = moment

    def _begin(self, render: Render) -> None:
        self.began = self.began or time.monotonic()
        self._render = render
        self._draw(render())

    def _follow(self, stop: threading.Event) -> None:
        while not stop.wait(_SECONDS):
            lines = self._render()
            with self._lock:
                if stop.is_set():
                    return
                self._replace(lines)
                if not lines:
                    self._thread = None
                    return

    def _tick(self) -> None:
        # The main thread may be printing: it is interrupted here.
        if self._lock.acquire(blocking=False):
            try:
                self._replace(self._render())
            finally:
                self._lock.release()

    def _draw(self, lines: Sequence[str]) -> None:
        with self._lock:
            self._replace(lines)

    def _replace(self, lines: Sequence[str]) -> None:
        """Draw lines over those that are there; the cursor stays behind the last."""
        if not lines and not self._lines:
            return
        up = f"\x1b[{len(self._lines) - 1}A" if len(self._lines) > 1 else ""
        text = "\n".join(f"{line}\x1b[K" for line in lines)
        _write_unbuffered(f"\r{up}{text}\x1b[J")
        self._lines = lines

    def _end_timer(self) -> None:
        if self._handler is not None and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._handler)  # type: ignore[arg-type] # what `signal.signal` returned
            self._handler = None

    def after_fork(self) -> None:
        """Be without lines: this process is a fork of the one that has them."""
        self._lock = threading.Lock()
        self._stop.set()
        self.began, self._lines, self._render, self._handler, self._thread = 0.0, (), tuple, None, None


def _write_unbuffered(text: str) -> None:
    """Write past Python's buffer: everything else that is printed was flushed."""
    rest = text.encode(sys.stdout.encoding or "utf-8", "replace")
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        # The terminal has gone; what prints notices by itself.
        return


AREA = LiveArea()
os.register_at_fork(after_in_child=AREA.after_fork)
