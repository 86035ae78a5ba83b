"""What a model reads: references resolved to nodes, streams matched, names of the compiled SQL chosen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.compile.config.model_config import ModelConfig
from engine.compile.config.stream_config import StreamConfig
from engine.compile.config.window_config import Edit
from engine.compile.nodes.manifest import Input, Slot, Source
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import OnUpstreamDelete
from engine.compile.references.ephemeral import Inlined, ephemeral_fault
from engine.compile.references.metadata_column import implied_stars, names_metadata, star_edits
from engine.compile.sql.parse import UNDECLARED_HINT, ParsedQuery, RelationReference
from engine.errors import Diagnostic, Location, near
from engine.jinja import Rendered
from engine.relations import Relation
from engine.sources import kind_of, source_traits


def with_suggestions(problems: Iterable[Diagnostic], known_nodes: KnownNodes) -> Iterator[Diagnostic]:
    """Yield the problems, with the reference that was probably meant in the hints of `undeclared-relation`."""
    calls: dict[str, str] | None = None
    for problem in problems:
        if problem.code != "undeclared-relation":
            yield problem
            continue
        calls = calls if calls is not None else _calls(known_nodes)
        suggestion = _suggestion(problem.message.split("'")[1].lower(), calls) or UNDECLARED_HINT
        yield replace(problem, hint=problem.hint.replace(UNDECLARED_HINT, suggestion))


def _calls(known_nodes: KnownNodes) -> dict[str, str]:
    """By each name that people write for a table: the call that reads it. A model hides a source's bare table."""
    calls: dict[str, str] = {}
    for source in known_nodes.sources.values():
        call = f"{{{{ source('{source.source}', '{source.table}') }}}}"
        calls |= {source.table.lower(): call, source.name.lower(): call}
    for name, relation in known_nodes.relations.items():
        call = f"{{{{ ref('{name}') }}}}"
        calls |= {name.lower(): call, relation.name.lower(): call}
        calls.setdefault(f"{relation.schema}.{relation.name}".lower(), call)
    return calls


def _suggestion(name: str, calls: Mapping[str, str]) -> str:
    last_two = ".".join(name.split(".")[-2:])
    exact = calls.get(last_two) or calls.get(name.rpartition(".")[2])
    if exact:
        return f"Write {exact}, so that the dependency is known."
    close = difflib.get_close_matches(name, calls, n=1, cutoff=0.7)
    return f"Did you mean {calls[close[0]]}?" if close else ""


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """What can be referred to.

    `sources_whole`: all source files could be read, so that a source not found is none. `rewritten`: models whose rows
    change, each with the reason; no stream reads them. `deferred`: models that are read in another target's table,
    which `relations` has for them, too.
    """

    relations: Mapping[str, Relation]
    kinds: Mapping[str, Materialized]
    sources: Mapping[str, Source]
    disabled: frozenset[str]
    sources_whole: bool = True
    rewritten: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, Relation] = field(default_factory=dict)

    @property
    def source_names(self) -> list[str]:
        return [source.name for source in self.sources.values()]

    def inlines(self, name: str) -> bool:
        """Whether a model's SQL becomes part of what reads it."""
        kind = self.kinds.get(name)
        return kind is not None and kind.traits.inlined


@dataclass(frozen=True, slots=True)
class Draft:
    """A model whose text is parsed and whose references are still names."""

    name: str
    config: ModelConfig
    rendered: Rendered
    query: ParsedQuery
    certain: bool
    problems: list[Diagnostic]
    inputs: dict[str, Input] = field(default_factory=dict)
    inlined: dict[str, Inlined] = field(default_factory=dict)

    def report(self, code: str, message: str, hint: str, place: Location | int) -> None:
        """Add a finding, at a place of the file or an offset of the rendered text."""
        location = self.rendered.location(place) if isinstance(place, int) else place
        self.problems.append(Diagnostic(code, message, hint, node=self.name, location=location))


def resolve(
    draft: Draft, known_nodes: KnownNodes, own: Relation, ephemeral: Mapping[str, Inlined]
) -> tuple[tuple[Input, ...], list[Edit]]:
    """Return a model's inputs by first appearance, and the edits that put their names into the SQL."""
    streams = {s.name: s for s in draft.config.streams}
    edits = [Edit(start, end, f"`{name}`") for start, end, name in draft.query.qualifiers]
    for reference in draft.query.references:
        if reference.kind == "this":
            _own_table(draft, reference, own, edits)
            continue
        if reference.kind == "ref" and reference.name in ephemeral:
            edits.append(_inline(draft, reference, ephemeral[reference.name], streams.get(reference.name), known_nodes))
            continue
        item = draft.inputs.get(reference.name) or _input(draft, reference, streams.get(reference.name), known_nodes)
        if item is not None:
            draft.inputs[reference.name] = item
            slot = Slot(0, len(item.view), item.view)
            edits.append(Edit(reference.start, reference.end, _name_in_sql(item, reference, known_nodes), (slot,)))
    if draft.certain:
        _check_streams(draft, known_nodes)
    edits += _stars(draft, known_nodes)
    brought = {item.view: item for inlined in draft.inlined.values() for item in inlined.brought}
    return (*draft.inputs.values(), *brought.values()), edits


def _own_table(draft: Draft, reference: RelationReference, own: Relation, edits: list[Edit]) -> None:
    if draft.config.materialized.traits.inlined:
        hint = "Remove it, or choose another materialization."
        draft.report("bad-value", "an ephemeral model has no table of its own ({{ this }})", hint, reference.start)
    edits.append(Edit(reference.start, reference.end, own.sql))


def _inline(
    draft: Draft, reference: RelationReference, inlined: Inlined, stream: StreamConfig | None, known_nodes: KnownNodes
) -> Edit:
    """The edit that puts an ephemeral model's SQL in the place of its name."""
    problem = ephemeral_fault(inlined, stream) if draft.certain else None
    if problem is not None:
        draft.report(*problem, stream.location if stream else reference.start)
    for item in inlined.inputs:
        if draft.config.materialized.traits.computed_when_read and item.node in known_nodes.sources:
            _no_files_in_views(draft, item.name, reference)
    draft.inlined[inlined.name] = inlined
    alias = "" if reference.alias or reference.bare else inlined.name
    return Edit(reference.start, reference.end, inlined.text(alias), inlined.slots_in_text)


def _input(
    draft: Draft, reference: RelationReference, stream: StreamConfig | None, known_nodes: KnownNodes
) -> Input | None:
    item = _source_input if reference.kind == "source" else _model_input
    resolved = item(draft, reference, stream, known_nodes)
    used_views = {i.view for i in draft.inputs.values()}
    while resolved is not None and resolved.view in used_views:
        resolved = replace(resolved, view=f"{resolved.view[:-1]}_`")
    return resolved


def _model_input(
    draft: Draft, reference: RelationReference, stream: StreamConfig | None, known_nodes: KnownNodes
) -> Input | None:
    name = reference.name
    if name not in known_nodes.relations:
        hint = near(name, known_nodes.relations)
        if name in known_nodes.disabled:
            hint = f"'{name}' is disabled (enabled: false)."
        elif name in {part for source in known_nodes.source_names for part in (source, source.split(".")[1])}:
            hint = "A source is written {{ source('name', 'table') }}."
        draft.report(
            "unknown-ref", f"model '{name}' not found", hint or "Create it, or remove the reference.", reference.start
        )
        return None
    if stream is None:
        return Input(f"model.{name}", name, stream=False, view=known_nodes.relations[name].sql)
    if name in known_nodes.rewritten:
        message = f"'{name}' cannot be read as a stream: {known_nodes.rewritten[name]}"
        hint = (
            f"Remove '{name}' from 'streams:' (it is then read in full), make it append-only, or read its changes: add "
            "a model of it with 'materialized: table' and 'history: changes'."
        )
        draft.report("stream-not-streamable", message, hint, stream.location)
    return _stream_input(draft, f"model.{name}", name, stream, None)


def _source_input(
    draft: Draft, reference: RelationReference, stream: StreamConfig | None, known_nodes: KnownNodes
) -> Input | None:
    source = known_nodes.sources.get(f"source.{reference.name}")
    if source is None:
        hint = near(reference.name, known_nodes.source_names) or "Declare it in a file under sources/."
        if known_nodes.sources_whole:
            message = f"source '{reference.name}' not found"
            draft.report("unknown-source", message, hint, reference.start)
        return None
    if draft.config.materialized.traits.computed_when_read and draft.certain:
        _no_files_in_views(draft, source.name, reference)
    if stream is None:
        if draft.certain:
            _check_listed(draft, source, reference)
        view = _view_name(draft, source.name)
        return Input(source.id, source.name, stream=False, view=view, metadata=_names_metadata(draft))
    if source.spec.stream is False:
        message = f"'{source.name}' is declared 'stream: false' and cannot be read as a stream"
        hint = f"Remove '{source.name}' from 'streams:', or 'stream: false' from its declaration."
        draft.report("stream-bounded", message, hint, stream.location)
    return _stream_input(draft, source.id, source.name, stream, source)


def _no_files_in_views(draft: Draft, source: str, reference: RelationReference) -> None:
    message = f"a view cannot read the files of source '{source}'"
    hint = "A view is stored as SQL over tables: set 'materialized: table', or put a model in between."
    draft.report("bad-value", message, hint, reference.start)


def _check_listed(draft: Draft, source: Source, reference: RelationReference) -> None:
    """Report sources that cannot be read in full: those without an end, and those whose files are removed."""
    if "after_reading" in source.spec.settings:
        message = f"'{source.name}' is read in full, but its files are moved or deleted after reading (after_reading)"
        hint = f"List it in the header, 'streams: [{source.name}]', or remove 'after_reading'."
        draft.report("after-reading-shared", message, hint, reference.start)
    kind = kind_of(source.spec.format)
    if kind is None or not kind.LISTED or source.spec.stream is False:
        return
    message = f"'{source.name}' is a {source.spec.format} source and must be read as a stream or as a bounded batch"
    hint = (
        f"To stream it, list it in the header: 'streams: [{source.name}]'. To read it in full at each build, set "
        "'stream: false' in its declaration."
    )
    draft.report("stream-unlisted", message, hint, reference.start)


def _stream_input(draft: Draft, node: str, name: str, stream: StreamConfig, source: Source | None) -> Input:
    watermark = stream.watermark or (source.watermark if source else None)
    dedup = stream.dedup or (source.dedup if source else ())
    files = _files_per_trigger(stream, source)
    deletes = stream.on_upstream_delete or _of_source(source)
    metadata = source is not None and _names_metadata(draft)
    item = Input(node, name, True, _view_name(draft, name), watermark, dedup, files, deletes, metadata=metadata)
    return replace(item, on_bad_record=stream.on_bad_record)


def _view_name(draft: Draft, name: str) -> str:
    # The views of an ephemeral model are beside those of the models that read it.
    own = f"{draft.name}__" if draft.config.materialized.traits.inlined else ""
    return f"`__{own}{name.replace('.', '__')}`"


def _names_metadata(draft: Draft) -> bool:
    return names_metadata(draft.rendered.text)


def _stars(draft: Draft, known_nodes: KnownNodes) -> list[Edit]:
    """What keeps `_metadata` out of the stars of a query that names it."""
    if not _names_metadata(draft):
        return []
    names = {}
    for reference in draft.query.references:
        item = draft.inputs.get(reference.name) if reference.kind == "source" else None
        if item is not None:
            qualifier = f"`{reference.alias}`" if reference.alias else _name_in_sql(item, reference, known_nodes)
            names[reference.start] = qualifier.rsplit(" AS ", 1)[-1]
    for at in implied_stars(draft.query, names, draft.rendered.text):
        message = "'_metadata' would be a column of the result, which has no '*' that leaves it out"
        hint = "Begin with select *, and the fields of _metadata that are needed under names of their own."
        draft.report("misplaced-expression", message, hint, at)
    return list(star_edits(draft.query, names, draft.rendered.text))


def _name_in_sql(item: Input, reference: RelationReference, known_nodes: KnownNodes) -> str:
    """The relation, with the name the user knows as alias where columns may be qualified by it."""
    short = item.name.rsplit(".", 1)[-1]
    relation = known_nodes.relations.get(item.name) if item.node.startswith("model.") else None
    table_name = relation.name if relation and not item.stream else None
    if reference.alias or reference.bare or table_name == short:
        return item.view
    return f"{item.view} AS `{short}`"


def _check_streams(draft: Draft, known_nodes: KnownNodes) -> None:
    for stream in draft.config.streams:
        item = draft.inputs.get(stream.name)
        if stream.name in draft.inlined:
            continue
        if item is None:
            _report_unread(draft, stream, known_nodes)
            continue
        if item.dedup and item.watermark is None:
            message = f"dedup on '{stream.name}' needs a watermark"
            hint = "Add 'watermark: <column> delay <interval>': duplicates within the delay are dropped."
            draft.report("dedup-needs-watermark", message, hint, stream.location)
        if stream.max_files_per_trigger and item.node.startswith("model."):
            message = f"max_files_per_trigger does not apply to the model '{stream.name}'"
            hint = "Remove it: a micro-batch reads whole commits of a table, so that no row becomes late."
            draft.report("bad-value", message, hint, stream.location)
        elif stream.max_files_per_trigger and not _reads_files(known_nodes.sources.get(item.node)):
            message = f"max_files_per_trigger does not apply to the source '{stream.name}'"
            hint = "Limit a micro-batch in the source's declaration."
            draft.report("bad-value", message, hint, stream.location)
        if stream.on_upstream_delete and not _reads_table(item, known_nodes):
            message = f"on_upstream_delete does not apply to the source '{stream.name}'"
            hint = "Remove it: it applies to tables whose rows are deleted."
            draft.report("bad-value", message, hint, stream.places["on_upstream_delete"])


def _of_source(source: Source | None) -> OnUpstreamDelete:
    declared = source.spec.settings.get("on_upstream_delete") if source else None
    return OnUpstreamDelete(declared) if declared in set(OnUpstreamDelete) else OnUpstreamDelete.FAIL


def _reads_table(item: Input, known_nodes: KnownNodes) -> bool:
    """Whether some target reads a table, whose rows may be deleted."""
    source = known_nodes.sources.get(item.node)
    return source is None or any(source_traits(name).is_table for name in source.formats)


def _files_per_trigger(stream: StreamConfig, source: Source | None) -> int | None:
    """The model's limit, else the source's; none where this target reads no files."""
    if source is None:
        return stream.max_files_per_trigger
    own: int | None = source.spec.settings.get(_FILES)
    return stream.max_files_per_trigger or own if _FILES in _keys(source.spec.format) else None


def _reads_files(source: Source | None) -> bool:
    """Whether some target reads files, so that a limit of files may be set."""
    return source is None or any(_FILES in _keys(name) for name in source.formats)


def _keys(format_: str) -> Iterable[str]:
    kind = kind_of(format_)
    return kind.KEYS if kind else (_FILES,)


_FILES = "max_files_per_trigger"


def _report_unread(draft: Draft, stream: StreamConfig, known_nodes: KnownNodes) -> None:
    if any(r.name == stream.name for r in draft.query.references):
        return
    names = [*known_nodes.relations, *known_nodes.source_names]
    if stream.name in names and any(r.kind != "this" and r.name not in names for r in draft.query.references):
        # A name that is not found may be meant for it.
        return
    message = f"the query does not read the stream '{stream.name}'"
    hint = "Read it with ref() or source(), or remove it from 'streams:'."
    if stream.name not in names:
        if not known_nodes.sources_whole and "." in stream.name:
            return
        message = f"model or source '{stream.name}' not found"
        hint = near(stream.name, names) or hint
    draft.report("stream-unread", message, hint, stream.location)
