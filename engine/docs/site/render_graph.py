"""Lineage for the terminal and for other tools: trees of text, JSON, Mermaid and Graphviz's dot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import Manifest, Model, Source
from engine.compile.nodes.sink import Sink
from engine.docs.site import format_values
from engine.docs.site.column_trace import Columns, ColumnSpot, Decider, Impact, Trace
from engine.docs.site.graph_links import links_of

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SPACE = re.compile(r"\s+")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.,()* -]")


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow of a drawing, by the ids of its ends; `solid` for a stream, or for a value."""

    start: str
    end: str
    solid: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    nodes: Mapping[str, tuple[str, str]]
    edges: tuple[Edge, ...]


_MERMAID = {"source": ("[(", ")]"), "view": ("([", "])"), "exposure": ("{{", "}}")}
_DOT = {"source": ", shape=cylinder", "view": ", style=dashed", "exposure": ", shape=hexagon"}


def graph(manifest: Manifest, node_ids: Iterable[str]) -> Drawn:
    nodes = {
        node_id: (node.name, format_values.kind(node))
        for node_id in node_ids
        if isinstance(node := manifest.nodes[node_id], Model | Source | Exposure | Sink)
    }
    links = links_of(manifest).items()
    edges = (
        Edge(link.parent, link.child, stream) for link, stream in links if link.parent in nodes and link.child in nodes
    )
    return Drawn(nodes, tuple(edges))


def path(manifest: Manifest, column_trace: Trace, impact: Impact, columns: Columns) -> Drawn:
    """The path of a column, up and down, with the expressions on its arrows."""
    spots = [step.spot for step in column_trace.steps] + list(impact.values)
    nodes = {_id(spot): (_name(manifest, spot), spot.node.partition(".")[0]) for spot in spots}
    edges: dict[tuple[str, str], Edge] = {}
    for spot in spots:
        column = columns.find(spot)
        for origin in column.origins if column else ():
            start = next((s for s in spots if s.touches(ColumnSpot(origin.node, origin.column))), None)
            if start is not None and column is not None:
                edges.setdefault((_id(start), _id(spot)), Edge(_id(start), _id(spot), solid=True, label=column.sql))
    return Drawn(nodes, tuple(edges.values()))


def _id(spot: ColumnSpot) -> str:
    return f"{spot.node}#{spot.column}"


def _name(manifest: Manifest, spot: ColumnSpot) -> str:
    return f"{manifest.nodes[spot.node].name}.{spot.column}"


def as_record(drawing: Drawn) -> dict[str, Any]:
    return {
        "nodes": [{"id": node, "name": name, "kind": kind} for node, (name, kind) in drawing.nodes.items()],
        "edges": [
            {"from": edge.start, "to": edge.end, **({"sql": edge.label} if edge.label else {"stream": edge.solid})}
            for edge in drawing.edges
        ],
    }


def column_record(manifest: Manifest, column_trace: Trace, impact: Impact) -> dict[str, Any]:
    def name(spot: ColumnSpot) -> str:
        return _name(manifest, spot)

    def rows(deciders: Iterable[Decider]) -> list[dict[str, str]]:
        return [{"model": manifest.nodes[d.model].name, "column": name(d.spot), "kind": d.kind} for d in deciders]

    return {
        "column": name(column_trace.steps[0].spot),
        "steps": [
            {"column": name(s.spot), "type": s.type, "sql": s.sql, "origins": [name(o) for o in s.origins]}
            for s in column_trace.steps
        ],
        "indirect": rows(column_trace.deciders),
        "impact": {
            "values": [name(spot) for spot in impact.values],
            "rows": rows(impact.rows),
            "gone": [name(spot) for spot in impact.gone],
            "breaks": [manifest.nodes[node].name for node in impact.breaks],
            "stops": [manifest.nodes[node].name for node in impact.stops],
            "tests": [manifest.nodes[node].name for node in impact.tests],
            "exposures": [manifest.nodes[node].name for node in impact.exposures],
        },
    }


def mermaid(drawing: Drawn) -> str:
    """A drawing as a Mermaid flow chart; every letter that could mean something to it is written as its number."""
    number = {node: f"n{place}" for place, node in enumerate(drawing.nodes)}
    lines = ["flowchart LR"]
    for node, (name, kind) in drawing.nodes.items():
        begin, end = _MERMAID.get(_shape(node, kind), ("[", "]"))
        lines.append(f'  {number[node]}{begin}"{_coded(name)}"{end}')
    for edge in drawing.edges:
        arrow = "-->" if edge.solid else "-.->"
        label = f'|"{_coded(_flat(edge.label))}"|' if edge.label else ""
        lines.append(f"  {number[edge.start]} {arrow}{label} {number[edge.end]}")
    return "\n".join(lines)


def _shape(node: str, kind: str) -> str:
    if node.startswith(("exposure.", "sink.")):
        return "exposure"
    return "source" if kind.endswith("source") else kind


def _coded(text: str) -> str:
    return _NOT_PLAIN.sub(lambda match: f"#{ord(match[0])};", text)


def dot(drawing: Drawn) -> str:
    lines = ["digraph lineage {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for node, (name, kind) in drawing.nodes.items():
        shape = _DOT.get(_shape(node, kind), "")
        lines.append(f"  {_quoted(node)} [label={_quoted(name)}{shape}];")
    for edge in drawing.edges:
        style = "" if edge.solid else "style=dashed"
        label = f"label={_quoted(_flat(edge.label))}" if edge.label else ""
        tail = f" [{', '.join(filter(None, [style, label]))}]" if style or label else ""
        lines.append(f"  {_quoted(edge.start)} -> {_quoted(edge.end)}{tail};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def printable(text: str) -> str:
    """A text without what would steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def tree(manifest: Manifest, column_trace: Trace) -> Iterator[str]:
    steps = {step.spot: step for step in column_trace.steps}

    def branch_lines(spot: ColumnSpot, before: str, branch: str, shown_before: frozenset[ColumnSpot]) -> Iterator[str]:
        step = steps[spot]
        kind = f"  {step.type}" if step.type else ""
        yield printable(f"{before}{branch}{_name(manifest, spot)}{kind}")
        inner = before + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
        origins = step.origins if spot not in shown_before else ()
        if isinstance(manifest.nodes[spot.node], Model):
            yield printable(f"{inner}{'│' if origins else ' '}     = {_flat(step.sql) or 'unknown'}")
        for place, origin in enumerate(origins):
            last = place == len(origins) - 1
            yield from branch_lines(origin, inner, "└── " if last else "├── ", shown_before | {spot})

    yield from branch_lines(column_trace.steps[0].spot, "", "", frozenset())


def deciders(manifest: Manifest, row_deciders: Iterable[Decider]) -> Iterator[str]:
    by_model: dict[str, list[str]] = {}
    for decider in row_deciders:
        text = f"{_name(manifest, decider.spot)} ({decider.kind})"
        by_model.setdefault(decider.model, []).append(text)
    for model, texts in by_model.items():
        yield printable(f"  {manifest.nodes[model].name}: {', '.join(texts)}")


def loss(manifest: Manifest, impact: Impact) -> Iterator[str]:
    def names(nodes: Iterable[str]) -> str:
        return ", ".join(manifest.nodes[node].name for node in nodes) or "none"

    yield printable(f"  no longer compile: {names(impact.breaks)}")
    yield printable(f"  stop with them: {names(impact.stops)}")
    yield printable(f"  values computed from it: {', '.join(_name(manifest, s) for s in impact.values) or 'none'}")
    rows = dict.fromkeys(f"{manifest.nodes[d.model].name} ({d.kind})" for d in impact.rows)
    yield printable(f"  rows it decides on: {', '.join(rows) or 'none'}")
    yield printable(f"  tests that would not run: {names(impact.tests)}")
    yield printable(f"  exposures that read these tables: {names(impact.exposures)}")
