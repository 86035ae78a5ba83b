"""The tables that a model reads as streams: where each begins, where it continues, and whether nothing is missing.

Spark's checkpoint has one offset a source and no names; snapshot ids tell which is of which table. Else there would be
a bare NullPointerException (rolled back or replaced), 'expired or removed' (expired, or recreated), or rows that
silently never come (all measured, Iceberg 1.12.0).

The plan asks before a build, also of tables built in it (what is wrong now is wrong after more commits), and the
runtime when the query starts (`engine.runtime.inputs.initial_snapshot`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.compile import Manifest, Model, Source
from engine.compile.nodes.model_settings import OnUpstreamDelete
from engine.errors import Diagnostic, EngineError, Location, StateError
from engine.lake import snapshot_history
from engine.lake.snapshot_history import Start, changed_columns
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.new_checkpoint import begun_at
from engine.sources import Place, SourceSpec, source_traits, table_traits
from engine.state import ModelState

ANEW = "rebuild '{0}' from all rows of the table: engine build -f -s {0}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A table that a model reads as a stream; `spec` None: it is a model's."""

    node: str
    name: str
    table: tuple[str, str, str]
    facts: TableFacts
    ignore_deletes: bool
    spec: SourceSpec | None = None

    @property
    def full(self) -> str:
        return ".".join(self.table)


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a table is read in this run; `first` None: there is no snapshot to begin with yet."""

    start: Start
    has_begun: bool = False
    first: int | None = None

    @property
    def elsewhere(self) -> bool:
        return self.start.seed is not None or (self.start.at is not None and not self.has_begun)


def upstreams_of(
    manifest: Manifest,
    model: Model,
    of_source: Place | Callable[[Source], tuple[tuple[str, str, str], TableFacts]],
    of_model: Callable[[Model], TableFacts | None],
) -> tuple[Upstream, ...]:
    """Return the tables that a model reads as streams, each once; `of_model` gives a table as readers see it.

    Raises StateError: `upstream-history`, a model's table does not exist.
    """
    upstreams: dict[str, Upstream] = {}
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if not item.stream or not is_table(node):
            continue
        ignore = item.on_upstream_delete is OnUpstreamDelete.IGNORE
        before = upstreams.get(item.node)
        if isinstance(node, Source):
            if isinstance(of_source, Place):
                name, facts = table_traits(node.spec).now(node.spec, of_source)
            else:
                name, facts = of_source(node)
            upstream = Upstream(item.node, item.name, name, facts, ignore, node.spec)
        elif isinstance(node, Model):
            relation, table = node.relation, of_model(node)
            if table is None:
                message = f"the table {relation} that '{model.name}' streams from does not exist"
                raise StateError("upstream-history", message, f"Build '{node.name}' first.", node=model.name)
            upstream = Upstream(item.node, item.name, (relation.catalog, relation.schema, relation.name), table, ignore)
        else:
            raise TypeError(item.node)
        # Read twice, the stricter of the two counts.
        upstreams[item.node] = upstream if before is None or not ignore else before
    return tuple(upstreams.values())


def is_table(node: object) -> bool:
    return isinstance(node, Model) or (isinstance(node, Source) and source_traits(node.spec.format).is_table)


def decide_start(model: Model, upstream: Upstream, seed: str, begin: Mapping[str, Any]) -> Start:
    """Return where the stream of a new generation begins; `begin`: how it was reset (`engine.state.ModelState`).

    Raises StateError: `upstream-history` or `upstream-rewritten`.
    """
    table = upstream.facts
    try:
        start = table_traits(upstream.spec).start(upstream.spec, table) if upstream.spec is not None else None
        if upstream.spec is None and (at := begin.get("at")) is not None:
            # What waits for tests was committed before it can be read: it comes behind what can be read now, and in the
            # place of compactions since.
            newest = next((s.at + 1 for s in table.history if not s.rewrites_files), at)
            start = snapshot_history.from_time(upstream.name, table, min(at, newest))
    except EngineError as error:
        raise _as_state_error(error, model) from error
    if start is None:
        return snapshot_history.from_first_row(table, seed, ignore_deletes=upstream.ignore_deletes)
    _refuse_rewriting(model, upstream, [s for s in table.history if start.at is None or s.at >= start.at], start)
    return start


def _as_state_error(error: EngineError, model: Model) -> StateError:
    diagnostic = error.diagnostic
    return StateError(diagnostic.code, diagnostic.message, diagnostic.hint, node=model.name)


def resume_reading(
    model: Model,
    state: ModelState,
    checkpoint: CheckpointFacts,
    upstreams: Sequence[Upstream],
    seeds: Mapping[str, TableFacts],
) -> dict[str, TableReading]:
    """Return where the streams of a generation that has begun continue, by node.

    Raises:
        StateError: `upstream-replaced`, `upstream-history`, `upstream-rewritten` or `source-columns`; nothing was
            read.
    """
    committed, started = _snapshots(checkpoint.offsets), _snapshots(checkpoint.started_offsets)
    known_snapshots = {s.id for table in (*(u.facts for u in upstreams), *seeds.values()) for s in table.history}
    lost_snapshots = (committed | started) - known_snapshots
    readings = {}
    for upstream in upstreams:
        start = recorded_start(state, upstream)
        if start.uuid != upstream.facts.uuid:
            raise _replaced(model, upstream)
        if start.seed is not None and upstream.node not in seeds:
            message = f"the table {start.seed} with the initial snapshot of {upstream.full} does not exist"
            raise StateError("upstream-history", message, f"Restore it, or {ANEW.format(model.name)}", node=model.name)
        ids = [s.id for s in upstream.facts.history]
        if lost_snapshots and not (committed | started).intersection(ids):
            raise _lost_position(model, upstream, lost_snapshots)
        reached = [ids.index(i) for i in ids if i in committed]
        rest = upstream.facts.history[: max(reached)] if reached else unread(model, upstream, start)
        _refuse_rewriting(model, upstream, rest, start)
        _refuse_lost_values(model, upstream, rest)
        readings[upstream.node] = TableReading(start, bool(reached), None if reached else _first(rest))
    return readings


def recorded_start(state: ModelState, upstream: Upstream) -> Start:
    stored_start = state.starts.get(upstream.node)
    return Start(**stored_start) if stored_start else Start(upstream.facts.uuid)


def _snapshots(offsets: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    return frozenset(o["snapshot_id"] for o in offsets if isinstance(o.get("snapshot_id"), int)) - {-1}


def begin_reading(model: Model, upstream: Upstream, start: Start) -> TableReading:
    """How a table is read by a generation that begins. Raises StateError: `upstream-history`."""
    return TableReading(start, first=_first(unread(model, upstream, start)))


def _first(snapshots: Sequence[SnapshotFacts]) -> int | None:
    return snapshots[-1].id if snapshots else None


def unread(model: Model, upstream: Upstream, start: Start) -> Sequence[SnapshotFacts]:
    """The snapshots of a table of which nothing was read yet, newest first; all of them must still be known.

    Raises StateError: `upstream-history`.
    """
    table = upstream.facts
    if not table.history:
        return ()
    if start.snapshot is not None:
        behind = [s for s in table.history if start.snapshot in {s.id, s.parent}]
        if not behind:
            raise _expired(model, upstream)
        rest = table.history[: table.history.index(behind[0]) + (behind[0].id != start.snapshot)]
        first = snapshot_history.first_read(table.history, start.at or 0)
        if rest and (first is None or first.id != rest[-1].id):
            message = snapshot_history.tied(upstream.name, rest[-1])
            raise StateError("upstream-history", message, f"To continue, {ANEW.format(model.name)}", node=model.name)
        return rest
    if not table.complete and (start.at is None or start.at < table.history[-1].at):
        raise _expired(model, upstream)
    return [s for s in table.history if start.at is None or s.at >= start.at]


def _expired(model: Model, upstream: Upstream) -> StateError:
    message = f"'{model.name}' has not read the first commits of {upstream.full}, which have expired"
    hint = f"To continue, {ANEW.format(model.name)}"
    return StateError("upstream-history", message, hint, node=model.name)


def _replaced(model: Model, upstream: Upstream) -> StateError:
    message = f"{upstream.full} was dropped and recreated since '{model.name}' read it"
    hint = f"Restore the old table, or {ANEW.format(model.name)}"
    return StateError("upstream-replaced", message, hint, node=model.name)


def _lost_position(model: Model, upstream: Upstream, lost_snapshots: frozenset[int]) -> StateError:
    table = upstream.facts
    back = sorted(lost_snapshots & table.snapshots)
    introduction = f"'{model.name}' has read {upstream.full} up to snapshot {(back or sorted(lost_snapshots))[0]}, and"
    anew = ANEW.format(model.name)
    if table.history and table.history[-1].parent is None and table.history[-1].operation == "overwrite":
        message = f"{introduction} the table was rebuilt or replaced since then: its rows would be re-read"
        hint = f"To continue with the new table, {anew}"
        return StateError("upstream-replaced", message, hint, node=model.name)
    if back or table.complete:
        message = f"{introduction} that snapshot is no longer in its history: the table was rolled back"
        hint = f"Roll {upstream.full} forward again, or {anew}"
        return StateError("upstream-replaced", message, hint, node=model.name)
    message = f"{introduction} that snapshot has expired, possibly with unread commits after it"
    hint = (
        f"To continue, {anew} Keep snapshots of {upstream.full} longer than the time between builds of '{model.name}'."
    )
    return StateError("upstream-history", message, hint, node=model.name)


def _refuse_rewriting(model: Model, upstream: Upstream, unread: Sequence[SnapshotFacts], start: Start) -> None:
    rewriting = snapshot_history.rewriting(unread, ignore_deletes=upstream.ignore_deletes)
    if rewriting is None:
        return
    when = snapshot_history.time_of(rewriting)
    message = (
        f"'{model.name}' cannot stream from {upstream.full}: its snapshot {rewriting.id} of {when} is a commit of "
        f"operation '{rewriting.operation}', but a stream reads append-only tables, not rows that "
        f"{'are deleted' if rewriting.operation == 'delete' else 'are replaced'}"
    )
    if rewriting.backfills and rewriting.marker("model"):
        # A kill: streams are moved behind such a commit by the command that made it.
        command = f"engine backfill {rewriting.marker('model')} .."
        hint = f"Repeat the backfill that created it, which moves '{model.name}' behind it: {command}"
        raise StateError("upstream-rewritten", message, hint, node=model.name)
    ways = [f"read it in full (remove '{upstream.name}' from 'streams:')"]
    if rewriting.operation == "delete":
        ways.append("skip deletions (on_upstream_delete: ignore)")
    if start.at is not None and start.seed is None:
        ways.append(f"start after it ({' or '.join(k for k in ('starting_snapshot', 'starting_timestamp'))})")
    ways.append(ANEW.format(model.name))
    raise StateError("upstream-rewritten", message, f"To continue: {'; '.join(ways)}", node=model.name)


def _refuse_lost_values(model: Model, upstream: Upstream, unread: Sequence[SnapshotFacts]) -> None:
    """Reject unread rows with values of a column that was dropped and added again since.

    Iceberg finds values by the ids of columns, of which the new one has another: Spark reads NULL without a word
    (measured, Iceberg 1.12.0).
    """
    table = upstream.facts
    adding = {s.schema: s for s in unread if not s.rewrites_files}
    for schema, snapshot in adding.items():
        replaced_paths = table.replaced_columns(schema)
        if not replaced_paths:
            continue
        # Reads SQL, which takes a tenth of a second.
        from engine.plan.comparable_facts import names_column

        replaced_paths = [path for path in replaced_paths if names_column(model.facts, path[0])]
        if not replaced_paths:
            continue
        names = ", ".join(dict.fromkeys(path[0] for path in replaced_paths))
        message = (
            f"'{model.name}' has not read all rows of {upstream.full} that were written before column {names} was "
            "dropped and added again, and would read NULL for their values"
        )
        hint = (
            f"Snapshot {snapshot.id} of {snapshot_history.time_of(snapshot)} has the values: write them to the new "
            f"column first, or to continue without them, {ANEW.format(model.name)}"
        )
        raise StateError("source-columns", message, hint, node=model.name)


def upstream_faults(
    manifest: Manifest, model: Model, deployed: Deployed, built: Collection[str], begin: Mapping[str, Any] | None
) -> Iterator[Diagnostic]:
    """Yield `upstream-history`, `-replaced`, `-rewritten`, `source-columns`; `begin` None: the stream resumes."""
    tables = {
        item.node: _table(deployed, manifest.nodes[item.node])
        for item in model.inputs
        if item.stream and is_table(manifest.nodes[item.node])
    }
    if unread := [fault for node in tables for fault in deployed.models.get(node, DeployedModel()).faults]:
        yield from unread
        return
    # A table that is made first has nothing that could be wrong; that of a source is reported as missing elsewhere.
    if any(facts is None and (node in built or node in deployed.sources) for node, facts in tables.items()):
        return

    def of_source(source: Source) -> tuple[tuple[str, str, str], TableFacts]:
        upstreams = deployed.sources[source.id]
        if upstreams.table is None:
            raise TypeError(source.id)
        return upstreams.parts, upstreams.table

    deployed_model = deployed.models.get(model.id, DeployedModel())
    state, place = deployed_model.state, Location(model.file)
    try:
        upstreams = upstreams_of(manifest, model, of_source, lambda node: tables[node.id])
        if begin is None and state is not None and deployed_model.checkpoint is not None:
            resume_reading(model, state, deployed_model.checkpoint, upstreams, deployed_model.initial_snapshots)
    except EngineError as error:
        yield from (diagnostic.at(place, model.name) for diagnostic in error.diagnostics)
        return
    for upstream in upstreams if begin is not None else ():
        try:
            begin_reading(model, upstream, decide_start(model, _moved(upstream, begin or {}), "", begin or {}))
        except EngineError as error:
            yield from (diagnostic.at(place, model.name) for diagnostic in error.diagnostics)
    if begin is None and state is not None:
        yield from _changed_columns(manifest, model, deployed, state)


def _table(deployed: Deployed, node: object) -> TableFacts | None:
    if isinstance(node, Source):
        source = deployed.sources.get(node.id)
        return source.table if source is not None else None
    return deployed.models.get(node.id, DeployedModel()).table if isinstance(node, Model) else None


def _moved(upstream: Upstream, begin: Mapping[str, Any]) -> Upstream:
    if upstream.spec is None or not begin:
        return upstream
    return replace(upstream, spec=begun_at(upstream.spec, begin.get("at")))


def _changed_columns(manifest: Manifest, model: Model, deployed: Deployed, state: ModelState) -> Iterator[Diagnostic]:
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream or not isinstance(node, Source) or source is None or not source.columns:
            continue
        before = state.sources.get(node.id, {}).get("columns", {})
        fault = changed_columns(".".join(source.parts), model.name, before, source.columns)
        if fault is not None:
            yield fault.at(node.location, model.name)
