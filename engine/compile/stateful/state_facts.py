"""What a later build needs to compare a query that keeps state: the SQL that runs and the columns of its inputs.

Nothing is derived here: both sides of a comparison are taken apart by the same version (`stateful`), and compiling
costs no more than reading the SQL's tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.compile.columns import InputColumns
from engine.compile.nodes.fingerprint import fingerprint
from engine.compile.nodes.manifest import Input, Model
from engine.compile.sql.normalize import spelling_of
from engine.sources import answers_of
from engine.times import duration_seconds


def with_state(model: Model, columns_of_inputs: Mapping[str, InputColumns]) -> Model:
    """A model whose facts say what its state is made of, or the keys of its table (`keyed`) where it keeps no state.

    Args:
        model: streaming, with its compiled SQL.
        columns_of_inputs: by id, the columns of what it reads.
    """
    sources = {item["name"]: item.get("source") for item in model.facts["inputs"]}
    inputs = [_input(item, columns_of_inputs.get(item.node), sources.get(item.name)) for item in model.inputs]
    facts = {**model.facts, "state" if model.stateful else "keyed": {"sql": spelling_of(model.sql), "inputs": inputs}}
    return replace(model, facts=facts, fingerprint=fingerprint(facts))


def _input(item: Input, columns: InputColumns | None, source: Mapping[str, Any] | None) -> dict[str, Any]:
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
