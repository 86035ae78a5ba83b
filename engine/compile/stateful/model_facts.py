"""What a model means, as facts that a later build can compare.

Formatting, comments, descriptions and tags are not part of it. Nothing is derived here: both sides of a comparison are
taken apart by the same version (`stateful_steps`), and compiling costs no more than reading the SQL's tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from engine.compile.columns import InputColumns
from engine.compile.nodes.fingerprint import fingerprint
from engine.compile.nodes.manifest import Input, Model, Source
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import Deletes, Expectation, OnEmptyExtract, Overwrite, Write
from engine.compile.references.ephemeral import Inlined
from engine.compile.sql.normalize import FORM, spelling_of
from engine.compile.sql.parse import ParsedQuery
from engine.relations import Relation
from engine.sources import answers_of, kind_of
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
) -> dict[str, Any]:
    """The facts of a model; values are plain JSON. What is left at its default is not among them.

    `hooks` are SQL that runs with a build, `declared` is what the columns must be. `deferred` has the tables of another
    target that are read in place of those of some models, by name.
    """
    instead = deferred or {}
    removing = [[spelling_of(e.check), e.on_fail.value] for e in expectations if e.takes_rows_out]
    more = {
        "write": _write(write),
        "expectations": sorted(removing),
        "table": _table(materialized, write, expectations, hooks or {}, declared or {}),
        "inlined": {model.name: model.facts for model in sorted(inlined, key=lambda model: model.name)},
    }
    result = {
        "form": FORM,
        "materialized": materialized.value,
        "relation": str(relation),
        "sql": query.spelling,
        "windows": {name: spelling_of(text) for name, text in windows.items()},
        "inputs": [_input(i, nodes.get(i.node), instead) for i in sorted(inputs, key=lambda i: (i.name, i.through))],
        "output_mode": write.output_mode,
        "partition_by": [_said(asdict(p), "name") for p in write.partition_by],
        "stateful": stateful,
    }
    return result | {key: value for key, value in more.items() if value}


def _said(facts: dict[str, Any], key: str) -> dict[str, Any]:
    """The facts without a newer key that is not set, so that older fingerprints stay valid."""
    return {name: value for name, value in facts.items() if name != key or value is not None}


def _table(
    materialized: Materialized,
    write: Write,
    expectations: tuple[Expectation, ...],
    hooks: Mapping[str, Iterable[str]],
    declared: Mapping[str, Any],
) -> dict[str, Any]:
    """What a batch table or view is beside its rows: what they must satisfy, how its files are written, what hooks do.

    All of it is recreated by a build. Of a stream none of it is among the facts: it applies to new rows, and a stream
    without new rows has nothing to do.
    """
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


def _write(write: Write) -> dict[str, Any]:
    """What decides which rows the table has, beside the query."""
    facts = {
        "unique_key": sorted(column.lower() for column in write.unique_key),
        "sequence_by": [column.lower() for column in write.sequence_by],
        "delete_when": spelling_of(write.delete_when) if write.delete_when else "",
        "history": write.history.header,
        "check": "all" if write.check_all else sorted(column.lower() for column in write.check),
        "deletes": write.deletes.value if write.history and write.deletes is Deletes.CLOSE else "",
        "on_empty_extract": "" if write.on_empty_extract is OnEmptyExtract.FAIL else write.on_empty_extract.value,
        "exclude": sorted(column.lower() for column in write.exclude),
        "overwrite": "" if write.overwrite is Overwrite.TABLE else write.overwrite.value,
    }
    return {key: value for key, value in facts.items() if value}


def _input(item: Input, node: Any, deferred: Mapping[str, Relation]) -> dict[str, Any]:
    watermark = _said(_said(asdict(item.watermark), "max_future"), "on_null") if item.watermark else None
    if watermark and watermark["expression"]:
        watermark["expression"] = spelling_of(watermark["expression"])
    result: dict[str, Any] = {
        "name": item.name,
        "stream": item.stream,
        "watermark": watermark,
        "dedup": sorted(item.dedup),
    }
    if item.through:
        result["through"] = item.through
    if isinstance(node, Source):
        result["source"] = _source(node)
    elif item.name in deferred:
        result["deferred"] = str(deferred[item.name])
    return result


def _source(node: Source) -> dict[str, Any]:
    spec, kind = node.spec, kind_of(node.spec.format)
    return {
        "format": spec.format,
        **{key: _identified(spec.settings[key], key) for key in (kind.MEANING if kind else ()) if key in spec.settings},
        "schema": [[column.name, column.type] for column in node.columns],
        "options": {key: identified(value, key) for key, value in spec.options.items()},
        "timezone": spec.timezone,
    }


def _identified(value: Any, key: str) -> Any:
    return identified(value, key) if isinstance(value, str) and key == "path" else value


def with_state(model: Model, columns_of_inputs: Mapping[str, InputColumns]) -> Model:
    """A model whose facts say what its state is made of, or the keys of its table (`keyed`) where it keeps no state.

    Args:
        model: streaming, with its compiled SQL.
        columns_of_inputs: by id, the columns of what it reads.
    """
    sources = {item["name"]: item.get("source") for item in model.facts["inputs"]}
    inputs = [_state_input(item, columns_of_inputs.get(item.node), sources.get(item.name)) for item in model.inputs]
    facts = {**model.facts, "state" if model.stateful else "keyed": {"sql": spelling_of(model.sql), "inputs": inputs}}
    return replace(model, facts=facts, fingerprint=fingerprint(facts))


def _state_input(item: Input, columns: InputColumns | None, source: Mapping[str, Any] | None) -> dict[str, Any]:
    mark = item.watermark if item.stream else None
    types: dict[str, str | None] | None = None
    if columns is not None and columns.columns is not None and columns.complete:
        declared = {**dict(columns.columns), **(dict(columns.hidden) if item.metadata else {})}
        types = dict(declared)
        if mark is not None and mark.expression is not None:
            same = next((name for name in types if name.lower() == mark.column.lower()), mark.column.lower())
            types[same] = "timestamp"
    result: dict[str, Any] = {
        "view": item.view.lower(),
        "name": item.name,
        "stream": item.stream,
        "columns": None if types is None else [[name, kind] for name, kind in types.items()],
    }
    if source is not None and not answers_of(source["format"]).caseless:
        result["exact"] = True
    if mark is not None:
        result["watermark"] = {"column": mark.column.lower(), "delay": duration_seconds(mark.delay)}
        if mark.expression is not None:
            result["watermark"]["expression"] = spelling_of(mark.expression)
    if item.stream and item.dedup:
        result["dedup"] = sorted(name.lower() for name in item.dedup)
    return result
