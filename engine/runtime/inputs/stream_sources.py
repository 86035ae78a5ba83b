"""The sources of a streaming query, in the order in which Spark's checkpoint counts them.

Spark numbers the leaves of the analysed plan from left to right, definitions of CTEs first (measured, Spark 4.1.4); a
relation that is there twice has one number and two offsets. A generation records the order when it begins, and each
later start compares it before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.compile import Input, Model, Source
from engine.compile.nodes.facts import plain
from engine.errors import Location, StateError
from engine.lake.table_facts import TableFacts
from engine.plan import new_checkpoint, source_changes
from engine.plan.deployed.checkpoint_facts import (
    RECORD,
    identified_stream,
    in_text,
    read_source_record,
    streams_by_view,
    with_earlier_tables,
)
from engine.plan.source_changes import Recorded, StreamSource
from engine.plan.tables.upstream_tables import Upstream, upstreams_of
from engine.runtime.context.run_context import Run
from engine.sources import listing, source_traits
from engine.sources.traits import normalized
from engine.spark.internals.plans import analysed
from engine.state import ModelState, TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import logged
from engine.state.state_path import StatePath, remove_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_upstreams(run: Run, model: Model) -> tuple[Upstream, ...]:
    """Return the tables, each once.

    Raises:
        StateError: `upstream-history`, a model's table does not exist.
        SetupError: `source-table`, a source's does not.
    """

    def of_model(node: Model) -> TableFacts | None:
        return run.lake.table(node.relation.schema, node.relation.name)

    return upstreams_of(run.manifest, model, run.place, of_model)


def in_plan(frame: DataFrame, run: Run, model: Model, uuids: Mapping[str, str]) -> tuple[StreamSource, ...]:
    """The sources of a query as Spark will number them; `uuids` of the tables among them, by node."""
    views, sources = streams_by_view(model), []
    relations: list[Any] = []
    for view, relation in _leaves(frame, views):
        known_index = next((i for i, known_relation in enumerate(relations) if relation.equals(known_relation)), None)
        if known_index is None:
            relations.append(relation)
        source = identified_stream(run.manifest, views[view], run.place)
        identity = {**source.identity, **({"uuid": uuids[source.node]} if source.node in uuids else {})}
        sources.append(
            replace(source, identity=identity, number=len(relations) - 1 if known_index is None else known_index)
        )
    return tuple(sources)


def _leaves(frame: DataFrame, views: Mapping[str, Input]) -> Iterator[tuple[str, Any]]:
    """The streams at the ends of the analysed plan, from left to right, each with the view that it stands for."""
    waiting = [(analysed(frame), "")]
    while waiting:
        node, view = waiting.pop()
        if not node.isStreaming():
            continue
        name, children = node.nodeName(), node.children()
        if name == "SubqueryAlias" and (alias := node.alias()) in views:
            view = alias
        count = children.size()
        if not count and name != "CTERelationRef" and view:
            yield view, node
        waiting += [(children.apply(i), view) for i in reversed(range(count))]


def check_sources(
    run: Run,
    model: Model,
    folder: TableState,
    state: ModelState,
    frame: DataFrame,
    *,
    written: bool,
) -> tuple[ModelState, Recorded]:
    """Compare the sources of a query with those of its checkpoint, before it starts; return state and what to record.

    `written`: the generation may have rows in its table. The state comes without the id of a query that never began, if
    its checkpoint was of other sources and is discarded.

    Raises:
        StateError: `source-changed`; nothing was read or written.
    """
    uuids = {upstream.node: upstream.facts.uuid for upstream in read_upstreams(run, model)}
    planned = in_plan(frame, run, model, uuids)
    text = [s.node for s in in_text(run.manifest, model, run.place)]
    # With the initial snapshot of a table Spark has two sources for one name in the text.
    record_now = Recorded(planned, textual=[s.node for s in planned] == text, settings=model.facts.settings)
    checkpoint = folder.checkpoint(state.generation)
    record_before = read_source_record(folder, state.generation)
    reason = (
        source_changes.difference(record_before.streams, planned)
        if record_before is not None
        else _unlike(checkpoint, planned)
    )
    if reason is None:
        return state, record_now
    begun_batch = (
        spark_checkpoint.last_committed(checkpoint) if not written else spark_checkpoint.last_started(checkpoint)
    )
    if begun_batch is None and not any(_starts_fixed(run, source) for source in planned):
        # The query was changed after a first start that failed.
        remove_tree(checkpoint, ignore_errors=True)
        state = replace(state, query_id=None)
        folder.save(state)
        return state, record_now
    fixes = new_checkpoint.ways(run.manifest, model)
    finding = source_changes.rejection(str(model.relation), model.name, reason, fixes)
    raise StateError(finding.code, finding.message, finding.hint, node=model.name, location=Location(model.file))


def _starts_fixed(run: Run, source: StreamSource) -> bool:
    """Whether the checkpoint has the beginning of a source before anything was read."""
    node = run.manifest.nodes[source.node]
    return isinstance(node, Source) and source_traits(node.spec.format).fixes_start


def record(folder: TableState, generation: int, model: Model, stream_record: Recorded) -> None:
    folder.save_facts(generation, model.fingerprint, plain(model.facts))
    if read_source_record(folder, generation) != stream_record:
        folder.save_note(generation, RECORD, stream_record.as_json())


def _unlike(checkpoint: StatePath, planned: tuple[StreamSource, ...]) -> str | None:
    batch = spark_checkpoint.last_started(checkpoint)
    offsets = spark_checkpoint.offset_lines(checkpoint, batch) if batch is not None else []
    if offsets and len(offsets) != len(planned):
        return f"its checkpoint has {len(offsets)} sources, but the query reads {len(planned)}"
    for source, offset in zip(planned, offsets, strict=False):
        if source.kind == "files" and not _is_of(checkpoint, source):
            return f"the checkpoint has read other files than the files of {source}"
        if "topics" in source.identity and not set(offset or {}) <= set(source.identity["topics"]):
            return f"the checkpoint has read {', '.join(sorted(offset or {}))} where the query has {source}"
    return None


def _is_of(checkpoint: StatePath, source: StreamSource) -> bool:
    base = listing.base(str(source.identity["location"])).rstrip("/")
    if not (checkpoint / "sources" / str(source.number)).is_dir():
        return True
    uris = [local_paths.decoded(file.uri) for file in logged(checkpoint, source.number)]
    return not uris or any(uri == base or uri.startswith(f"{base}/") for uri in map(normalized, uris))


def with_present_source_names(run: Run, model: Model, state: ModelState, folder: TableState) -> ModelState:
    record_before = read_source_record(folder, state.generation)
    if record_before is None:
        return state
    return source_changes.with_new_names(
        state, record_before.streams, present_streams(run, model, record_before.streams)
    )


def recorded_dedup(run: Run, model: Model, folder: TableState, generation: int) -> dict[str, Sequence[str]]:
    record_before = read_source_record(folder, generation)
    if record_before is None or not record_before.dedup:
        return {}
    present_names = source_changes.renames(record_before.streams, present_streams(run, model, record_before.streams))
    names = {
        stream.name: present_names[stream.node].name for stream in record_before.streams if stream.node in present_names
    }
    return {names.get(name, name): keys for name, keys in record_before.dedup.items()}


def present_streams(run: Run, model: Model, earlier_streams: Sequence[StreamSource]) -> tuple[StreamSource, ...]:
    """Return what a model reads as streams; tables that had another name when its generation began have that name."""
    text_streams = in_text(run.manifest, model, run.place)
    if {s.node for s in earlier_streams if s.kind == "table"} - {s.node for s in text_streams}:
        uuids = {upstream.node: upstream.facts.uuid for upstream in read_upstreams(run, model)}
        return with_earlier_tables(text_streams, earlier_streams, uuids)
    return text_streams
