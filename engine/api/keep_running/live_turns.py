"""What workers of `engine start` do: a turn of a model with its tests, or the maintenance of its table."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.api.one_session import session_target
from engine.api.warm_session import WarmSession
from engine.compile import DataTest, Model
from engine.errors import Diagnostic, EngineError, Level
from engine.events import (
    INTERRUPTED,
    Diagnosed,
    Emit,
    Event,
    ModelFinished,
    RunFinished,
    RunResults,
    RunStarted,
    Status,
    StepStarted,
    TestFinished,
)
from engine.runtime.queue.live_nodes import LiveNode
from engine.secrets.scrubber import scrub
from engine.spark.exceptions import error_text
from engine.state.lock_holder import LockHolder, TableLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from engine.api.project import Project
    from engine.compile import Compiled
    from engine.runtime.operations.maintain import Cared

_log = logging.getLogger("engine.api")


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What turns are made with.

    `seconds`: after which a turn ends between two micro-batches. `emit`: gets their events, from several threads.
    `committed`: gets the id of a node whose rows can be read, from several threads, before its turn has ended.
    """

    project: Project
    seconds: float
    stop: threading.Event
    session: WarmSession
    emit: Emit
    committed: Callable[[str], None]

    @contextmanager
    def opening(self, *arguments: Any, **keywords: Any) -> Iterator[SparkSession]:
        with self.session.run(*arguments, **{**keywords, "brief": False}) as spark:
            yield spark


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """How a turn ended.

    `more`: it left input unread. `committed`: its model wrote something that was not announced. `holder`: the process
    that writes its table, so that the node is on standby; `locked`: it had the table during the turn (False: the turn
    found it free, and nothing to do). `is_shown`: listeners know of the turn.
    """

    node: str
    status: Status
    seconds: float
    findings: tuple[Diagnostic, ...] = ()
    message: str = ""
    more: bool = False
    committed: bool = False
    holder: LockHolder | None = None
    locked: bool = False
    is_shown: bool = True


@dataclass(slots=True)
class Standby:
    """A turn of a node on standby: listeners get no event before it has the table and something to do.

    `holder` has the table, as far as is known. `begin` is called before the first event, with whether the turn has the
    table. `withheld`: events before that. `ended`: whether events are passed on.
    """

    holder: LockHolder
    begin: Callable[[bool], None]
    withheld: list[Event] = field(default_factory=list)
    ended: bool = False

    def end(self, emit: Emit, *, took_over: bool) -> None:
        if not self.ended:
            self.ended = True
            self.begin(took_over)
            for event in self.withheld:
                emit(event)


@dataclass(slots=True)
class _ObservedTurn:
    context: TurnContext
    node: LiveNode
    standby: Standby | None
    began: float = field(default_factory=time.monotonic)
    findings: list[Diagnostic] = field(default_factory=list)
    committed: bool = False

    def hear(self, event: Event) -> None:
        if isinstance(event, ModelFinished | TestFinished) and event.message == INTERRUPTED:
            # Nothing is wrong with a model or a test that was cut off; the next start runs it.
            event = replace(event, status=Status.SKIPPED)
        if isinstance(event, Diagnosed):
            self.findings.append(event.diagnostic)
        if isinstance(event, ModelFinished) and event.status is Status.SUCCESS:
            # Rows that wait for tests of the same turn cannot be read yet.
            if self.node.run == (event.node,) == (self.node.id,):
                self.context.committed(event.node)
            else:
                self.committed = True
        if not isinstance(event, (RunStarted, StepStarted, RunFinished)):
            self._emit(event)

    def _emit(self, event: Event) -> None:
        if self.standby is not None and not self.standby.ended:
            self.standby.withheld.append(event)
        else:
            self.context.emit(event)

    def opening(self, *arguments: Any, **keywords: Any) -> AbstractContextManager[SparkSession]:
        if self.standby is not None:
            self.standby.end(self.context.emit, took_over=True)
        return self.context.opening(*arguments, **keywords)

    def failed(self, findings: Sequence[Diagnostic]) -> EndedTurn:
        if self.context.stop.is_set():
            return self.ended(Status.SKIPPED, INTERRUPTED)
        self.findings = list(findings)
        for one in findings:
            self._emit(Diagnosed(one))
        return self.ended(Status.ERROR, findings[0].message)

    def ended(self, status: Status, message: str = "", **details: Any) -> EndedTurn:
        if self.standby is not None and details.get("holder") is None:
            self.standby.end(self.context.emit, took_over=not status.failed and message != INTERRUPTED)
        is_shown = self.standby is None or self.standby.ended
        seconds = time.monotonic() - self.began
        return EndedTurn(self.node.id, status, seconds, tuple(self.findings), message, is_shown=is_shown, **details)

    def ended_with(self, results: RunResults) -> EndedTurn:
        if (
            self.standby is not None
            and not self.standby.ended
            and _stays_on_standby(self.standby.holder, results, self.node)
        ):
            return self.ended(Status.UNCHANGED, holder=self.standby.holder)
        failed = [result for result in results.results if result.status.failed]
        for result in failed:
            if result.message != INTERRUPTED:
                return self.ended(result.status, result.message, committed=self.committed)
        if failed:
            return self.ended(Status.SKIPPED, INTERRUPTED, committed=self.committed)
        more = any(isinstance(result, ModelFinished) and result.more for result in results.results)
        return self.ended(_status(results, self.node), more=more, committed=self.committed)


def run_turn(
    context: TurnContext, compiled: Compiled, node: LiveNode, within: Sequence[str], standby: Standby | None = None
) -> EndedTurn:
    """Run a node as `build -s NODE` would; whatever happens ends only this turn."""
    from engine.runtime.build import Turn

    observed = _ObservedTurn(context, node, standby)
    turn = Turn(context.seconds, context.stop)
    try:
        results = context.project.execute(
            "build", compiled, node.run, observed.hear, observed.opening, within=within, turn=turn, threads=1
        )
    except TableLockedError as error:
        if error.holder is None or error.holder.is_this_process:
            return observed.failed(error.diagnostics)
        return observed.ended(Status.UNCHANGED, holder=error.holder, locked=True)
    except EngineError as error:
        return observed.failed(error.diagnostics)
    except Exception as error:  # noqa: BLE001 - it ends this turn; the others run
        _log.error("run of %s", node.id, exc_info=error)
        return observed.failed((internal_error(error),))
    return observed.ended_with(results)


def _stays_on_standby(holder: LockHolder, results: RunResults, node: LiveNode) -> bool:
    """Whether a node stays on standby although its table is free: the holder comes back for what arrives next."""
    unchanged = all(result.status is Status.UNCHANGED for result in results.results)
    return unchanged and node.schedule is None and holder.keeps_running and holder.may_live


def maintain_turn(context: TurnContext, compiled: Compiled, node: str, within: Sequence[str]) -> tuple[str, bool]:
    """Maintain the tables of a model; return what was done, in words, and whether it failed."""
    from engine.runtime.context.run_context import jar_sets
    from engine.runtime.operations.maintain import Care, maintain

    manifest = compiled.manifest
    model = manifest.nodes[node]
    if not isinstance(model, Model):
        return "", False
    # The session is that of turns: another one would be opened in its place.
    target = session_target(compiled, within)
    read_nodes = [findings for one in within if isinstance(findings := manifest.nodes[one], Model | DataTest)]
    opening = partial(context.opening, sets=jar_sets(manifest, read_nodes))
    try:
        maintained = list(maintain(manifest, target, [model], context.project.target_dir, Care(), opening))
    except TableLockedError:
        # Whoever has the table maintains it too, or it is done after further commits.
        return "", False
    except EngineError as error:
        return error.diagnostics[0].message, True
    except Exception as error:  # noqa: BLE001 - as for a turn
        _log.error("maintenance of %s", node, exc_info=error)
        return internal_error(error).message, True
    return "; ".join(filter(None, map(_summary, maintained))), any(one.error for one in maintained)


def _summary(maintained: Cared) -> str:
    if maintained.error:
        return f"{maintained.table}: {maintained.error}"
    parts = {
        f"small files {maintained.joined} -> {maintained.into}": maintained.joined,
        f"manifests rewritten {maintained.manifests}": maintained.manifests,
        f"snapshots expired {maintained.expired}": maintained.expired,
        f"orphan files removed {maintained.orphans}": maintained.orphans,
    }
    text = ", ".join(part for part, count in parts.items() if count)
    return f"{maintained.table}: {text}" if text else ""


def internal_error(error: Exception) -> Diagnostic:
    message = scrub(f"internal error: {type(error).__name__}: {error_text(error).partition(chr(10))[0]}")
    return Diagnostic("internal-error", message, "The trace is in target/logs/engine.log.", Level.ERROR)


def _status(results: RunResults, node: LiveNode) -> Status:
    own = [result for result in results.results if result.node == node.id]
    findings = own or list(results.results)
    return findings[0].status if findings else Status.UNCHANGED
