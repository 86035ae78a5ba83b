"""Stage 2 from end to end: a project becomes a manifest, with what an earlier compilation found where that holds.

What takes Jinja's and sqlglot's time to load is imported only when something has to be compiled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from engine.compile.artifacts.node_json import Nodes
from engine.compile.declarations.target import Target, load_target
from engine.compile.nodes.macro_docs import read_macros
from engine.compile.nodes.manifest import Manifest
from engine.compile.pipeline import compile_cache
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.templates.secret_settings import SecretSettings
from engine.compile.templates.template_names import TemplateNames
from engine.errors import Diagnostic
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.relations import Relation
from engine.secrets import names_credential


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled project.

    Attributes:
        manifest: its nodes, and what is wrong with them.
        target: for which it was compiled; it alone holds secrets.
        project: the files from which it was compiled.
        deferred_to: the folder whose manifest.json has the tables that some models are read from (`--defer`).
        favors_state: they are read there although they exist in the target (`--favor-state`).
    """

    manifest: Manifest
    target: Target
    project: LoadedProject
    deferred_to: Path | None = None
    favors_state: bool = False


def compile_project(
    project: LoadedProject,
    *,
    target: str | None = None,
    variables: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cached: Path | None = None,
    deferred: Mapping[str, Relation] | None = None,
) -> Compiled:
    """Compile a project.

    Args:
        project: what `load_project` read.
        target: name of the target; None: the project's default.
        variables: values of --vars; they win over the project's.
        env: the environment; None: the process's own.
        cached: the folder that keeps what was found for the next time; None: everything is compiled.
        deferred: tables of another target that are read in place of those of some models, by the model's name; a
            compilation with any is not kept.

    Returns:
        The manifest with every finding of the project in it, sorted; it never raises for a user's error.
    """
    environment = os.environ if env is None else env
    names = _names(project, variables or {}, environment)
    values = ValueRenderer(names.for_values())
    diagnostics = list(project.diagnostics)
    chosen = load_target(project, target, _of_target(names, environment, project.root), diagnostics)
    names.target = {"name": chosen.name, "schema": chosen.schema, "catalog": chosen.catalog.name}
    now = compile_cache.look(project, chosen, variables or {}, names.env, diagnostics)
    instead = deferred or {}
    cached = None if instead else cached
    stored = compile_cache.load(cached, chosen)
    if not stored.holds(now):
        from engine.compile.pipeline.incremental import compile_models

        entries = stored.usable(now)
        try:
            stored = compile_models(project, chosen, names, values, list(diagnostics), entries, now, instead)
        except msgspec.MsgspecError:
            # What was kept is damaged; without it everything is compiled.
            nothing = compile_cache.StoredCompilation()
            stored = compile_models(project, chosen, names, values, diagnostics, nothing, now, instead)
        if cached is not None:
            compile_cache.save(stored, cached, chosen, environment)
    manifest = Manifest(
        project=project.name,
        version=project.version,
        target=chosen.name,
        nodes=Nodes(dict.fromkeys(stored.nodes), stored.json),
        order=stored.order,
        diagnostics=stored.found,
        macros=read_macros(project.macros),
        records=compile_cache.Records(stored),
        invocation_id=names.invocation,
    )
    return Compiled(_deferring(manifest, instead), chosen, project)


def _names(project: LoadedProject, variables: Mapping[str, Any], environment: Mapping[str, str]) -> TemplateNames:
    """What templates may call."""
    public = {name: value for name, value in environment.items() if not names_credential(name)}
    names = TemplateNames({**project.vars, **variables}, public)
    names.project = project.name
    return names


def _of_target(names: TemplateNames, environment: Mapping[str, str], root: Path) -> ValueRenderer:
    """What renders a target: only that may name secrets, and not even there does a template see one."""
    secrets = SecretSettings(environment, root)
    return ValueRenderer(replace(names, secrets=secrets).for_values(), secrets)


def targets_of(project: LoadedProject, variables: Mapping[str, Any]) -> Iterator[tuple[Target, tuple[Diagnostic, ...]]]:
    """Yield each target that project.yml declares, with what is wrong with it here: the environment may be another's.

    Args:
        project: what `load_project` read.
        variables: values of --vars.
    """
    declared = Section.of(project.doc, []).child("targets")
    for name, _ in declared.mapping() if declared else ():
        problems: list[Diagnostic] = []
        values = _of_target(_names(project, variables, os.environ), os.environ, project.root)
        yield load_target(project, name, values, problems), tuple(problems)


def _deferring(manifest: Manifest, instead: Mapping[str, Relation]) -> Manifest:
    """The manifest, with other tables as those of some models."""
    if not instead:
        return manifest
    models = {model.id: model for model in map(manifest.model, instead)}
    moved = {i: replace(m, relation=instead[m.name], deferred_from=m.relation) for i, m in models.items()}
    return replace(manifest, nodes={**manifest.nodes, **moved}, records={})
