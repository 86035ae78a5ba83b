"""Sinks under `engine start`: their runs, the snapshots that tests have passed on, and what is not delivered yet."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api.keep_running.live_turns import EndedTurn, TurnContext, internal_error
from engine.compile import Manifest, Model, Sink, Target
from engine.errors import Diagnostic, EngineError
from engine.events import INTERRUPTED, Diagnosed, Status
from engine.lake.lake_reader import Lake
from engine.live.lag import Lag
from engine.node_ids import SINK, TESTS
from engine.runtime.queue.live_nodes import LiveNode

if TYPE_CHECKING:
    from engine.compile import Compiled
    from engine.lake.table_facts import TableFacts
    from engine.sinks.position import Position

_log = logging.getLogger("engine.api")

_LAG_SECONDS = 60.0


@dataclass(slots=True)
class LiveSinks:
    """The sinks of a process, and how far they have got; read and written by several threads, one key at a time.

    Attributes:
        sinks: by id.
        tested_models: ids of models of which a sink waits until their tests have passed.
        positions: by id of a sink, where its last delivery in this process ended.
        tested: by id of a model, the snapshot that its table had before its tests passed last.
    """

    sinks: Mapping[str, Sink] = field(default_factory=dict)
    tested_models: frozenset[str] = frozenset()
    positions: dict[str, Position] = field(default_factory=dict)
    tested: dict[str, int] = field(default_factory=dict)
    # The newest lags, with how much had happened and the time when they were read.
    _newest: tuple[int, float, Mapping[str, tuple[Lag, ...]]] | None = None

    def use(self, manifest: Manifest, nodes: Mapping[str, LiveNode]) -> None:
        sink_ids = [id_ for id_ in nodes if id_.startswith(SINK)]
        self.sinks = {id_: sink for id_ in sink_ids if isinstance(sink := manifest.nodes[id_], Sink)}
        self.tested_models = frozenset(sink.model for id_, sink in self.sinks.items() if _waits_for_tests(nodes[id_]))

    def note_tested(self, model: str, snapshot: int | None) -> None:
        if snapshot is not None:
            self.tested[model] = snapshot

    def lags(self, compiled: Compiled, event_count: int) -> Mapping[str, tuple[Lag, ...]]:
        """Return what the sinks have not delivered, read again if something has happened since, or after a minute."""
        newest, moment = self._newest, time.monotonic()
        if newest is not None and newest[0] == event_count and moment - newest[1] < _LAG_SECONDS:
            return newest[2]
        lags = {id_: (self.lag(compiled, sink),) for id_, sink in self.sinks.items()}
        self._newest = event_count, moment, lags
        return lags

    def lag(self, compiled: Compiled, sink: Sink) -> Lag:
        return sink_lag(compiled.manifest, compiled.target, sink, self.positions.get(sink.id))


def _waits_for_tests(node: LiveNode) -> bool:
    return any(trigger.startswith(TESTS) for trigger in node.commit_triggers)


def current_snapshot(compiled: Compiled, model_id: str) -> int | None:
    """Return the snapshot that readers of a model's table see; None: there is none.

    Raises EngineError: the catalog cannot be read.
    """
    facts = _table_facts(compiled.manifest, compiled.target, model_id)
    return facts.snapshot if facts is not None else None


def run_sink(context: TurnContext, compiled: Compiled, node: LiveNode, sinks: LiveSinks) -> EndedTurn:
    """Deliver what waits for a sink, up to what its tests have passed on; whatever happens ends only this run."""
    from engine.runtime.deliver_sinks import deliver_sink, sink_diagnostics, sink_finished
    from engine.sinks.delivery import DeliveryLimits, DeliveryStoppedError
    from engine.sinks.target import Written

    began = time.monotonic()
    sink = compiled.manifest.nodes[node.id]
    if not isinstance(sink, Sink):
        raise TypeError(node.id)

    def ended(
        status: Status, message: str = "", findings: Iterable[Diagnostic] = (), *, more: bool = False
    ) -> EndedTurn:
        return EndedTurn(node.id, status, time.monotonic() - began, tuple(findings), message, more=more)

    try:
        until = sinks.tested.get(sink.model) if _waits_for_tests(node) else None
        if _waits_for_tests(node) and not _is_current(compiled, sink, until):
            # A rollback or a full refresh: the tests run again, and then this sink.
            return ended(Status.UNCHANGED)
        limits = DeliveryLimits(context.stop, began + context.seconds)
        delivered = deliver_sink(compiled.manifest, compiled.target, sink, until, limits)
    except DeliveryStoppedError:
        return ended(Status.SKIPPED, INTERRUPTED)
    except EngineError as error:
        findings = sink_diagnostics(sink, error)
    except Exception as error:  # noqa: BLE001 - it ends this run; the others continue
        _log.error("delivery of %s", node.id, exc_info=error)
        findings = [internal_error(error)]
    else:
        sinks.positions[sink.id] = delivered.position
        finished = sink_finished(sink, began, delivered.written)
        context.emit(finished)
        return ended(finished.status, more=delivered.more)
    for finding in findings:
        context.emit(Diagnosed(finding))
    context.emit(sink_finished(sink, began, Written(), findings[0].message))
    return ended(Status.ERROR, findings[0].message, findings)


def sink_lag(manifest: Manifest, target: Target, sink: Sink, position: Position | None) -> Lag:
    """Return the snapshots of a sink's table that are not delivered; None in place of their number: not known."""
    name = sink.model.partition(".")[2]
    try:
        facts = _table_facts(manifest, target, sink.model)
    except EngineError:
        return Lag(name, "snapshots", None)
    if position is None or facts is None:
        return Lag(name, "snapshots", None)
    waiting = []
    for snapshot in facts.history:
        if snapshot.id == position.snapshot:
            break
        waiting.append(snapshot)
    if waiting and len(waiting) == len(facts.history) and position.snapshot is not None:
        # A full refresh or a rollback: the two versions are compared.
        waiting = waiting[:1]
    waiting = [snapshot for snapshot in waiting if not snapshot.rewrites_files]
    oldest = min((snapshot.at / 1000 for snapshot in waiting), default=None)
    return Lag(name, "snapshots", len(waiting), oldest)


def _is_current(compiled: Compiled, sink: Sink, snapshot: int | None) -> bool:
    """Whether a snapshot is in the history of the table that readers see."""
    facts = _table_facts(compiled.manifest, compiled.target, sink.model)
    return facts is not None and snapshot is not None and any(one.id == snapshot for one in facts.history)


def _table_facts(manifest: Manifest, target: Target, model_id: str) -> TableFacts | None:
    model = manifest.nodes[model_id]
    if not isinstance(model, Model):
        raise TypeError(model_id)
    return Lake(target.catalog).table(model.relation.schema, model.relation.name)
