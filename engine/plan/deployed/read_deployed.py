"""Reading what is deployed: files and the catalog, without Java and without locks, and nothing is written.

A build reads under its locks. Without them (`engine plan`) a build beside may replace a file between two looks: what
could not be read is read again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from engine.compile import DataTest, Manifest, Model, Source, Target
from engine.errors import Diagnostic, EngineError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.moved_lake import check as check_not_moved
from engine.lake.commits import STAGED
from engine.lake.table_facts import Lake, TableFacts
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel, DeployedSource, LastWriter
from engine.plan.deployed.killed_refresh import published_refresh
from engine.plan.deployed.state_folder import environment, table_state
from engine.plan.deployed.stream_order import in_text, recorded
from engine.sources import KINDS, Place, iceberg
from engine.sources.files import file_source, listing
from engine.state import ModelState, Phase, TableState

_ATTEMPTS, _PAUSE = 3, 0.05
_BATCHES = "batches"


def read_deployed(manifest: Manifest, target: Target, place: Place, selected: Iterable[str]) -> Deployed:
    """Read what there is of some nodes and of what they read.

    Args:
        manifest: the compiled project.
        target: where it is built.
        place: the project's folder, and what the target knows.
        selected: ids of models and tests.

    Raises:
        SetupError: `lake-moved`, `lake-outside`, `catalog`: the catalog cannot be read.
    """
    check_not_moved(target.catalog)
    lake = Lake(target.catalog)
    chosen = [manifest.nodes[node] for node in selected]
    models = [node for node in chosen if isinstance(node, Model)]
    tests = [node for node in chosen if isinstance(node, DataTest)]
    read = {i: manifest.nodes[i] for m in models for i in _reads(manifest, m)}
    tested = {i: manifest.nodes[i] for test in tests for i in test.depends_on}
    upstream = [n for i, n in read.items() if isinstance(n, Model) and n not in models]
    views = {schema: _views(target, schema) for schema in {m.relation.schema for m in [*models, *upstream]}}
    names = {schema: lake.names(schema) for schema in {m.relation.schema for m in models}}
    found = {m.id: _steady(partial(_model, target, lake, m, names[m.relation.schema], views)) for m in models}
    return Deployed(
        {**found, **{m.id: _steady(partial(_upstream, lake, m, views)) for m in upstream}},
        {i: _source(n, place) for i, n in {**read, **tested}.items() if isinstance(n, Source)},
        {m.id: in_text(manifest, m, place) for m in models if m.streaming},
        frozenset(_built(manifest, target, models, found)),
        environment(manifest, target),
    )


def _reads(manifest: Manifest, model: Model) -> Iterator[str]:
    """Yield the ids of what a model reads; behind views that of their queries."""
    for item in model.inputs:
        yield item.node
        node = manifest.nodes[item.node]
        if isinstance(node, Model) and not node.streaming:
            yield from _reads(manifest, node)


def _views(target: Target, schema: str) -> frozenset[str]:
    return frozenset(entry.name for entry in catalog_database.entries(target.catalog, schema) if entry.view)


def _steady(read: Callable[[], DeployedModel]) -> DeployedModel:
    """Read something that a build beside may be replacing; what cannot be read in the end is a fault."""
    for attempt in range(_ATTEMPTS):
        try:
            return read()
        except (EngineError, FileNotFoundError) as error:
            if attempt == _ATTEMPTS - 1:
                return DeployedModel(faults=_diagnostics(error))
            time.sleep(_PAUSE)
    raise AssertionError


def _diagnostics(error: EngineError | OSError) -> tuple[Diagnostic, ...]:
    if isinstance(error, EngineError):
        return error.diagnostics
    return (Diagnostic("state-unreadable", f"{error.filename} cannot be read: {error.strerror}"),)


def _upstream(lake: Lake, model: Model, views: dict[str, frozenset[str]]) -> DeployedModel:
    """What a model that is not selected gives to those that read it."""
    relation = model.relation
    return DeployedModel(table=lake.table(relation.schema, relation.name), view=relation.name in views[relation.schema])


def _model(
    target: Target, lake: Lake, model: Model, names: tuple[str, ...], views: dict[str, frozenset[str]]
) -> DeployedModel:
    folder, relation = table_state(target, model), model.relation
    dropping = folder.drop() is not None
    pending = folder.pending()
    table = lake.table(relation.schema, relation.name)
    done = published_refresh(model, pending, table) if pending is not None else None
    state = done or folder.load()
    if state is not None and state is not done and pending is not None and state.generation == pending.generation:
        # Of a table whose state is lost there is nothing but the refresh.
        state = None
    written = table
    back_to = state.snapshot if state is not None else None
    if table is not None and (STAGED in table.branches or (back_to is not None and not table.holds(back_to))):
        written = lake.table(relation.schema, relation.name, STAGED, back_to)
    streamed = model.streaming and state is not None
    checkpoint = read_checkpoint(folder.checkpoint(state.generation)) if streamed and state is not None else None
    wanted = state is not None and state.batch is None and f"{relation.name}__quarantine" in names
    quarantine = lake.table(relation.schema, f"{relation.name}__quarantine") if wanted else None
    return DeployedModel(
        state,
        _writer(model, folder, state, table),
        table,
        written,
        relation.name in views[relation.schema],
        quarantine,
        checkpoint,
        pending is not None or _left(folder, state, relation.name, names),
        dropping,
    )


def _writer(model: Model, folder: TableState, state: ModelState | None, table: TableFacts | None) -> LastWriter | None:
    """What wrote a table last; a table whose first build failed was written by nothing."""
    if state is None or not state.fingerprint or (state.phase is Phase.BUILDING and table is None):
        return None
    began = recorded(folder, state.generation) if model.streaming and state.batch is not None else None
    said = model.state_partitions is not None or model.operation.state_provider is not None
    frozen = read_checkpoint(folder.checkpoint(state.generation)).settings if said else {}
    return LastWriter(state.fingerprint, folder.facts(state), began, frozen)


def _left(folder: TableState, state: ModelState | None, name: str, names: tuple[str, ...]) -> bool:
    """Whether a build that was killed left something beside a table."""
    if state is None:
        return False
    others = any(number != state.generation for number in folder.generations())
    beside = re.compile(rf"{re.escape(name)}__(g\d+|seed(?!{state.generation}_)\d+_\w+)")
    return others or (folder.generation(state.generation) / _BATCHES).exists() or any(map(beside.fullmatch, names))


def _source(source: Source, place: Place) -> DeployedSource:
    spec = source.spec
    try:
        KINDS[spec.format].check(spec, place)
        files = listing.listed_here(spec, place) if spec.format in file_source.FORMATS else None
        table = iceberg.facts(spec, place) if spec.format in iceberg.FORMATS else None
    except EngineError as error:
        return DeployedSource(error.diagnostic.at(source.location, source.name))
    return DeployedSource(files=tuple(files) if files is not None else None, table=table)


def _built(
    manifest: Manifest, target: Target, models: Iterable[Model], found: dict[str, DeployedModel]
) -> Iterator[str]:
    """The models that have a state, among some and the streams from them."""
    chosen = {model.id for model in models}
    yield from (node for node in chosen if found[node].state is not None)
    for model in manifest.models:
        if model.id not in chosen and any(item.stream and item.node in chosen for item in model.inputs):
            try:
                built = table_state(target, model).load() is not None
            except EngineError:
                built = True
            if built:
                yield model.id
