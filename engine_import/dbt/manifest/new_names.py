"""The names that dbt's nodes have in the new project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.project.yaml_section import is_name, is_table_name
from engine_import.dbt.manifest.read_manifest import SOURCE_CALL, DbtManifest, DbtNode
from engine_import.templates.template_parts import in_code

SEEDS = "seeds"
# What becomes a model: ref() may name it.
_REFERABLE = ("model", "seed", "snapshot")
_LONGEST = 120
_REF = re.compile(
    r"""\bref\(\s*(['"])([^'"]*)\1\s*(?:,\s*(['"])([^'"]*)\3\s*)?(?:,\s*(?:v|version)\s*=\s*['"]?([\w.]+)['"]?\s*)?\)"""
)


@dataclass(frozen=True, slots=True)
class NewNames:
    """Names by what dbt calls a thing.

    Attributes:
        models: name of the model by dbt's unique id of a model, seed or snapshot.
        references: the same by package (empty: any), name and version (empty: the newest).
        sources: names of source and table by dbt's names of them.
    """

    models: Mapping[str, str]
    references: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    sources: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def ref(self, name: str, package: str = "", version: str = "") -> str | None:
        """The model that a `ref()` means; None: it is not imported."""
        return self.references.get((package, name, version))

    def in_template(self, template: str) -> str:
        """Return a template whose ref() and source() have the new names."""
        return in_code(template, self.in_code)

    def in_code(self, code: str) -> str:
        return SOURCE_CALL.sub(self._source, _REF.sub(self._ref, code))

    def _ref(self, found: re.Match[str]) -> str:
        package, name = (found[2], found[4]) if found[4] is not None else ("", found[2])
        new = self.ref(name, package, found[5] or "")
        return found[0] if new is None else f"ref('{new}')"

    def _source(self, found: re.Match[str]) -> str:
        new = self.sources.get((found[2], found[4]))
        return found[0] if new is None else f"source('{new[0]}', '{new[1]}')"


def new_names(manifest: DbtManifest) -> NewNames:
    taken: set[str] = set()
    models: dict[str, str] = {}
    references: dict[tuple[str, str, str], str] = {}
    own = [node for node in manifest.nodes.values() if node.kind in _REFERABLE and node.package == manifest.project]
    # A name that is valid as it is, is kept.
    for node in sorted(own, key=lambda node: (not is_table_name(_wanted(node)), node.id)):
        new = models[node.id] = _free(_valid(_wanted(node)), taken)
        for package in ("", node.package):
            references[package, node.name, node.version] = new
            if not node.version or node.version == _latest(node):
                references[package, node.name, ""] = new
    return NewNames(models, references, _sources(manifest))


def _sources(manifest: DbtManifest) -> dict[tuple[str, str], tuple[str, str]]:
    groups: dict[str, str] = {}
    taken, tables = {SEEDS}, set[str]()
    names = {}
    for node in sorted(manifest.sources.values(), key=lambda node: node.id):
        group = node.text("source_name")
        if group not in groups:
            groups[group] = _free(_valid(group), taken)
        prefix = f"{groups[group]}."
        inside = {table.removeprefix(prefix) for table in tables if table.startswith(prefix)}
        name = _free(_valid(node.name), inside)
        tables.add(f"{prefix}{name}")
        names[group, node.name] = (groups[group], name)
    return names


def _wanted(node: DbtNode) -> str:
    return f"{node.name}_v{node.version}" if node.version else node.name


def _latest(node: DbtNode) -> str:
    return str(node.data.get("latest_version") or "")


def _valid(name: str) -> str:
    text = re.sub(r"[^a-z0-9_]+", "_", name.casefold())[:_LONGEST].strip("_") or "unnamed"
    return text if is_table_name(text) else f"m_{text}_" if not is_table_name(f"m_{text}") else f"m_{text}"


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free


def valid_name(text: str) -> str:
    return text if is_name(text) else _valid(text)
