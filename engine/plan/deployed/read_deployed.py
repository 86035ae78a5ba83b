"""Reading what is deployed: files and the catalog, without Java and without locks, and nothing is written.

A build reads under its locks. Without them (`engine plan`) a build beside may replace a file between two looks: what
could not be read is read again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import DataTest, Manifest, Model, Node, Relation, Source, Target
from engine.compile.pipeline.library_version import library_version
from engine.errors import Diagnostic, EngineError
from engine.lake.catalog.moved_lake import check as check_not_moved
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan import source_changes
from engine.plan.deployed.checkpoint_facts import in_text, read_checkpoint, read_source_record, with_earlier_tables
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel, DeployedSource, LastWriter, with_column_names
from engine.plan.deployed.generations import begun_refresh, has_commits, published_refresh
from engine.plan.deployed.renamed_tables import Renaming, moved_facts, moved_state, renamings, state_now
from engine.plan.deployed.state_folder import environment, table_state
from engine.plan.source_changes import StreamSource
from engine.sources import KINDS, Place, SourceSpec, source_traits
from engine.state import ModelState, Phase, TableState
from engine.state import checkpoint as spark_checkpoint

if TYPE_CHECKING:
    from engine.sources.spec import ClusterOffsets

_MADE = re.compile(r"g\d+|seed\d+_\w+")


_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class SchemaNames:
    """The tables of a schema.

    `tables_beside`: what follows a name and `__` in the names of staging tables and initial snapshots, by that name.
    """

    tables: frozenset[str]
    tables_beside: Mapping[str, tuple[str, ...]]

    def beside(self, name: str) -> tuple[str, ...]:
        """`g2`, `seed1_orders`, ..: the tables that builds of a table have made beside it."""
        return self.tables_beside.get(name, ())


_ATTEMPTS, _PAUSE = 3, 0.05
_BATCHES = "batches"
# Clients keep ten connections.
_AT_ONCE = 32


def read_deployed(
    manifest: Manifest, target: Target, place: Place, selected: Iterable[str], sources: Mapping[str, DeployedSource]
) -> Deployed:
    """Read what there is of some nodes and of what they read.

    Raises SetupError: `lake-moved`, `lake-outside`, `catalog-unusable`: the catalog cannot be read.
    """
    check_not_moved(target.catalog)
    lake = Lake(target.catalog)
    models = [node for i in selected if isinstance(node := manifest.nodes[i], Model)]
    read = dict.fromkeys(i for model in models for i in read_by(manifest, model))
    upstream = [n for i in read if isinstance(n := manifest.nodes[i], Model) and n not in models]
    renamed = renamings(manifest, target, place.root, models, lake)
    schemas = {schema for m in models for schema in (m.relation.schema, _relation(m, renamed.get(m.id)).schema)}
    names = {schema: schema_names(lake.names(schema)) for schema in schemas}
    existing = [m for m in models if m.relation.name in names[m.relation.schema].tables]
    lake.load((m.relation.schema, m.relation.name) for m in [*existing, *upstream])
    reads = [partial(_read_model, target, lake, m, names, renamed.get(m.id)) for m in models]
    every = zip(models, _read_with_retries(target, reads), strict=True)
    deployed_models = {model.id: with_column_names(model, deployed_model) for model, deployed_model in every}
    inputs_of_open_refreshes = {
        i for m in models if deployed_models[m.id].refresh is not None for i in read_by(manifest, m)
    }
    reads = [partial(_upstream, target, lake, m, with_refresh=m.id in inputs_of_open_refreshes) for m in upstream]
    deployed_models |= {
        m.id: deployed_model for m, deployed_model in zip(upstream, _read_with_retries(target, reads), strict=True)
    }
    uuids = {
        node: deployed_model.table.uuid
        for node, deployed_model in deployed_models.items()
        if deployed_model.table is not None
    }
    streams = {m.id: _streams(manifest, m, place, deployed_models[m.id], uuids) for m in models if m.streaming}
    deployed_models |= {node: _with_renamed_sources(deployed_models[node], now) for node, now in streams.items()}
    return Deployed(
        deployed_models,
        # After the checkpoints: another process that reads on meanwhile would otherwise be ahead of the topics.
        _with_topics(manifest, place, sources),
        streams,
        frozenset(_built_nodes(manifest, target, models, deployed_models)),
        environment(manifest, target),
        library_version("pyspark"),
        place.root,
    )


def read_sources(manifest: Manifest, place: Place, selected: Iterable[str]) -> dict[str, DeployedSource]:
    nodes = [manifest.nodes[node] for node in selected]
    read = dict.fromkeys(i for node in nodes for i in read_by(manifest, node))
    return {i: _source(node, place) for i in read if isinstance(node := manifest.nodes[i], Source)}


def _with_topics(manifest: Manifest, place: Place, sources: Mapping[str, DeployedSource]) -> dict[str, DeployedSource]:
    """Return sources with what Kafka has of their topics, where that can be asked without Java."""
    specs: dict[str, dict[str, SourceSpec]] = {}
    for name, source in sources.items():
        if isinstance(node := manifest.nodes[name], Source) and source.fault is None:
            specs.setdefault(node.spec.format, {})[name] = node.spec
    offsets: dict[str, ClusterOffsets] = {}
    for format_, some in specs.items():
        offsets |= source_traits(format_).topics_now(some, place)
    return {name: replace(source, topics=offsets.get(name)) for name, source in sources.items()}


def read_by(manifest: Manifest, node: Node) -> Iterator[str]:
    if isinstance(node, Model):
        read: Iterable[str] = (item.node for item in node.inputs)
    else:
        read = node.depends_on if isinstance(node, DataTest) else ()
    for name in read:
        yield name
        inner = manifest.nodes[name]
        if isinstance(inner, Model) and inner.computed_when_read:
            yield from read_by(manifest, inner)


def _read_with_retries(target: Target, reads: Sequence[Callable[[], DeployedModel]]) -> list[DeployedModel]:
    """Read each model; what cannot be read at last is its fault. What was not there is read again after one pause."""
    results = _all_of(target, reads)
    for _ in range(_ATTEMPTS - 1):
        failed = [number for number, one in enumerate(results) if not isinstance(one, DeployedModel)]
        if not failed:
            break
        time.sleep(_PAUSE)
        again = _all_of(target, [reads[number] for number in failed])
        for number, one in zip(failed, again, strict=True):
            results[number] = one
    return [one if isinstance(one, DeployedModel) else DeployedModel(faults=_diagnostics(one)) for one in results]


def _all_of(
    target: Target, reads: Sequence[Callable[[], DeployedModel]]
) -> list[DeployedModel | EngineError | FileNotFoundError]:
    """Read each model; side by side where the state is in a bucket, which takes some ten milliseconds for an answer."""
    if isinstance(target.state, Path):
        return [_read(read) for read in reads]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_read, reads))


def _read(read: Callable[[], DeployedModel]) -> DeployedModel | EngineError | FileNotFoundError:
    try:
        return read()
    except (EngineError, FileNotFoundError) as error:
        return error


def _diagnostics(error: EngineError | OSError) -> tuple[Diagnostic, ...]:
    if isinstance(error, EngineError):
        return error.diagnostics
    hint = "Wait for the build that writes there, or restore the file from a backup."
    return (Diagnostic("state-unreadable", f"{error.filename} cannot be read: {error.strerror}", hint),)


def _upstream(target: Target, lake: Lake, model: Model, *, with_refresh: bool) -> DeployedModel:
    folder = table_state(target, model, once=True)
    refresh = begun_refresh(folder, folder.load()) if with_refresh and model.deferred_from is None else None
    return DeployedModel(table=lake.table(model.relation.schema, model.relation.name), refresh=refresh)


def _relation(model: Model, renaming: Renaming | Diagnostic | None) -> Relation:
    return renaming.now if isinstance(renaming, Renaming) else model.relation


def _streams(
    manifest: Manifest, model: Model, place: Place, deployed_model: DeployedModel, uuids: Mapping[str, str]
) -> tuple[StreamSource, ...]:
    writer = deployed_model.writer
    before = writer.recorded_sources.streams if writer is not None and writer.recorded_sources is not None else ()
    return with_earlier_tables(in_text(manifest, model, place), before, uuids)


def _with_renamed_sources(deployed_model: DeployedModel, now: Sequence[StreamSource]) -> DeployedModel:
    recorded_sources = deployed_model.writer.recorded_sources if deployed_model.writer is not None else None
    if deployed_model.state is None or recorded_sources is None:
        return deployed_model
    nodes = {old: new.node for old, new in source_changes.renames(recorded_sources.streams, now).items()}
    if not nodes:
        return deployed_model
    state = source_changes.with_new_names(deployed_model.state, recorded_sources.streams, now)
    first = {nodes.get(node, node): table for node, table in deployed_model.initial_snapshots.items()}
    return replace(deployed_model, state=state, initial_snapshots=first)


def _read_model(
    target: Target,
    lake: Lake,
    model: Model,
    names: Mapping[str, SchemaNames],
    renaming: Renaming | Diagnostic | None,
) -> DeployedModel:
    relation = _relation(model, renaming)
    if not isinstance(renaming, Renaming):
        deployed_model = _model(lake, model, names[relation.schema], relation, table_state(target, model, once=True))
        return (
            deployed_model if renaming is None else replace(deployed_model, faults=(*deployed_model.faults, renaming))
        )
    deployed_model = _model(lake, model, names[relation.schema], relation, renaming.folder)
    state, writer = deployed_model.state, deployed_model.writer
    if state is not None:
        state = moved_state(renaming, state)
    if writer is not None and writer.facts is not None:
        mark, facts = moved_facts(renaming, writer.facts)
        writer = replace(writer, fingerprint=mark, facts=facts)
        state = state and replace(state, fingerprint=mark)
    return replace(deployed_model, state=state, writer=writer, renaming=renaming)


def _model(lake: Lake, model: Model, names: SchemaNames, relation: Relation, folder: TableState) -> DeployedModel:
    open_operations = folder.journal.open_operations()
    loaded, unpublished = folder.load_both()
    table = lake.table(relation.schema, relation.name)
    published = published_refresh(model, unpublished, table) if unpublished is not None else None
    state = published or loaded
    if (
        state is not None
        and state is not published
        and unpublished is not None
        and state.generation == unpublished.generation
    ):
        # The state of the table is lost: what was loaded is that of the refresh.
        state = None
    written = table
    back_to = state.snapshot if state is not None else None
    if table is not None and (STAGED in table.branches or (back_to is not None and not table.holds(back_to))):
        written = lake.table(relation.schema, relation.name, STAGED, back_to)
    streamed = model.streaming and state is not None
    empty = not has_commits(written)
    checkpoint = None
    if streamed and state is not None:
        checkpoint = read_checkpoint(folder, state.generation, written=not empty)
    has_quarantine = state is not None and empty and f"{relation.name}__quarantine" in names.tables
    quarantine = lake.table(relation.schema, f"{relation.name}__quarantine") if has_quarantine else None
    return DeployedModel(
        state,
        _writer(model, folder, state, table),
        table,
        written,
        lake.view(relation.schema, relation.name) if table is None else None,
        quarantine,
        checkpoint,
        dict(_initial_snapshots(lake, relation, state)) if streamed and state is not None else {},
        unpublished is not None or _has_leftovers(folder, state, names.beside(relation.name)),
        open_operations,
        begun_refresh(folder, state) if open_operations else None,
    )


def _initial_snapshots(lake: Lake, relation: Relation, state: ModelState) -> Iterator[tuple[str, TableFacts]]:
    for node, start in state.starts.items():
        name = str(start.get("seed") or "").removeprefix(f"{relation.catalog}.{relation.schema}.")
        facts = lake.table(relation.schema, name) if name else None
        if facts is not None:
            yield node, facts


def _writer(model: Model, folder: TableState, state: ModelState | None, table: TableFacts | None) -> LastWriter | None:
    """What wrote a table last; a table whose first build failed was written by nothing."""
    if state is None or not state.fingerprint or (state.phase is Phase.BUILDING and table is None):
        return None
    began = read_source_record(folder, state.generation) if model.streaming and state.batch is not None else None
    reads_settings = model.state_partitions is not None or model.operation.state_provider is not None
    frozen = spark_checkpoint.settings(folder.checkpoint_files(state.generation)) if reads_settings else {}
    return LastWriter.from_record(state.fingerprint, folder.facts(state), began, frozen)


def _has_leftovers(folder: TableState, state: ModelState | None, beside: Sequence[str]) -> bool:
    if state is None:
        return False
    has_other_generations = any(number != state.generation for number in folder.generations())
    own = tuple(f"seed{number}_" for number in (state.generation, *(folder.replaced_generations() if beside else ())))
    has_leftover_tables = any(not name.startswith(own) for name in beside)
    return has_leftover_tables or has_other_generations or folder.has(state.generation, _BATCHES)


def _source(source: Source, place: Place) -> DeployedSource:
    spec = source.spec
    try:
        KINDS[spec.format].check(spec, place)
        current_facts = source_traits(spec.format).known_now(spec, place)
    except EngineError as error:
        return DeployedSource(error.diagnostic.at(source.location, source.name))
    return DeployedSource(
        files=current_facts.files, table=current_facts.table, parts=current_facts.parts, columns=current_facts.columns
    )


def _built_nodes(
    manifest: Manifest, target: Target, models: Iterable[Model], deployed_models: dict[str, DeployedModel]
) -> Iterator[str]:
    selected_ids = {model.id for model in models}
    yield from (node for node in selected_ids if deployed_models[node].state is not None)
    for model in manifest.models:
        # A stream of another target reads that target's tables.
        if (
            model.id not in selected_ids
            and model.deferred_from is None
            and any(item.stream and item.node in selected_ids for item in model.inputs)
        ):
            try:
                folder = state_now(target, model, once=True)
                state = folder.load()
                built = state is not None and begun_refresh(folder, state) is None
            except EngineError:
                built = True
            if built:
                yield model.id


def schema_names(names: Iterable[str]) -> SchemaNames:
    """Look at each name once: thousands of models would each look at all of them."""
    tables = frozenset(names)
    tables_beside: dict[str, tuple[str, ...]] = {}
    for name in sorted(tables):
        for match in re.finditer(f"(?={_BETWEEN})", name):
            end = name[match.start() + len(_BETWEEN) :]
            if _MADE.fullmatch(end):
                owner = name[: match.start()]
                tables_beside[owner] = (*tables_beside.get(owner, ()), end)
    return SchemaNames(tables, tables_beside)
