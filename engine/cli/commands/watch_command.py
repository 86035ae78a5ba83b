"""`--watch`: a command is run, and what each edit affects is run again in the same session, until Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.api import Command, RunOptions, Selection, runnable
from engine.api.one_session import alone
from engine.api.warm_session import WarmSession
from engine.api.watched_project import WatchedProject
from engine.cli.command_setup import CommandSettings, log_file
from engine.cli.console.safe_output import reader_left
from engine.cli.console.shown_warnings import warnings_of
from engine.cli.exits import StopSignals, TerminatedWaitingError, stop_signals
from engine.compile import Compiled, Manifest
from engine.errors import Diagnostic, EngineError, SetupError, UsageError
from engine.events import SessionRestarted, TurnFinished, TurnStarted, now
from engine.project.followed_files import FileFollower


def watch_project(settings: CommandSettings, command: Command, selection: Selection, options: RunOptions) -> bool:
    """Run what is selected, and what each edit affects, until Ctrl-C; False: the last of it failed, or errors remain.

    Raises EngineError: the first turn could not begin, for a reason that no edit of the project removes.
    """
    out = settings.out
    with stop_signals() as signals, log_file(settings), alone():
        with WarmSession(lambda reason: out.event(SessionRestarted(reason, now()))) as session:
            watched = WatchedProject(settings.project, command, options, session)
            turns = _Turns(settings, selection, watched, FileFollower(settings.root), signals)
            turns.run(())
            turns.follow()
        if signals.received == signal.SIGTERM:
            raise TerminatedWaitingError
        out.say("Stopped")
    return not (turns.broken or watched.failed)


@dataclass(slots=True)
class _Turns:
    """The turns of a watch.

    Attributes:
        broken: it could not begin, or was cut off by an error.
    """

    settings: CommandSettings
    selection: Selection
    watched: WatchedProject
    follower: FileFollower
    signals: StopSignals
    number: int = 0
    broken: bool = False
    warned: set[Diagnostic] = field(default_factory=set)
    _last: tuple[Compiled, list[str]] | None = None

    def follow(self) -> None:
        """Run a turn for each edit, until a signal comes, or nobody reads what it prints."""
        for files in self.follower.edits():
            if self.signals.received is not None or reader_left():
                return
            if files:
                self.run(files)
            elif self.watched.session.java_ended:
                self._open_session()

    def run(self, files: Sequence[str]) -> None:
        """Run what is due after some files were edited; what is wrong is printed.

        Raises EngineError: in the first turn, for a reason that no edit removes.
        """
        begin = time.monotonic()
        self.number += 1
        self.broken, self.signals.interrupting = True, True
        try:
            self.broken = not self._turn(tuple(files))
        except EngineError as error:
            if self.number == 1 and isinstance(error, (UsageError, SetupError)):
                raise
            self.settings.out.diagnostics(error.diagnostics)
        self._open_session()
        self.signals.interrupting = False
        self.settings.out.event(TurnFinished(self.number, time.monotonic() - begin, now()))
        self.watched.session.rest()

    def _turn(self, files: tuple[str, ...]) -> bool:
        """Whether the turn was carried out; a model or test may have failed in it."""
        out, project = self.settings.out, self.settings.project
        try:
            compiled = project.compile()
            manifest = compiled.manifest
            if not compiled.project.broken:
                self.follower.paths = compiled.project.paths
            if manifest.errors:
                out.event(TurnStarted(self.number, files, None, 0, now()))
                out.diagnostics(manifest.errors)
                return False
            choice = project.select(manifest, self.selection)
            nodes = runnable(manifest, choice.nodes, self.watched.command)
            compiled = project.defer(compiled, nodes, self.selection)
            self._last = compiled, nodes
            due = self.watched.due(compiled, nodes)
        except EngineError:
            out.event(TurnStarted(self.number, files, None, 0, now()))
            raise
        out.event(TurnStarted(self.number, files, len(due), len(nodes), now()))
        self._warn(manifest, choice.nodes, choice.unmatched)
        if due:
            out.summary(self.watched.run(compiled, nodes, due, out.event))
        return True

    def _warn(self, manifest: Manifest, nodes: Sequence[str], unmatched: Sequence[Diagnostic]) -> None:
        warnings = [*unmatched, *warnings_of(manifest, nodes)]
        new_warnings = [warning for warning in warnings if warning not in self.warned]
        self.warned.update(new_warnings)
        self.settings.out.diagnostics(new_warnings)

    def _open_session(self) -> None:
        """Have a session ready for the next edit; what is wrong with it, that edit shows again."""
        if self._last is None:
            return
        try:
            self.watched.warm_up(*self._last)
        except EngineError as error:
            self._last = None
            self.settings.out.diagnostics(error.diagnostics)
