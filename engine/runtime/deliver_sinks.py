"""The sinks of a build: each delivers what its table has, once the model and its tests have ended well."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine.compile import Manifest, Model, Sink, Target
from engine.compile.nodes.delivered_columns import delivered_columns
from engine.errors import Diagnostic, EngineError, ProjectError, StateError
from engine.events import Diagnosed, Emit, RunResults, SinkFinished, Status, now
from engine.lake.changes.committed_rows import CommittedTable, committed_table
from engine.lake.lake_reader import Lake
from engine.sinks.delivery import Delivered, DeliveryLimits, deliver, find_undelivered
from engine.sinks.postgres import PostgresTarget
from engine.sinks.target import SinkColumn, SinkSpec, SinkTarget, Written


@dataclass(frozen=True, slots=True)
class OpenSink:
    """A sink with the table as it is now, and a connection to where it delivers."""

    sink: Sink
    spec: SinkSpec
    table: CommittedTable
    target: SinkTarget


def deliver_sinks(
    manifest: Manifest, target: Target, sinks: Sequence[str], run: Sequence[str], results: RunResults, emit: Emit
) -> None:
    """Deliver one sink after the other; `run` are the models and tests of the run, `results` how those ended."""
    ended = {result.node: result.status for result in results.results}
    unfit = {node for node in run if node not in ended or ended[node].failed}
    for index, node in enumerate(sinks, len(run) + 1):
        sink = manifest.nodes[node]
        if not isinstance(sink, Sink):
            raise TypeError(node)
        begin, total = time.monotonic(), len(run) + len(sinks)
        if message := _obstacle(manifest, sink, unfit):
            emit(SinkFinished(node, index, total, Status.SKIPPED, 0.0, sink.place, message=message, at=now()))
            continue
        try:
            written = deliver_sink(manifest, target, sink).written
        except EngineError as error:
            diagnostics = sink_diagnostics(sink, error)
            for one in diagnostics:
                emit(Diagnosed(one))
            emit(sink_finished(sink, begin, Written(), diagnostics[0].message, index, total))
        else:
            emit(sink_finished(sink, begin, written, "", index, total))


def deliver_sink(
    manifest: Manifest, target: Target, sink: Sink, until: int | None = None, limits: DeliveryLimits | None = None
) -> Delivered:
    """Deliver the rows of one sink, up to a snapshot of its table or all.

    Raises:
        EngineError: as `open_sink` and `deliver`.
        DeliveryStoppedError: `limits.stop` was set.
    """
    with open_sink(manifest, target, sink, until) as opened:
        return deliver(opened.spec, opened.table, opened.target, from_now=sink.from_now, limits=limits)


def sink_finished(
    sink: Sink, begin: float, written: Written, error: str = "", index: int = 1, total: int = 1
) -> SinkFinished:
    """Return the event of a delivery that began at a time of the monotonic clock."""
    status = Status.ERROR if error else Status.SUCCESS if written != Written() else Status.UNCHANGED
    return SinkFinished(
        sink.id, index, total, status, time.monotonic() - begin, sink.place, written.upserted, written.deleted,
        error, now(),
    )  # fmt: skip


def sink_diagnostics(sink: Sink, error: EngineError) -> list[Diagnostic]:
    return [_of_sink(sink, one) for one in error.diagnostics]


@contextmanager
def open_sink(manifest: Manifest, target: Target, sink: Sink, until: int | None = None) -> Iterator[OpenSink]:
    """Open the table of a sink, up to a snapshot or all of it, and the place that it delivers to.

    Raises:
        StateError: `sink-unpublished`.
        ProjectError: `sink-personal`; `secret-untrusted`, `env-missing`, `connection-settings`.
        SetupError: the catalog or the target does not answer.
    """
    model = manifest.nodes[sink.model]
    if not isinstance(model, Model):
        raise TypeError(sink.model)
    if model.deferred_from is not None:
        message = f"the model '{model.name}' is read from another target, and the sink '{sink.name}' delivers its own"
        raise StateError("sink-unpublished", message, f"Build it here: engine build -s {model.name}.")
    table = committed_table(Lake(target.catalog), model.relation.schema, model.relation.name, until)
    if table is None:
        message = f"the table of the sink '{sink.name}' does not exist: {model.relation}"
        raise StateError("sink-unpublished", message, f"Build it: engine build -s {model.name}.")
    spec = _spec(manifest, target, sink, model, table)
    place = _sink_target(spec, sink, target.connections[sink.connection]())
    try:
        yield OpenSink(sink, spec, table, place)
    finally:
        place.close()


def _sink_target(spec: SinkSpec, sink: Sink, settings: Mapping[str, Any]) -> SinkTarget:
    if not sink.topic:
        return PostgresTarget(spec, sink.connection, settings, sink.table)
    from engine.sinks.kafka import KafkaTarget
    from engine.sources.connection import native_settings, read_connection

    connection = read_connection(sink.connection, settings)
    client = native_settings(connection.addresses, settings.get("security") or {}, lambda _: None)
    return KafkaTarget(spec, sink.connection, client, sink.topic)


def waiting_text(manifest: Manifest, target: Target, sink: Sink) -> str:
    """Return how much waits for a sink, in words, or why that is not known."""
    try:
        with open_sink(manifest, target, sink) as opened:
            undelivered = find_undelivered(opened.spec, opened.table, opened.target.position(), from_now=sink.from_now)
            rows = sum(opened.table.rows_added(commit) for commit in undelivered.commits)
    except EngineError as error:
        return f"unknown: {error.diagnostics[0].message}"
    if not undelivered.commits:
        return "nothing waits"
    number = len(undelivered.commits)
    return f"{number:,} commit{'s' * (number != 1)} with {rows:,} added row{'s' * (rows != 1)} wait"


def _spec(manifest: Manifest, target: Target, sink: Sink, model: Model, table: CommittedTable) -> SinkSpec:
    columns_by_name = {column.name.lower(): column for column in table.columns}
    sink_columns = delivered_columns(manifest, model, sink, columns_by_name)
    key = [name.lower() for name in sink.key]
    if absent := [name for name in (*sink_columns, *key) if name not in columns_by_name]:
        message = f"the table of '{model.name}' has no column '{absent[0]}' of the sink '{sink.name}'"
        raise StateError("sink-unpublished", message, f"Build the model: engine build -s {model.name}.")
    if unlisted := [name for name in key if name not in sink_columns]:
        message = (
            f"the column '{unlisted[0]}' of the key of the sink '{sink.name}' holds personal data, and is not listed"
        )
        raise ProjectError("sink-personal", message, f"List it: columns: [{', '.join((*unlisted, *sink_columns))}].")
    columns = tuple(SinkColumn(columns_by_name[name].name, columns_by_name[name].type) for name in sink_columns)
    unique = bool(model.write.unique_key) and {name.lower() for name in model.write.unique_key} <= set(key)
    identity = f"{manifest.project}/{target.name}/{sink.name}"
    return SinkSpec(
        sink.name, identity, columns, tuple(columns_by_name[name].name for name in key),
        unique and not _versions(model), sink.create,
    )  # fmt: skip


def _versions(model: Model) -> bool:
    """Whether the table has several rows of a key of the model."""
    return bool(model.write.history.columns)


def _obstacle(manifest: Manifest, sink: Sink, unfit: Collection[str]) -> str:
    """Why a sink has to wait; empty: it has not."""
    if sink.model in unfit:
        return f"because '{sink.model.partition('.')[2]}' did not succeed"
    units = {test.id: test.name for test in manifest.unit_tests if test.model == sink.model}
    tests = {test.id: test.name for test in manifest.tests_of(sink.model)} | units
    failed = next((name for test, name in tests.items() if test in unfit), "")
    return f"because the test '{failed}' did not pass" if failed else ""


def _of_sink(sink: Sink, diagnostic: Diagnostic) -> Diagnostic:
    return Diagnostic(
        diagnostic.code,
        diagnostic.message,
        diagnostic.hint,
        diagnostic.level,
        sink.name,
        diagnostic.location or sink.location,
    )
