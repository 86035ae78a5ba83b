"""The chosen target, rendered. It travels beside the manifest and alone holds secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.compile.layers import not_yet
from engine.compile.values import Values
from engine.errors import Diagnostic, near
from engine.project import Project
from engine.project.section import Section

TARGET_KEYS = ("catalog", "schema", "spark", "state")
CATALOG_KEYS = {"sqlite": ("type", "name", "path")}
LATER_KEYS = ("connections", "schema_registries")
LATER_CATALOGS = ("rest", "hive", "glue", "jdbc", "hadoop", "nessie")
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


def load_target(project: Project, name: str | None, values: Values, found: list[Diagnostic]) -> Target:
    """Render and check one target of project.yml; a faulty one comes back with its defaults."""
    top = Section.of(project.doc, found)
    targets = top.child("targets")
    chosen = name or project.target or "dev"
    section = targets.child(chosen) if targets else None
    if section is None:
        if not project.broken:
            _no_target(chosen, top, targets, named=name is None)
        catalog = Catalog("sqlite", "lake", project.root / ".engine" / "lake")
        return Target(chosen, catalog, chosen, project.root / ".engine" / "state")
    section = values.rendered(section)
    for key, part in section.mapping():
        if key in LATER_KEYS:
            not_yet(part, key)
    section.check_keys((*TARGET_KEYS, *LATER_KEYS), f"target '{chosen}'")
    schema, state = section.child("schema"), section.child("state")
    if schema is None:
        hint = "Add 'schema: <namespace>'."
        section.report("missing-key", f"target '{chosen}' has no 'schema'", hint, at_key=True)
    return Target(
        name=chosen,
        catalog=_catalog(section, project.root),
        schema=schema.identifier() if schema else chosen,
        state=_folder(project.root, state.text() if state else ".engine/state"),
        **_spark(section.child("spark")),
    )


def _no_target(chosen: str, top: Section, targets: Section | None, *, named: bool) -> None:
    known = [key for key, _ in targets.mapping()] if targets else []
    hint = near(chosen, known) or "Add it: targets: {dev: {catalog: {type: sqlite, ...}, schema: ...}}."
    place = (top.child("target") if named else None) or targets or top
    place.report("target-unknown", f"there is no target '{chosen}'", hint)


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
    chosen = kind.text() if kind else "sqlite"
    if kind and chosen in LATER_CATALOGS:
        kind.report("not-supported", f"the catalog type '{chosen}' is not part of this version", "Use sqlite.")
        return default
    if kind and kind.choice(*CATALOG_KEYS) not in CATALOG_KEYS:
        return default
    part.check_keys(CATALOG_KEYS[chosen], "catalog")
    name, path = part.child("name"), part.child("path")
    return Catalog(
        type=chosen,
        name=name.identifier() if name else default.name,
        path=_folder(root, path.text()) if path else default.path,
    )


def _spark(part: Section | None) -> dict[str, Any]:
    if part is None:
        return {}
    for key, value in part.mapping():
        if key == "packages":
            not_yet(value, key)
    part.check_keys((*SPARK_KEYS, "packages"), "spark")
    result: dict[str, Any] = {}
    master, memory, conf = part.child("master"), part.child("driver_memory"), part.child("conf")
    if master:
        result["master"] = master.text()
    if memory:
        result["driver_memory"] = memory.text()
    if conf:
        result["conf"] = {key: value.option() for key, value in conf.mapping()}
    return result


def _folder(root: Path, text: str) -> Path:
    return (root / os.path.expanduser(text)).resolve()  # noqa: PTH111 - keeps a leading ~ readable in errors
