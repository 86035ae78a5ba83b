"""`--defer`: models that are not selected are read from the tables of another target, as dbt does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import Diagnostic, Location, ProjectError, UsageError

if TYPE_CHECKING:
    from engine.api.requests import Selection
    from engine.compile import Compiled, Manifest, Model, Relation
    from engine.project.project_loader import ProjectFlags


# Of a catalog, a schema or a table.
_MOST_NAME = 500


@dataclass(frozen=True, slots=True)
class DeferTo:
    """Where models that are not selected are read.

    `folder`: with the manifest.json of another target. `favor`: also those that exist in the target.
    """

    folder: Path
    favor: bool = False


def deferral_of(selection: Selection, flags: ProjectFlags) -> DeferTo | None:
    """Return where models are read that are not selected; None: in the target.

    What is None in the selection is as `flags` has it; `flags.defer` counts where a state is given.

    Raises UsageError: `--defer` without `--state`, or `--favor-state` without `--defer`.
    """
    folder = selection.defer_state or selection.state
    defers = selection.defer if selection.defer is not None else flags.defer and folder is not None
    if selection.favor_state and not defers:
        raise UsageError("usage", "--favor-state needs --defer", "Add --defer, and --state with a manifest.json.")
    if not defers:
        return None
    if folder is None:
        hint = "Add --state, or --defer-state, with a folder that has the manifest.json of the target to read from."
        raise UsageError("usage", "--defer needs --state", hint)
    favor = flags.favor_state if selection.favor_state is None else selection.favor_state
    return DeferTo(folder, favor)


def deferred(
    compiled: Compiled,
    nodes: Iterable[str],
    to: DeferTo,
    compile_deferred: Callable[[Mapping[str, Relation]], Compiled],
) -> Compiled:
    """Return the project with references to models that are not selected as the other target's tables, where needed.

    `compile_deferred` compiles the project with other tables for some models, by name.

    Raises:
        UsageError: there is no readable manifest.json.
        ProjectError: `defer-catalog`, `defer-missing`: a table that would be read is out of reach.
        SetupError: the catalog cannot be read.
    """
    from engine.compile.selection.previous_state import load_previous

    other_nodes = load_previous(to.folder, must_exist=True).nodes
    exists = _existing(compiled)
    tables_by_model: dict[str, Relation] = {}
    problems: list[Diagnostic] = []
    for model in _read_only(compiled.manifest, nodes):
        relation = _relation(other_nodes.get(model.id, {}))
        if relation is None or relation == model.relation or (not to.favor and exists(model.relation)):
            continue
        problem = _problem(compiled, model, relation, to.folder, exists)
        if problem is not None:
            problems.append(problem)
        tables_by_model[model.name] = relation
    if problems:
        raise ProjectError.from_diagnostics(problems)
    result = compile_deferred(tables_by_model) if tables_by_model else compiled
    return replace(result, deferred_to=to.folder, favors_state=to.favor)


def deferred_inputs(manifest: Manifest, node_id: str) -> dict[str, str]:
    from engine.compile import DataTest, Model

    node = manifest.nodes[node_id]
    if isinstance(node, Model):
        read: Iterable[str] = (item.node for item in node.inputs)
    else:
        read = node.depends_on if isinstance(node, DataTest) else ()
    models = (model for i in read if isinstance(model := manifest.nodes[i], Model))
    return {model.name: str(model.relation) for model in models if model.deferred_from is not None}


def _read_only(manifest: Manifest, nodes: Iterable[str]) -> list[Model]:
    from engine.compile import DataTest, Model

    selected = dict.fromkeys(nodes)
    read: dict[str, None] = {}
    for node in (manifest.nodes[i] for i in selected):
        if isinstance(node, Model):
            read |= dict.fromkeys(item.node for item in node.inputs)
        elif isinstance(node, DataTest):
            read |= dict.fromkeys(node.depends_on)
    models = (model for i in read if i not in selected and isinstance(model := manifest.nodes[i], Model))
    return [model for model in models if model.in_catalog]


def _existing(compiled: Compiled) -> Callable[[Relation], bool]:
    """A test for whether a table or view exists in the target's catalog, which is asked once a schema."""
    from engine.lake.lake_reader import Lake

    lake = Lake(compiled.target.catalog)
    tables = cache(lambda schema: frozenset(lake.names(schema)))

    def exists(relation: Relation) -> bool:
        return relation.name in tables(relation.schema) or lake.view(relation.schema, relation.name) is not None

    return exists


def _relation(record: Mapping[str, Any]) -> Relation | None:
    """The table of a model of another manifest.json, or the one that it is read from there; None: it has none."""
    from engine.compile import Relation

    place = record.get("defer_relation") or record
    if not isinstance(place, dict) or not record.get("relation_name"):
        return None
    parts = [place.get(key) for key in ("database", "schema", "alias")]
    valid_parts = [
        part for part in parts if isinstance(part, str) and 0 < len(part) <= _MOST_NAME and part.isprintable()
    ]
    return Relation(*valid_parts) if len(valid_parts) == len(parts) else None


def _problem(
    compiled: Compiled, model: Model, relation: Relation, folder: Path, exists: Callable[[Relation], bool]
) -> Diagnostic | None:
    place = Location(model.file)
    if relation.catalog != (catalog_name := compiled.target.catalog.name):
        message = f"'{model.name}' would be read from {relation}, but the catalog of target '{compiled.target.name}'"
        hint = (
            f"Pass the manifest.json of a target that writes to '{catalog_name}', or build it: "
            f"engine build -s +{model.name}"
        )
        return Diagnostic("defer-catalog", f"{message} is '{catalog_name}'", hint, node=model.name, location=place)
    if not exists(relation):
        message = f"'{model.name}' would be read from {relation}, which does not exist"
        hint = (
            f"Build it there, pass the manifest.json of another target than {folder}, or build it here: "
            f"engine build -s +{model.name}"
        )
        return Diagnostic("defer-missing", message, hint, node=model.name, location=place)
    return None
