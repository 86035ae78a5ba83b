"""What a model reads: references resolved to nodes, streams matched, names of the compiled SQL chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.compile.config import ModelConfig, StreamConfig
from engine.compile.manifest import Input, Materialized, Relation, Source
from engine.compile.sql import Query, Reference
from engine.compile.windows import Edit
from engine.errors import Diagnostic, Location, near
from engine.jinja import Rendered


@dataclass(frozen=True, slots=True)
class Known:
    """What can be referred to: models with their relation and kind, sources, and disabled models."""

    relations: Mapping[str, Relation]
    kinds: Mapping[str, Materialized]
    sources: Mapping[str, Source]
    disabled: frozenset[str]


@dataclass(frozen=True, slots=True)
class Draft:
    """A model whose text is parsed and whose references are still names."""

    name: str
    config: ModelConfig
    rendered: Rendered
    query: Query


def resolve(
    draft: Draft, known: Known, own: Relation, found: list[Diagnostic]
) -> tuple[tuple[Input, ...], list[Edit]]:
    """Resolve the references of a model.

    Returns:
        The inputs by first appearance, and the edits that put their names into the SQL.
    """
    streams = {s.name: s for s in draft.config.streams}
    inputs: dict[str, Input] = {}
    edits: list[Edit] = []
    for reference in draft.query.references:
        if reference.kind == "this":
            edits.append(Edit(reference.start, reference.end, own.sql))
            continue
        item = inputs.get(reference.name) or _input(
            draft, reference, streams.get(reference.name), known, found
        )
        if item is not None:
            inputs[reference.name] = item
            edits.append(Edit(reference.start, reference.end, _name_in_sql(item, reference, known)))
    _check_streams(draft, inputs, known, found)
    return tuple(inputs.values()), edits


def _place(draft: Draft, reference: Reference) -> Location:
    return draft.rendered.location(reference.start)


def _input(
    draft: Draft, reference: Reference, stream: StreamConfig | None, known: Known, found: list[Diagnostic]
) -> Input | None:
    name = reference.name
    if reference.kind == "source":
        return _source_input(draft, reference, stream, known, found)
    if name not in known.relations:
        hint = near(name, known.relations)
        if name in known.disabled:
            hint = f"'{name}' is disabled (enabled: false)."
        elif f".{name}" in "".join(f".{s.name};" for s in known.sources.values()):
            hint = "A source is written {{ source('name', 'table') }}."
        message = f"there is no model '{name}'"
        found.append(
            Diagnostic("unknown-ref", message, hint, node=draft.name, location=_place(draft, reference))
        )
        return None
    if stream is None:
        return Input(f"model.{name}", name, stream=False, view=known.relations[name].sql)
    kind = known.kinds[name]
    if kind is not Materialized.STREAMING_TABLE:
        message = f"'{name}' is a {kind.value} and cannot be read as a stream"
        hint = f"Take '{name}' out of 'streams:' (it is then read as a whole), or make it a streaming table."
        found.append(
            Diagnostic("stream-not-streamable", message, hint, node=draft.name, location=stream.location)
        )
    return _streamed(f"model.{name}", name, stream, None)


def _source_input(
    draft: Draft, reference: Reference, stream: StreamConfig | None, known: Known, found: list[Diagnostic]
) -> Input | None:
    source = known.sources.get(f"source.{reference.name}")
    if source is None:
        hint = (
            near(reference.name, (s.name for s in known.sources.values()))
            or "Declare it in a file under sources/."
        )
        message = f"there is no source '{reference.name}'"
        found.append(
            Diagnostic("unknown-source", message, hint, node=draft.name, location=_place(draft, reference))
        )
        return None
    if draft.config.materialized is Materialized.VIEW:
        message = f"a view cannot read the files of source '{source.name}'"
        hint = "A view is stored as SQL over tables: say 'materialized: table', or put a model in between."
        found.append(
            Diagnostic("bad-value", message, hint, node=draft.name, location=_place(draft, reference))
        )
    if stream is None:
        return Input(source.id, source.name, stream=False, view=_view_name(source.name))
    return _streamed(source.id, source.name, stream, source)


def _streamed(node: str, name: str, stream: StreamConfig, source: Source | None) -> Input:
    watermark = stream.watermark or (source.watermark if source else None)
    dedup = stream.dedup or (source.dedup if source else ())
    files = stream.max_files_per_trigger or (source.spec.max_files_per_trigger if source else None)
    return Input(node, name, True, _view_name(name), watermark, dedup, files)


def _view_name(name: str) -> str:
    return f"`__{name.replace('.', '__')}`"


def _name_in_sql(item: Input, reference: Reference, known: Known) -> str:
    """The relation, with the name the user knows as alias where columns may be qualified by it."""
    short = item.name.rsplit(".", 1)[-1]
    relation = known.relations.get(item.name) if item.node.startswith("model.") else None
    stored = relation.name if relation and not item.stream else None
    if reference.alias or reference.sampled or stored == short:
        return item.view
    return f"{item.view} AS `{short}`"


def _check_streams(draft: Draft, inputs: Mapping[str, Input], known: Known, found: list[Diagnostic]) -> None:
    for stream in draft.config.streams:
        if stream.name not in inputs:
            message = f"the query does not read the stream '{stream.name}'"
            names = [*known.relations, *(s.name for s in known.sources.values())]
            hint = "Read it with ref() or source(), or take it out of 'streams:'."
            if stream.name not in names:
                message = f"there is no model or source '{stream.name}'"
                hint = near(stream.name, names)
            found.append(
                Diagnostic("stream-unread", message, hint, node=draft.name, location=stream.location)
            )
            continue
        item = inputs[stream.name]
        if item.dedup and item.watermark is None:
            message = f"dedup on '{stream.name}' needs a watermark"
            hint = "Add 'watermark: <column> delay <interval>': repeats within the delay are dropped."
            found.append(
                Diagnostic("dedup-needs-watermark", message, hint, node=draft.name, location=stream.location)
            )
        if stream.max_files_per_trigger and (item.watermark or item.node.startswith("model.")):
            _check_limit(draft, stream, item, found)


def _check_limit(draft: Draft, stream: StreamConfig, item: Input, found: list[Diagnostic]) -> None:
    if item.node.startswith("model."):
        message = f"max_files_per_trigger has no meaning for the model '{stream.name}'"
        hint = "A micro-batch takes whole commits of a table: parts of one would move the watermark and lose rows."
        found.append(Diagnostic("bad-value", message, hint, node=draft.name, location=stream.location))
