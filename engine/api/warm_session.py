"""One Spark session for several runs of models and tests, each of which takes the locks of its own tables.

Each run gets a session of its own in the open JVM: its views, functions, settings and catalogs end with it. What runs
leave for all sessions is removed when none is under way, or the JVM goes; so it does after a run that was cut off:
nothing may commit when the locks are free. Runs may be side by side, each in a thread.
"""

from __future__ import annotations

import gc
import logging
import resource
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine import kill_points
from engine.errors import EngineError, SetupError
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.compile import Target
    from engine.spark.session import Session, SessionSettings, Stamps
    from engine.state.lock import LockKeeper

_ENDED = "Java has ended"
_MOST_UNCLOSED = 200
_log = logging.getLogger("engine.api")


@dataclass(frozen=True, slots=True)
class _Open:
    """A session that is open.

    `settings` is what it was made from, `stamps` of the files that these name. `keeper`: of the locks of its runs.
    `fresh`: what was in it before the first run.
    """

    session: Session
    settings: SessionSettings
    stamps: Stamps
    keeper: LockKeeper
    fresh: frozenset[str]


class WarmSession:
    """A session that opens for the first run that needs one, and stays.

    `restarted` gets the reason each time that another one is opened; `conf` is beside the target's settings.
    """

    def __init__(self, restarted: Callable[[str], None], conf: Mapping[str, str] | None = None) -> None:
        self._restarted = restarted
        self._conf = dict(conf or {})
        self._open: _Open | None = None
        # Why the next one replaces one that was closed, or that no new run may begin in.
        self._restart_reason = ""
        self._running = 0
        # Runs that ended while others were under way, whose connections from Java are open.
        self._unclosed = 0
        self._changed = threading.Condition(threading.RLock())

    @property
    def is_open(self) -> bool:
        return self._open is not None and self._open.session.jvm.alive

    @property
    def java_ended(self) -> bool:
        """Whether there was a session, and its JVM has ended by itself."""
        return self._open is not None and not self._open.session.jvm.alive

    @property
    def java_pid(self) -> int | None:
        """The process of the JVM; None: there is none."""
        opened = self._open
        return opened.session.jvm.pid if opened is not None and opened.session.jvm.alive else None

    def bound_log(self) -> None:
        """Keep the newest part of spark.log, to which a Java that runs for weeks adds."""
        opened = self._open
        if opened is not None:
            from engine.spark.jvm import open_log

            with suppress(EngineError):
                open_log(opened.settings.log_dir).close()

    @property
    def java_memory(self) -> int:
        """Bytes of memory that the JVM uses (proc(5): the second number of statm, in pages); 0: there is none."""
        if (pid := self.java_pid) is None:
            return 0
        try:
            return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
        except (OSError, ValueError, IndexError):
            return 0

    @contextmanager
    def run(
        self, target: Target, target_dir: Path, locks: Sequence[int] = (), sets: Sequence[str] = (), *, brief: bool
    ) -> Iterator[SparkSession]:
        """A session of its own for a run; the parameters are those of `engine.runtime.build.spark_session`.

        Raises SetupError: Java, jars or the session cannot be had.
        """
        from engine.runtime.build import session_settings
        from engine.spark.internals.run_sessions import run_session

        settings = self._with_conf(session_settings(target, target_dir, (), sets, brief=brief))
        with self._changed:
            opened = self._matching_session(settings)
            self._running += 1
        with ExitStack() as stack:
            try:
                stack.enter_context(opened.keeper.keeping(locks))
            except BaseException:
                # No process could be started, say: the session is as it was.
                self._end(clean=True)
                raise
            clean = False
            try:
                kill_points.reach("run begins", settings.app_name)
                session, family = run_session(opened.session.spark)
                yield session
                kill_points.reach("run ends", settings.app_name)
                clean = self._is_clean_after(opened, family)
            finally:
                self._end(clean=clean)

    def _end(self, *, clean: bool) -> None:
        """One run fewer; after one that was cut off the JVM goes, before its locks are free."""
        with self._changed:
            self._running -= 1
            if not clean:
                self._restart_reason = self._restart_reason or "the last run was cut off"
            self._changed.notify_all()
            if not clean:
                self._changed.wait_for(lambda: not self._running)
                self.close()

    def cancel_jobs(self) -> None:
        """End the jobs of all runs, which fail; streams are stopped by their runs."""
        from engine.spark.exceptions import spark_exceptions

        opened = self._open
        if opened is not None and opened.session.jvm.alive:
            try:
                opened.session.spark.sparkContext.cancelAllJobs()
            except spark_exceptions():
                _log.info("jobs were not cancelled", exc_info=True)

    def open(self, target: Target, target_dir: Path, sets: Sequence[str], brief: Callable[[], bool]) -> None:
        """Have it open for runs to come, made as they need it; parameters and errors as for `run`."""
        from engine.runtime.build import session_settings

        settings = session_settings(target, target_dir, (), sets, brief=not self.is_open and brief())
        with self._changed:
            self._matching_session(self._with_conf(settings))

    def rest(self) -> None:
        from engine.spark.exceptions import spark_exceptions

        gc.collect()
        if self._open is not None and self.is_open:
            try:
                jvm_of(self._open.session.spark).java.lang.System.gc()
            except spark_exceptions():
                return  # the next run sees that it is gone

    def close(self) -> None:
        with self._changed:
            opened, self._open = self._open, None
            if opened is not None:
                try:
                    opened.session.close()
                finally:
                    opened.keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_conf(self, settings: SessionSettings) -> SessionSettings:
        return replace(settings, conf={**self._conf, **settings.conf}) if self._conf else settings

    def _matching_session(self, settings: SessionSettings) -> _Open:
        """The session that is open, if it is as wanted, or another, for which it waits until no run is under way."""
        from engine.spark.session import why_restart

        # Where runs always overlap, there is a moment without one now and then.
        self._changed.wait_for(lambda: not self._running or self._unclosed < _MOST_UNCLOSED)
        while self._open is not None:
            ended = _ENDED if self.java_ended else ""
            self._restart_reason = (
                self._restart_reason or ended or why_restart(self._open.settings, settings, self._open.stamps)
            )
            if not self._restart_reason:
                return self._open
            if not self._running:
                self.close()
                break
            self._changed.wait()
        if self._restart_reason:
            self._restarted(self._restart_reason)
            self._restart_reason = ""
        self._open = _open_session(settings)
        return self._open

    def _is_clean_after(self, opened: _Open, family: Sequence[SparkSession]) -> bool:
        """Whether the next run finds the JVM as the first one did; else `_restart_reason` says why not."""
        from engine.spark.exceptions import spark_exceptions
        from engine.spark.internals.run_sessions import release, remains, remove_remains

        with self._changed:
            try:
                if self._running > 1:
                    # What is left for all sessions is looked for when the others have ended.
                    release(family, connections=False)
                    self._unclosed += 1
                    return True
                remove_remains(opened.session.spark)
                leftovers = remains(opened.session.spark) - opened.fresh
                if not leftovers:
                    release(family)
                    self._unclosed = 0
            except spark_exceptions():
                _log.exception("queries that a run left behind")
                self._restart_reason = _ENDED if not opened.session.jvm.alive else "Java does not respond"
                return False
            if leftovers:
                self._restart_reason = f"the last run left something in it: {', '.join(sorted(leftovers))}"
            return not leftovers


def _open_session(settings: SessionSettings) -> _Open:
    from engine.spark.session import file_stamps, open_session
    from engine.state.lock import LockKeeper

    with ExitStack() as undo:
        keeper = LockKeeper()
        undo.callback(keeper.close)
        stamps = file_stamps(settings.conf)
        session = open_session(replace(settings, inherit_fds=(keeper.inherited,)))
        undo.callback(session.close)
        keeper.close_inherited()
        kill_points.reach("session opened", settings.app_name)
        opened = _Open(session, settings, stamps, keeper, _remains(session))
        undo.pop_all()
    return opened


def _remains(session: Session) -> frozenset[str]:
    from engine.spark.exceptions import spark_exceptions
    from engine.spark.internals.run_sessions import remains

    try:
        return remains(session.spark)
    except spark_exceptions() + (TypeError, AttributeError) as error:  # noqa: RUF005 - mypy reads the sum
        message = "Java exited, or no longer responds, while the session was opened"
        raise SetupError("java-ended", message, f"See {session.jvm.log}. Run it again.") from error
