"""What a model means, as facts that a later build can compare, without formatting, comments and descriptions.

Nothing is derived here: both sides of a comparison are taken apart by the same version (`stateful_steps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from msgspec.structs import replace as changed

from engine.compile.columns import InputColumns
from engine.compile.nodes.facts import (
    FORM,
    NO_WRITE,
    Facts,
    InputFacts,
    PartitionFacts,
    StateFacts,
    StateInput,
    StateWatermark,
    WatermarkFacts,
    WriteFacts,
)
from engine.compile.nodes.fingerprint import fingerprint
from engine.compile.nodes.manifest import Input, Model, Source
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import Deletes, Expectation, OnEmptyExtract, Overwrite, Write
from engine.compile.references.ephemeral import Inlined
from engine.compile.sql.normalize import spelling_of
from engine.compile.sql.parse import ParsedQuery
from engine.relations import Relation
from engine.sources import kind_of, source_traits
from engine.sources.credentials import identified
from engine.times import duration_seconds


def facts(
    *,
    materialized: Materialized,
    relation: Relation,
    query: ParsedQuery,
    windows: Mapping[str, str],
    inputs: tuple[Input, ...],
    nodes: Mapping[str, Any],
    write: Write,
    stateful: bool,
    expectations: tuple[Expectation, ...] = (),
    hooks: Mapping[str, Iterable[str]] | None = None,
    declared: Mapping[str, Any] | None = None,
    inlined: Iterable[Inlined] = (),
    deferred: Mapping[str, Relation] | None = None,
) -> Facts:
    """Return the facts of a model.

    `hooks` are SQL that runs with a build, `declared` is what the columns must be; `deferred` as in `compile_project`.
    """
    write_facts = _write(write)
    removing = sorted((spelling_of(e.check), e.on_fail.value) for e in expectations if e.takes_rows_out)
    ordered = sorted(inputs, key=lambda i: (i.name, i.through))
    return Facts(
        FORM,
        materialized.value,
        str(relation),
        query.spelling,
        {name: spelling_of(text) for name, text in windows.items()},
        tuple(_input(item, nodes.get(item.node), deferred or {}) for item in ordered),
        write.output_mode and write.output_mode.value,
        tuple(PartitionFacts(p.transform, p.column, p.number, p.name) for p in write.partition_by),
        stateful,
        write_facts if write_facts != NO_WRITE else NO_WRITE,
        tuple(removing),
        _table(materialized, write, expectations, hooks or {}, declared or {}),
        {model.name: model.facts for model in sorted(inlined, key=lambda model: model.name)},
    )


def _table(
    materialized: Materialized,
    write: Write,
    expectations: tuple[Expectation, ...],
    hooks: Mapping[str, Iterable[str]],
    declared: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a batch table or view is beside its rows; of a stream, where it applies to new rows only, nothing."""
    if materialized.traits.streaming or materialized.traits.inlined:
        return {}
    facts = {
        "expectations": sorted([e.name, spelling_of(e.check), e.on_fail.value] for e in expectations),
        "sort_by": [asdict(column) for column in write.sort_by],
        "write_options": {key: identified(value, key) for key, value in write.write_options.items()},
        **{key: [spelling_of(text) for text in texts] for key, texts in hooks.items()},
        **declared,
    }
    return {key: value for key, value in facts.items() if value}


def _write(write: Write) -> WriteFacts:
    return WriteFacts(
        _in_lower_case(write.unique_key),
        tuple(column.lower() for column in write.sequence_by),
        spelling_of(write.delete_when) if write.delete_when else "",
        write.history.header,
        "all" if write.check_all else _in_lower_case(write.check),
        write.deletes.value if write.history and write.deletes is Deletes.CLOSE else "",
        "" if write.on_empty_extract is OnEmptyExtract.FAIL else write.on_empty_extract.value,
        _in_lower_case(write.exclude),
        "" if write.overwrite is Overwrite.TABLE else write.overwrite.value,
    )


def _in_lower_case(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(column.lower() for column in columns))


def _input(item: Input, node: Any, deferred: Mapping[str, Relation]) -> InputFacts:
    mark = item.watermark
    watermark = None
    if mark is not None:
        expression = spelling_of(mark.expression) if mark.expression else mark.expression
        watermark = WatermarkFacts(
            mark.column, mark.delay, expression, mark.max_future, mark.on_null and mark.on_null.value
        )
    source = _source(node) if isinstance(node, Source) else {}
    instead = str(deferred[item.name]) if not source and item.name in deferred else ""
    return InputFacts(item.name, item.stream, watermark, tuple(sorted(item.dedup)), item.through, source, instead)


def _source(node: Source) -> dict[str, Any]:
    spec, kind = node.spec, kind_of(node.spec.format)
    return {
        "format": spec.format,
        **{
            key: _with_digest(spec.settings[key], key) for key in (kind.MEANING if kind else ()) if key in spec.settings
        },
        "schema": [[column.name, column.type] for column in node.columns],
        "options": {key: identified(value, key) for key, value in spec.options.items()},
        "timezone": spec.timezone,
    }


def _with_digest(value: Any, key: str) -> Any:
    return identified(value, key) if isinstance(value, str) and key == "path" else value


def with_state(model: Model, columns_of_inputs: Mapping[str, InputColumns]) -> Model:
    """Return a streaming model whose facts say what its state is made of, or else the keys of its table (`keyed`)."""
    sources = {item.name: item.source for item in model.facts.inputs}
    inputs = (_state_input(item, columns_of_inputs.get(item.node), sources.get(item.name, {})) for item in model.inputs)
    state_facts = StateFacts(spelling_of(model.sql), tuple(inputs))
    facts = changed(model.facts, **{"state" if model.stateful else "keyed": state_facts})
    return replace(model, facts=facts, fingerprint=fingerprint(facts))


def _state_input(item: Input, columns: InputColumns | None, source: Mapping[str, Any]) -> StateInput:
    mark = item.watermark if item.stream else None
    types: dict[str, str | None] | None = None
    if columns is not None and columns.columns is not None and columns.complete:
        types = {**dict(columns.columns), **(dict(columns.hidden) if item.metadata else {})}
        if mark is not None and mark.expression is not None:
            same = next((name for name in types if name.lower() == mark.column.lower()), mark.column.lower())
            types[same] = "timestamp"
    watermark = None
    if mark is not None:
        expression = spelling_of(mark.expression) if mark.expression is not None else ""
        watermark = StateWatermark(mark.column.lower(), duration_seconds(mark.delay), expression)
    return StateInput(
        item.view.lower(),
        item.name,
        item.stream,
        None if types is None else tuple(types.items()),
        bool(source) and not source_traits(source["format"]).caseless,
        watermark,
        tuple(sorted(name.lower() for name in item.dedup)) if item.stream else (),
    )
