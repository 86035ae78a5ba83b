"""dbt's exposures: what reads the tables has the same form here."""

from __future__ import annotations

from typing import Any

from engine.project.yaml_text import yaml_text
from engine.schema.exposure_keys import EXPOSURE
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.new_names import valid_name
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, text_of, texts_of
from engine_import.output.import_report import ImportOutcome, plain

_FILE = "models/exposures.yml"


def import_exposures(context: ImportContext) -> None:
    exposures, items = [], []
    for node in context.manifest.exposures.values():
        if node.package != context.manifest.project:
            continue
        reads, notes = _reads(context, node)
        waits = [name for name in reads if name in context.drafts]
        exposure = _exposure(node, [_call(name) for name in reads], enabled=not waits)
        if waits:
            notes.append(f"left out until {', '.join(waits)} is decided")
        exposures.append(exposure)
        items.append((node, tuple(notes)))
    if not exposures:
        return
    file = context.files.add(_FILE, yaml_text({"exposures": exposures}))
    for node, said in items:
        add_item(context, node, ImportOutcome.IMPORTED, kind="exposure", file=file, notes=said)


def _exposure(node: DbtNode, reads: list[str], *, enabled: bool) -> dict[str, Any]:
    owner = {key: value for key, value in mapping_of(node.data, "owner").items() if value}
    known = owner if {"name", "email"} & owner.keys() else {"name": "unknown", **owner}
    kind, maturity = text_of(node.data, "type"), text_of(node.data, "maturity")
    found: dict[str, Any] = {
        "name": valid_name(node.name),
        "label": text_of(node.data, "label"),
        "type": kind if kind in EXPOSURE.choices("type") else "application",
        "description": node.text("description").strip(),
        "url": _address(text_of(node.data, "url")),
        "maturity": maturity if maturity in EXPOSURE.choices("maturity") else "",
        "owner": known,
        "depends_on": reads,
        "tags": list(dict.fromkeys((*texts_of(node.data, "tags"), *texts_of(node.config, "tags")))),
        "meta": {**mapping_of(node.config, "meta"), **mapping_of(node.data, "meta")},
    }
    return {key: value for key, value in found.items() if value} | ({} if enabled else {"enabled": False})


def _address(url: str) -> str:
    return url if url.lower().startswith(("http://", "https://")) else ""


def _reads(context: ImportContext, node: DbtNode) -> tuple[list[str], list[str]]:
    reads, left = [], []
    for parent in node.parents:
        name = context.names.models.get(parent, "") or _source(context, parent)
        item = context.items.get(parent)
        known = context.manifest.nodes.get(parent)
        ephemeral = known is not None and text_of(known.config, "materialized") == "ephemeral"
        if not name or ephemeral or item is None or item.outcome is ImportOutcome.NOT_IMPORTED:
            left.append(f"without {plain(name or parent)}, which has no table here")
        else:
            reads.append(name)
    return reads, left


def _source(context: ImportContext, node_id: str) -> str:
    """The name here of a source, by dbt's unique id; empty if it is none."""
    source = context.manifest.sources.get(node_id)
    return ".".join(context.names.sources[source.text("source_name"), source.name]) if source else ""


def _call(name: str) -> str:
    group, dot, table = name.partition(".")
    return f"source('{group}', '{table}')" if dot else f"ref('{name}')"
