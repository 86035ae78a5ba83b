"""Stage 2 from end to end: a project becomes a manifest, with what an earlier compilation found where that holds.

Jinja and sqlglot are imported only when something has to be compiled.
"""

from __future__ import annotations

import os
import re
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
from engine.compile.pipeline.compile_cache import StoredCompilation
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.templates.secret_settings import SecretSettings
from engine.compile.templates.template_names import TemplateNames
from engine.compile.templates.unused_variables import unused_variables
from engine.errors import Diagnostic, ProjectError
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.relations import Relation
from engine.secrets.scrubber import names_credential


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled project.

    `target` alone holds secrets. `deferred_to`: the folder whose manifest.json has the tables that some models are read
    from (`--defer`); `favors_state`: although they exist in the target (`--favor-state`).
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
    """Compile a project; return every finding in the manifest, sorted: it never raises for a user's error.

    `variables` win over the project's; `env` None: the process's own. `cached` is the folder that keeps what was found;
    None: everything is compiled. `deferred`: tables of another target to read in place of those of some models, by the
    model's name; a compilation with any is not kept.
    """
    environment = os.environ if env is None else env
    names = names_of(project, variables or {}, environment)
    values = ValueRenderer(names.for_values())
    diagnostics = [*project.diagnostics, *unused_variables(project, variables or {})]
    target_config = _target(project, target, _of_target(names, environment, project.root), diagnostics)
    names.target = {"name": target_config.name, "schema": target_config.schema, "catalog": target_config.catalog.name}
    now = compile_cache.current_hashes(project, target_config, variables or {}, names.env, diagnostics)
    instead = deferred or {}
    cached = None if instead else cached
    compilation = compile_cache.load(cached, target_config)
    if not compilation.holds(now):
        from engine.compile.pipeline.incremental import compile_models, load_all
        from engine.compile.templates.confined_process import run_confined

        entries = compilation.usable(now)
        load_all()

        def compiled(before: StoredCompilation) -> StoredCompilation:
            result = compile_models(project, target_config, names, values, list(diagnostics), before, now, instead)
            # This process has the bytes too.
            return replace(result, data=b"")

        try:
            compilation = replace(run_confined(compiled, entries), data=entries.data)
        except msgspec.MsgspecError:
            # What was kept is damaged; without it everything is compiled.
            compilation = run_confined(compiled, StoredCompilation())
        if cached is not None:
            compile_cache.save(compilation, cached, target_config, environment)
    manifest = Manifest(
        project=project.name,
        version=project.version,
        target=target_config.name,
        nodes=Nodes(dict.fromkeys(compilation.nodes), compilation.json),
        order=compilation.order,
        diagnostics=compilation.found,
        macros=read_macros(project.macros),
        records=compile_cache.Records(compilation),
        invocation_id=names.invocation,
    )
    return Compiled(_with_deferred_tables(manifest, instead), target_config, project)


def names_of(project: LoadedProject, variables: Mapping[str, Any], environment: Mapping[str, str]) -> TemplateNames:
    public = {name: value for name, value in environment.items() if not names_credential(name)}
    names = TemplateNames({**project.vars, **variables}, public)
    names.project = project.name
    return names


def _of_target(names: TemplateNames, environment: Mapping[str, str], root: Path) -> ValueRenderer:
    """What renders a target: only that may name secrets, and not even there does a template see one."""
    secrets = SecretSettings(environment, root)
    return ValueRenderer(replace(names, secrets=secrets).for_values(), secrets)


def targets_of(project: LoadedProject, variables: Mapping[str, Any]) -> Iterator[tuple[Target, tuple[Diagnostic, ...]]]:
    """Yield each target that project.yml declares, with its findings here: the environment may be another's."""
    declared = Section.of_document(project.doc, []).child("targets")
    for name, _ in declared.mapping() if declared else ():
        problems: list[Diagnostic] = []
        values = _of_target(names_of(project, variables, os.environ), os.environ, project.root)
        yield _target(project, name, values, problems), tuple(problems)


# References to variables: they make no more than is there.
_PLAIN = re.compile(r"""\{\{\s*(?:env_var|var)\((?:'[^'{}]*'|"[^"{}]*")(?:, ?(?:'[^'{}]*'|"[^"{}]*"))?\)\s*\}\}""")


_TAG = re.compile(r"\{[{%]")


def _target(project: LoadedProject, name: str | None, values: ValueRenderer, problems: list[Diagnostic]) -> Target:
    """Render a target in this process, so that what it asks of secrets stays here.

    Raises:
        ProjectError: `template-too-large`: a template in it takes too much, found out by a process with limits.
    """
    settings = project.doc.data
    if _computes_values([project.vars, settings.get("targets") if isinstance(settings, Mapping) else None]):
        from engine.compile.templates.confined_process import run_confined

        def too_large_templates() -> list[Diagnostic]:
            diagnostics: list[Diagnostic] = []
            load_target(project, name, values, diagnostics)
            return [d for d in diagnostics if d.code == "template-too-large"]

        if too_large := run_confined(too_large_templates):
            raise ProjectError.from_diagnostics(too_large)
    return load_target(project, name, values, problems)


def _computes_values(value: Any) -> bool:
    """Whether a template in a value does more than refer to variables."""
    if isinstance(value, Mapping):
        return any(map(_computes_values, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_computes_values, value))
    return isinstance(value, str) and bool(_TAG.search(_PLAIN.sub("", value)))


def _with_deferred_tables(manifest: Manifest, instead: Mapping[str, Relation]) -> Manifest:
    """The manifest, with other tables as those of some models."""
    if not instead:
        return manifest
    models = {model.id: model for model in map(manifest.model, instead)}
    moved = {i: replace(m, relation=instead[m.name], deferred_from=m.relation) for i, m in models.items()}
    return replace(manifest, nodes={**manifest.nodes, **moved}, records={})
