"""The lines of `engine ls`."""

from __future__ import annotations

from collections.abc import Iterable

from engine.characters import one_line
from engine.cli.console.terminal import json_text, write
from engine.compile import DataTest, Manifest, Model, Node, Source, UnitTest
from engine.compile.artifacts.dbt_manifest import unique_id
from engine.sources import location


def write_lines(manifest: Manifest, nodes: Iterable[str], output: str, resource_type: str) -> None:
    """Print one line a node."""
    lines = []
    for node_id in nodes:
        node = manifest.nodes[node_id]
        kind = _kind(node)
        if resource_type not in {"all", kind}:
            continue
        if output == "json":
            lines.append(json_text(_record(node, kind, manifest.project)))
        else:
            text = {"name": node.name, "path": node.file}.get(output) or _text(node, kind)
            lines.append(one_line(text))
    if lines:
        write("\n".join(lines))


def _kind(node: Node) -> str:
    if isinstance(node, UnitTest):
        return "unit_test"
    return "model" if isinstance(node, Model) else "source" if isinstance(node, Source) else "test"


def _text(node: Node, kind: str) -> str:
    if isinstance(node, Model):
        streams = [i.name for i in node.inputs if i.stream]
        reads = f", streams {', '.join(streams)}" if streams else ""
        return f"model   {node.name}  ({node.materialized.value} {node.relation}{reads})"
    if isinstance(node, Source):
        return f"source  {node.name}  ({node.spec.format} {location(node.spec)})"
    return f"{kind}    {node.name}"


def _record(node: Node, kind: str, project: str) -> dict[str, object]:
    record: dict[str, object] = {
        "resource_type": kind,
        "unique_id": unique_id(node.id, project),
        "name": node.name,
        "path": node.file,
    }
    if isinstance(node, Model):
        record |= {
            "materialized": node.materialized.value,
            "relation": str(node.relation),
            "depends_on": [unique_id(i, project) for i in node.depends_on],
            "streams": [i.name for i in node.inputs if i.stream],
            "tags": list(node.tags),
            "fingerprint": node.fingerprint,
        }
    elif isinstance(node, DataTest):
        record |= {
            "model": unique_id(node.model, project),
            "depends_on": [unique_id(i, project) for i in node.depends_on],
            "severity": node.severity.value,
            "tags": list(node.tags),
        }
    elif isinstance(node, UnitTest):
        model = unique_id(node.model, project)
        record |= {"model": model, "depends_on": [model], "tags": list(node.tags)}
    else:
        record |= {"format": node.spec.format, "location": location(node.spec), "tags": list(node.tags)}
    return record
