"""The columns that a query reads of its inputs: others change nothing for it, unless a star hands them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as changed
from sqlglot import exp

from engine.compile.columns import InputColumns
from engine.compile.nodes.facts import Facts, InputFacts, StateFacts, StateInput
from engine.compile.nodes.fingerprint import fingerprint
from engine.compile.nodes.manifest import Model
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.sql.read_names import renames_columns
from engine.sources import source_traits
from engine.sources.traits import ColumnsBy

_WORD = re.compile(r"\w+")
_STAR_EXCEPT = re.compile(r"\*\s*except\s*\(")
# What decides on rows by all columns, or by their places, without naming them.
_IMPLICIT = {
    "all", "distinct", "except", "identifier", "intersect", "minus", "natural", "pivot", "transform", "union",
    "table", "unpivot",
}  # fmt: skip
# These read all columns without a star, too: `TABLE t`, pipes, natural joins, the groups of a PIVOT.
_READ_ALL = frozenset({"identifier", "natural", "pivot", "table", "unpivot", "|>"})
_Reads = Callable[[str, str], bool]


def without_unread(model: Model, output: InputColumns, nodes: QueryNodes) -> Model:
    """Return the model with only those columns of inputs among its facts that it reads, as far as is certain."""
    if not any(_columns(model.facts)):
        return model
    by_place = any(map(renames_columns, nodes.every(exp.Table, exp.Subquery)))
    reads = _reader(model, output, by_place=by_place)
    new_facts = _facts(model.facts, {item.name: item.node for item in model.inputs}, reads)
    return model if new_facts == model.facts else replace(model, facts=new_facts, fingerprint=fingerprint(new_facts))


def _columns(facts: Facts) -> Iterator[Any]:
    """The lists of columns that facts have."""
    for part in (facts.state, facts.keyed):
        yield from (item.columns for item in (part.inputs if part else ()) if item.columns)
    yield from (item.source["schema"] for item in facts.inputs if item.source.get("schema"))
    for inner in facts.inlined.values():
        yield from _columns(inner)


def _reader(model: Model, output: InputColumns, *, by_place: bool) -> _Reads:
    """Whether a query reads a column of a node: it names it, or a star hands it on."""
    texts = [model.sql, *model.facts.windows.values()]
    marks = [item.watermark for item in model.inputs if item.watermark is not None]
    texts += [f"{mark.column} {mark.expression or ''}" for mark in marks]
    texts += [name for item in model.inputs for name in item.dedup]
    text = _STAR_EXCEPT.sub("* (", " ".join(texts).lower())
    words = {*_WORD.findall(text)}
    handed: set[tuple[str, str]] | None = set()
    if by_place or "*" in text or "|>" in text or words & _READ_ALL:
        is_traceable = (
            not by_place
            and output.columns is not None
            and output.complete
            and not words & _IMPLICIT
            and "|>" not in text
        )
        handed = _handed_on(model) if is_traceable else None

    def reads(node: str, name: str) -> bool:
        name = name.lower()
        is_named = name in words or (not _WORD.fullmatch(name) and name in text)
        return is_named or handed is None or (node, name) in handed

    return reads


def _handed_on(model: Model) -> set[tuple[str, str]]:
    """The columns, by node, from which values come or that decide on rows."""
    origins = [*(origin for column in model.columns for origin in column.origins), *model.indirect]
    columns = {(origin.node, origin.column.lower()) for origin in origins}
    # Of a struct, a field may be what is read.
    return columns | {(node, name[:at]) for node, name in columns for at, sign in enumerate(name) if sign == "."}


def _facts(facts: Facts, nodes: Mapping[str, str], reads: _Reads) -> Facts:
    return changed(
        facts,
        state=facts.state and _of_state(facts.state, nodes, reads),
        keyed=facts.keyed and _of_state(facts.keyed, nodes, reads),
        inputs=tuple(_with_schema(item, nodes, reads) for item in facts.inputs),
        inlined={name: _facts(inner, nodes, reads) for name, inner in facts.inlined.items()},
    )


def _of_state(state: StateFacts, nodes: Mapping[str, str], reads: _Reads) -> StateFacts:
    return changed(state, inputs=tuple(_with_columns(item, nodes.get(item.name), reads) for item in state.inputs))


def _with_columns(item: StateInput, node: str | None, reads: _Reads) -> StateInput:
    if not item.columns or node is None:
        return item
    return changed(item, columns=tuple(column for column in item.columns if reads(node, column[0])))


def _with_schema(item: InputFacts, nodes: Mapping[str, str], reads: _Reads) -> InputFacts:
    schema, node = item.source.get("schema"), nodes.get(item.name)
    if node is None or not schema:
        return item
    by = source_traits(str(item.source.get("format", ""))).columns_by
    if by is ColumnsBy.NAME:
        # The order of the declared ones means nothing.
        schema = [column for column in schema if reads(node, column[0])]
    elif by is ColumnsBy.POSITION:
        # Only what is behind the last column that is read does not count.
        schema = schema[: max((i for i, column in enumerate(schema, 1) if reads(node, column[0])), default=0)]
    return changed(item, source={**item.source, "schema": schema})
