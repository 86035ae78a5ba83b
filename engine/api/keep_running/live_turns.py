"""What workers of `engine start` do: a turn of a model with its tests, or the maintenance of its table."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.api.one_session import session_target
from engine.api.warm_session import WarmSession
from engine.compile import DataTest, Model
from engine.errors import Diagnostic, EngineError, Level
from engine.events import (
    Diagnosed,
    Emit,
    Event,
    ModelFinished,
    RunFinished,
    RunResults,
    RunStarted,
    Status,
    StepStarted,
)
from engine.runtime.queue.live_nodes import LiveNode
from engine.secrets import scrub
from engine.spark.executions import error_text

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
        project: whose models.
        seconds: after which a turn ends between two micro-batches.
        stop: set when the process ends.
        session: in which they run.
        emit: gets their events, from several threads.
    """

    project: Project
    seconds: float
    stop: threading.Event
    session: WarmSession
    emit: Emit

    @contextmanager
    def opening(self, *arguments: Any, **named: Any) -> Iterator[SparkSession]:
        """The session of a turn: it lives long, whatever this turn has to do."""
        with self.session.run(*arguments, **{**named, "brief": False}) as spark:
            yield spark


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """How a turn ended; `more`: it left input unread; `committed`: its model wrote something."""

    node: str
    status: Status
    seconds: float
    findings: tuple[Diagnostic, ...]
    message: str
    more: bool = False
    committed: bool = False


def ended_turn(
    node: LiveNode, status: Status, begin: float, findings: tuple[Diagnostic, ...], message: str, **what: bool
) -> EndedTurn:
    """Return the end of a turn that began at a time of the monotonic clock."""
    return EndedTurn(node.id, status, time.monotonic() - begin, findings, message, **what)


def run_turn(shop: Workshop, compiled: Compiled, node: LiveNode, within: Sequence[str]) -> EndedTurn:
    """Run a node as `build -s NODE` would; whatever happens ends only this turn.

    Args:
        shop: what it is made with.
        compiled: the project as it is in use.
        node: whose turn it is.
        within: ids of all nodes that the session is for.
    """
    from engine.runtime.build import Turn

    begin = time.monotonic()
    findings: list[Diagnostic] = []
    committed: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Diagnosed):
            findings.append(event.diagnostic)
        if isinstance(event, ModelFinished) and event.status is Status.SUCCESS:
            committed.append(event.node)
        if not isinstance(event, (RunStarted, StepStarted, RunFinished)):
            shop.emit(event)

    turn = Turn(shop.seconds, shop.stop)
    try:
        results = shop.project.execute(
            "build", compiled, node.run, hear, shop.opening, within=within, turn=turn, threads=1
        )
    except EngineError as error:
        _report(shop, error.diagnostics)
        return ended_turn(node, Status.ERROR, begin, error.diagnostics, error.diagnostics[0].message)
    except Exception as error:  # noqa: BLE001 - it ends this turn; the others run
        _log.error("a turn of %s", node.id, exc_info=error)
        found = _internal(error)
        _report(shop, (found,))
        return ended_turn(node, Status.ERROR, begin, (found,), found.message)
    failed = [result for result in results.results if result.status.failed]
    status = failed[0].status if failed else _status(results, node)
    more = any(isinstance(result, ModelFinished) and result.more for result in results.results)
    return ended_turn(
        node, status, begin, tuple(findings), failed[0].message if failed else "",
        more=more and not failed, committed=bool(committed),
    )  # fmt: skip


def maintain_turn(shop: Workshop, compiled: Compiled, node: str, within: Sequence[str]) -> tuple[str, bool]:
    """Maintain the tables of a model; return what was done, in words, and whether it failed."""
    from engine.runtime.context.needed_jars import jar_sets
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


def _report(shop: Workshop, found: Iterable[Diagnostic]) -> None:
    """Show why a turn failed, unless it was cut off."""
    if not shop.stop.is_set():
        for one in found:
            shop.emit(Diagnosed(one))


def _internal(error: Exception) -> Diagnostic:
    message = scrub(f"internal error: {type(error).__name__}: {error_text(error).partition(chr(10))[0]}")
    return Diagnostic("internal-error", message, "The trace is in target/logs/engine.log.", Level.ERROR)


def _status(results: RunResults, node: LiveNode) -> Status:
    """The status of the model of a turn, or of its first test."""
    own = [result for result in results.results if result.node == node.id]
    found = own or list(results.results)
    return found[0].status if found else Status.UNCHANGED
