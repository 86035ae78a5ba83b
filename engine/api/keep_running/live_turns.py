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
from engine.secrets import scrub
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
class Workshop:
    """What turns are made with.

    Attributes:
        seconds: after which a turn ends between two micro-batches.
        emit: gets their events, from several threads.
        committed: gets the id of a node whose rows can be read, from several threads, before its turn has ended.
    """

    project: Project
    seconds: float
    stop: threading.Event
    session: WarmSession
    emit: Emit
    committed: Callable[[str], None]

    @contextmanager
    def opening(self, *arguments: Any, **named: Any) -> Iterator[SparkSession]:
        with self.session.run(*arguments, **{**named, "brief": False}) as spark:
            yield spark


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """How a turn ended.

    Attributes:
        more: it left input unread.
        committed: its model wrote something that was not announced (`Workshop.committed`).
        holder: the process that writes its table, so that the node is on standby; None: it is not.
        locked: that process had the table during the turn; False: the turn found it free, and nothing to do.
        shown: listeners know of the turn.
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
    shown: bool = True


@dataclass(slots=True)
class Standby:
    """A turn of a node on standby: nobody hears of it before it has the table and something to do.

    Attributes:
        holder: the process that has the table, as far as is known.
        begin: called before the first event that is heard, with whether the turn has the table.
        withheld: events before that.
        ended: whether events are heard.
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
class _HeardTurn:
    shop: Workshop
    node: LiveNode
    standby: Standby | None
    begun: float = field(default_factory=time.monotonic)
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
                self.shop.committed(event.node)
            else:
                self.committed = True
        if not isinstance(event, (RunStarted, StepStarted, RunFinished)):
            self._emit(event)

    def _emit(self, event: Event) -> None:
        if self.standby is not None and not self.standby.ended:
            self.standby.withheld.append(event)
        else:
            self.shop.emit(event)

    def opening(self, *arguments: Any, **named: Any) -> AbstractContextManager[SparkSession]:
        if self.standby is not None:
            self.standby.end(self.shop.emit, took_over=True)
        return self.shop.opening(*arguments, **named)

    def failed(self, found: Sequence[Diagnostic]) -> EndedTurn:
        if self.shop.stop.is_set():
            return self.ended(Status.SKIPPED, INTERRUPTED)
        self.findings = list(found)
        for one in found:
            self._emit(Diagnosed(one))
        return self.ended(Status.ERROR, found[0].message)

    def ended(self, status: Status, message: str = "", **more: Any) -> EndedTurn:
        if self.standby is not None and more.get("holder") is None:
            self.standby.end(self.shop.emit, took_over=not status.failed and message != INTERRUPTED)
        shown = self.standby is None or self.standby.ended
        seconds = time.monotonic() - self.begun
        return EndedTurn(self.node.id, status, seconds, tuple(self.findings), message, shown=shown, **more)

    def ended_with(self, results: RunResults) -> EndedTurn:
        if self.standby is not None and not self.standby.ended and _stays(self.standby.holder, results, self.node):
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
    shop: Workshop, compiled: Compiled, node: LiveNode, within: Sequence[str], standby: Standby | None = None
) -> EndedTurn:
    """Run a node as `build -s NODE` would; whatever happens ends only this turn."""
    from engine.runtime.build import Turn

    heard = _HeardTurn(shop, node, standby)
    turn = Turn(shop.seconds, shop.stop)
    try:
        results = shop.project.execute(
            "build", compiled, node.run, heard.hear, heard.opening, within=within, turn=turn, threads=1
        )
    except TableLockedError as error:
        if error.holder is None or error.holder.is_this_process:
            return heard.failed(error.diagnostics)
        return heard.ended(Status.UNCHANGED, holder=error.holder, locked=True)
    except EngineError as error:
        return heard.failed(error.diagnostics)
    except Exception as error:  # noqa: BLE001 - it ends this turn; the others run
        _log.error("a turn of %s", node.id, exc_info=error)
        return heard.failed((_internal(error),))
    return heard.ended_with(results)


def _stays(holder: LockHolder, results: RunResults, node: LiveNode) -> bool:
    """Whether a node stays on standby although its table is free: the holder comes back for what arrives next."""
    unchanged = all(result.status is Status.UNCHANGED for result in results.results)
    return unchanged and node.schedule is None and holder.keeps_running and holder.may_live


def maintain_turn(shop: Workshop, compiled: Compiled, node: str, within: Sequence[str]) -> tuple[str, bool]:
    """Maintain the tables of a model; return what was done, in words, and whether it failed."""
    from engine.runtime.context.run_context import jar_sets
    from engine.runtime.operations.maintain import Care, maintain

    manifest = compiled.manifest
    model = manifest.nodes[node]
    if not isinstance(model, Model):
        return "", False
    # The session is that of turns: another one would be opened in its place.
    target = session_target(compiled, within)
    read = [found for one in within if isinstance(found := manifest.nodes[one], Model | DataTest)]
    opening = partial(shop.opening, sets=jar_sets(manifest, read))
    try:
        done = list(maintain(manifest, target, [model], shop.project.target_dir, Care(), opening))
    except TableLockedError:
        # Whoever has the table maintains it too, or it is done after further commits.
        return "", False
    except EngineError as error:
        return error.diagnostics[0].message, True
    except Exception as error:  # noqa: BLE001 - as for a turn
        _log.error("maintenance of %s", node, exc_info=error)
        return _internal(error).message, True
    return "; ".join(filter(None, map(_summary, done))), any(one.error for one in done)


def _summary(done: Cared) -> str:
    if done.error:
        return f"{done.table}: {done.error}"
    parts = {
        f"small files {done.joined} -> {done.into}": done.joined,
        f"manifests rewritten {done.manifests}": done.manifests,
        f"snapshots expired {done.expired}": done.expired,
        f"orphan files removed {done.orphans}": done.orphans,
    }
    text = ", ".join(part for part, count in parts.items() if count)
    return f"{done.table}: {text}" if text else ""


def _internal(error: Exception) -> Diagnostic:
    message = scrub(f"internal error: {type(error).__name__}: {error_text(error).partition(chr(10))[0]}")
    return Diagnostic("internal-error", message, "The trace is in target/logs/engine.log.", Level.ERROR)


def _status(results: RunResults, node: LiveNode) -> Status:
    own = [result for result in results.results if result.node == node.id]
    found = own or list(results.results)
    return found[0].status if found else Status.UNCHANGED
