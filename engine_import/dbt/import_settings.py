"""project.yml of the new project: the name, and the variables of dbt_project.yml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import ProjectError
from engine.project.parse_yaml import load_yaml
from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.manifest.new_names import valid_name
from engine_import.dbt.manifest.read_manifest import mapping_of
from engine_import.output.import_report import plain
from engine_import.output.input_folder import read_bounded

_FILE = "dbt_project.yml"
_MOST_BYTES = 2**20
_WITHOUT = (
    "dbt_project.yml was not found beside target/, so no variables are imported: set them under 'vars:' in project.yml"
)
IGNORED = "/target/\n/.engine/\n"


def import_settings(context: ImportContext) -> None:
    """Add project.yml."""
    project: dict[str, Any] = {"name": valid_name(context.manifest.project or "imported")}
    if values := _variables(context):
        project["vars"] = values
    context.files.add("project.yml", yaml_text(project))


def _variables(context: ImportContext) -> dict[str, Any]:
    try:
        content = read_bounded(context.root, _FILE, _MOST_BYTES)
    except ProjectError as error:
        context.notes.append(plain(error.diagnostic.message))
        return {}
    if content is None:
        context.notes.append(_WITHOUT)
        return {}
    parsed, findings = load_yaml(content.decode("utf-8", "replace"), _FILE)
    if findings or not isinstance(parsed.data, dict):
        context.notes.append(f"{_FILE} cannot be read: {plain(findings[0].message) if findings else 'not a mapping'}")
        return {}
    return _of_project(context, mapping_of(parsed.data, "vars"))


def _of_project(context: ImportContext, values: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that templates of the project see: those of the project win over those of all packages."""
    packages = {macro.package for macro in context.manifest.macros.values()} - {context.manifest.project}
    own = values.get(context.manifest.project)
    general = {
        key: value for key, value in values.items() if key != context.manifest.project or not isinstance(own, dict)
    }
    scoped = sorted(key for key, value in general.items() if key in packages and isinstance(value, dict))
    if scoped:
        context.notes.append(f"variables of packages are not imported: {plain(', '.join(scoped))}")
    kept = {key: value for key, value in general.items() if key not in scoped}
    return {**kept, **(own if isinstance(own, dict) else {})}
