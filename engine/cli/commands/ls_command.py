"""The lines of `engine ls`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.api.deferral import deferred_inputs
from engine.characters import one_line
from engine.cli.console.safe_output import json_text, write
from engine.compile import DataTest, Exposure, Manifest, Model, Node, Sink, Source, UnitTest
from engine.compile.artifacts.dbt_manifest import unique_id
from engine.errors import UsageError, near
from engine.sources import location

# Of the records of --output json; each kind of node has some of them.
_KEYS = (
    "resource_type", "unique_id", "name", "path", "materialized", "relation", "depends_on", "streams", "tags",
    "fingerprint", "model", "severity", "format", "location", "deferred",
)  # fmt: skip


def read_keys(output: str, requested: Sequence[str]) -> list[str]:
    """The keys of --output-keys, which may also be separated by blanks or commas.

    Raises UsageError: a key that no record has, or another output than JSON.
    """
    keys = " ".join(requested).replace(",", " ").split()
    if keys and output != "json":
        raise UsageError("usage", "--output-keys needs --output json", "Add --output json.")
    for key in keys:
        if key not in _KEYS:
            raise UsageError("usage", f"unknown key '{key}'", near(key, _KEYS))
    return keys


def write_lines(
    manifest: Manifest, nodes: Iterable[str], output: str, resource_type: str, keys: Sequence[str] = ()
) -> None:
    lines = []
    for node_id in nodes:
        node = manifest.nodes[node_id]
        kind = _kind(node)
        if resource_type not in {"all", kind}:
            continue
        if output == "json":
            record = _record(node, kind, manifest.project)
            if deferred := deferred_inputs(manifest, node_id):
                record["deferred"] = deferred
            lines.append(json_text({key: record[key] for key in keys if key in record} if keys else record))
        else:
            text = {"name": node.name, "path": node.file}.get(output) or _text(manifest, node, kind)
            lines.append(one_line(text))
    if lines:
        write("\n".join(lines))


def _kind(node: Node) -> str:
    if isinstance(node, UnitTest):
        return "unit_test"
    if isinstance(node, Exposure):
        return "exposure"
    if isinstance(node, Sink):
        return "sink"
    return "model" if isinstance(node, Model) else "source" if isinstance(node, Source) else "test"


def _text(manifest: Manifest, node: Node, kind: str) -> str:
    if isinstance(node, Model):
        streams = [i.name for i in node.inputs if i.stream]
        reads = f", streams {', '.join(streams)}" if streams else ""
        deferred = [f"{name} to {table}" for name, table in deferred_inputs(manifest, node.id).items()]
        reads += f", defers {', '.join(deferred)}" if deferred else ""
        return f"model   {node.name}  ({node.materialized.value} {node.relation}{reads})"
    if isinstance(node, Source):
        return f"source  {node.name}  ({node.spec.format} {location(node.spec)})"
    if isinstance(node, Exposure):
        return f"exposure  {node.name}  ({node.kind})"
    if isinstance(node, Sink):
        return f"sink    {node.name}  ({node.place})"
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
    elif isinstance(node, Exposure | Sink):
        record |= {"depends_on": [unique_id(i, project) for i in node.depends_on], "tags": list(node.tags)}
    else:
        record |= {"format": node.spec.format, "location": location(node.spec), "tags": list(node.tags)}
    return record
