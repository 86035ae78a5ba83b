"""The chosen target, rendered. It travels beside the manifest and alone holds secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import Diagnostic, ProjectError, near
from engine.jinja import Sandbox
from engine.project import Project
from engine.project.section import Section

TARGET_KEYS = ("catalog", "schema", "spark", "state")
CATALOG_KEYS = {"sqlite": ("type", "name", "path")}
SPARK_KEYS = ("master", "conf", "driver_memory")


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where tables are registered: the kind, the name both clients use, and the embedded lake's folder."""

    type: str
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Target:
    """A place to build into.

    Attributes:
        catalog: the Iceberg catalog.
        schema: the namespace of models that name none.
        state: the folder of checkpoints and facts.
        master: Spark's master URL.
        conf: Spark settings of the user.
        driver_memory: heap of the driver, in Java's form (2g), or None for Spark's default.
    """

    name: str
    catalog: Catalog
    schema: str
    state: Path
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    driver_memory: str | None = None


def load_target(
    project: Project, name: str | None, sandbox: Sandbox, names: Mapping[str, Any], found: list[Diagnostic]
) -> Target:
    """Render and check one target of project.yml; a faulty one comes back with its defaults."""
    top = Section.of(project.doc, found)
    targets = top.child("targets")
    chosen = name or project.target or "dev"
    section = targets.child(chosen) if targets else None
    if section is None:
        known = [key for key, _ in targets.mapping()] if targets else []
        hint = near(chosen, known) or "Add it under 'targets:'."
        place = top.child("target") if name is None else None
        message = f"there is no target '{chosen}'"
        found.append(Diagnostic("target-unknown", message, hint, location=(place or targets or top).place))
        catalog = Catalog("sqlite", "lake", project.root / ".engine" / "lake")
        return Target(chosen, catalog, chosen, project.root / ".engine" / "state")
    section = _rendered(section, sandbox, names)
    section.check_keys(TARGET_KEYS, f"target '{chosen}'")
    spark = section.child("spark")
    schema = section.child("schema")
    if schema is None:
        section.report(
            "missing-key", f"target '{chosen}' has no 'schema'", "Add 'schema: <namespace>'.", at_key=True
        )
    state = section.child("state")
    return Target(
        name=chosen,
        catalog=_catalog(section, project.root),
        schema=schema.identifier() if schema else chosen,
        state=_folder(project.root, state.text() if state else ".engine/state"),
        **_spark(spark),
    )


def _rendered(section: Section, sandbox: Sandbox, names: Mapping[str, Any]) -> Section:
    """The same section with Jinja in its values rendered."""

    def walk(part: Section) -> Any:
        if isinstance(part.value, dict):
            return {key: walk(value) for key, value in part.mapping()}
        if isinstance(part.value, list):
            return [walk(item) for item in part.items()]
        if isinstance(part.value, str) and "{" in part.value:
            try:
                return sandbox.render_value(part.value, part.place, names)
            except ProjectError as error:
                part.found.extend(error.diagnostics)
                return ""
        return part.value

    return Section(section.doc, section.path, walk(section), section.found, section.node)


def _catalog(section: Section, root: Path) -> Catalog:
    part = section.child("catalog")
    default = Catalog("sqlite", "lake", _folder(root, ".engine/lake"))
    if part is None:
        section.report(
            "missing-key",
            "the target has no 'catalog'",
            "Add 'catalog: {type: sqlite, name: lake, path: .engine/lake}'.",
        )
        return default
    kind = part.child("type")
    chosen = kind.choice(*CATALOG_KEYS) if kind else "sqlite"
    part.check_keys(CATALOG_KEYS.get(chosen, ("type", "name", "path")), "catalog")
    name, path = part.child("name"), part.child("path")
    return Catalog(
        type=chosen,
        name=name.identifier() if name else default.name,
        path=_folder(root, path.text()) if path else default.path,
    )


def _spark(part: Section | None) -> dict[str, Any]:
    if part is None:
        return {}
    part.check_keys(SPARK_KEYS, "spark")
    result: dict[str, Any] = {}
    master, memory, conf = part.child("master"), part.child("driver_memory"), part.child("conf")
    if master:
        result["master"] = master.text()
    if memory:
        result["driver_memory"] = memory.text()
    if conf:
        result["conf"] = {key: _conf_text(value) for key, value in conf.mapping()}
    return result


def _conf_text(value: Section) -> str:
    return str(value.value).lower() if isinstance(value.value, bool) else value.text()


def _folder(root: Path, text: str) -> Path:
    return (root / os.path.expanduser(text)).resolve()  # noqa: PTH111 - keeps a leading ~ readable in errors
