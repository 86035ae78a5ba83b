"""Exposures as nodes: `exposures:` of the YAML files under models/, checked against what they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.compile.config.column_config import check_version, read_meta, read_tags
from engine.compile.config.stream_config import node_name
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import Model, Node, Source
from engine.compile.templates.rendered_values import ValueRenderer
from engine.errors import Diagnostic, Location, near
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.schema import ConfigBlock
from engine.schema.exposure_keys import EXPOSURE, EXPOSURE_CONFIG, EXPOSURE_FILE, OWNER


def read_exposures(
    project: LoadedProject, nodes: Mapping[str, Node], values: ValueRenderer, diagnostics: list[Diagnostic]
) -> tuple[Exposure, ...]:
    exposures: dict[str, Exposure] = {}
    for doc in project.exposures:
        top = values.rendered(Section.of_document(doc, diagnostics))
        top.check_keys(EXPOSURE_FILE)
        check_version(top)
        listed = top.child("exposures")
        for item in listed.items() if listed else ():
            exposure = _exposure(item, project, nodes)
            if exposure is None:
                continue
            if exposure.id in exposures:
                message = f"the exposure '{exposure.name}' is defined twice"
                first = exposures[exposure.id].location
                item.report("duplicate-name", message, f"Rename it; the first is in {first}.")
                continue
            exposures[exposure.id] = exposure
    return tuple(exposures.values())


def named_item(
    item: Section, block: ConfigBlock, kind: str, parts: str, example: str
) -> tuple[Section, str, Location] | None:
    """Return an item of a list, which reports under its name from now on, the name and its place; None: it has none."""
    if not isinstance(item.value, dict):
        item.expected(f"{kind} with {parts}")
        return None
    item.check_keys(block)
    name = item.child("name")
    if name is None:
        item.report("missing-key", f"{kind} has no 'name'", f"Write 'name: {example}'.")
        return None
    label = name.identifier() or name.text()
    return msgspec.structs.replace(item, node=label), label, name.place


def _exposure(item: Section, project: LoadedProject, nodes: Mapping[str, Node]) -> Exposure | None:
    """One exposure; None if it has no name, or is not enabled."""
    if (
        found := named_item(item, EXPOSURE, "an exposure", "name, type, owner and depends_on", "departures_board")
    ) is None:
        return None
    item, label, place = found
    tags, meta, enabled = _config(item)
    if not enabled:
        return None
    reads = item.child("depends_on")
    return Exposure(
        id=f"exposure.{label}",
        name=label,
        kind=_choice(item, "type", required=True),
        owner=_owner(item),
        label=_text(item, "label"),
        description=_text(item, "description"),
        url=_url(item),
        maturity=_choice(item, "maturity"),
        depends_on=_reads(reads, project, nodes) if reads else (),
        tags=tags,
        meta=meta,
        file=item.doc.file,
        location=place,
    )


def _config(item: Section) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    config = item.child("config")
    if config is not None:
        config.check_keys(EXPOSURE_CONFIG)
    levels = [item, *([config] if config is not None else [])]
    tags = tuple(dict.fromkeys(tag for level in levels for tag in read_tags(level.child("tags"))))
    meta = {key: value for level in levels for key, value in read_meta(level.child("meta")).items()}
    enabled = [part.boolean(otherwise=True) for level in levels if (part := level.child("enabled"))]
    return tags, meta, all(enabled)


def _text(item: Section, key: str) -> str:
    part = item.child(key)
    return part.text() if part else ""


def _choice(item: Section, key: str, *, required: bool = False) -> str:
    part = item.child(key)
    if part is not None:
        return part.choice(*EXPOSURE.choices(key))
    if required:
        hint = f"Write '{key}: {EXPOSURE.choices(key)[0]}'."
        item.report("missing-key", f"the exposure '{item.node}' has no '{key}'", hint)
    return ""


def _owner(item: Section) -> dict[str, Any]:
    owner = item.child("owner")
    if owner is None or (isinstance(owner.value, dict) and not {"name", "email"} & owner.value.keys()):
        hint = "Write 'owner: {name: ..., email: ...}'; one of them is enough."
        (owner or item).report("missing-key", f"the exposure '{item.node}' has no owner", hint)
        return {}
    return {key: part.text() if key in OWNER.names else part.value for key, part in owner.mapping()}


def _url(item: Section) -> str:
    part = item.child("url")
    text = part.text().strip() if part else ""
    if part is not None and text and not text.lower().startswith(("http://", "https://")):
        part.report("bad-value", f"'{text}' is not a web address", "Write 'url: https://...'.")
        return ""
    return text


def _reads(reads: Section, project: LoadedProject, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    node_ids = (_read(part, project, nodes) for part in reads.items())
    return tuple(dict.fromkeys(node for node in node_ids if node))


def _read(part: Section, project: LoadedProject, nodes: Mapping[str, Node]) -> str | None:
    name = node_name(part.text())
    if not name:
        return None
    node = nodes.get(f"model.{name}") or nodes.get(f"source.{name}")
    if isinstance(node, Model) and not node.in_catalog:
        part.report("bad-value", f"'{name}' is ephemeral and has no table", "Name a model that reads it.")
        return None
    if node is not None:
        return node.id
    hint = near(name, [n.name for n in nodes.values() if isinstance(n, Model | Source)])
    if "." not in name:
        disabled = name in {model.name for model in project.models}
        hint = f"'{name}' is disabled (enabled: false)." if disabled else hint
        part.report("unknown-ref", f"model '{name}' not found", hint)
    elif project.sources_whole:
        part.report("unknown-source", f"source '{name}' not found", hint)
    return None
