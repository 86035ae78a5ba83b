"""What all models of a project share while they are compiled: target, names, macros, sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from engine.compile.config.column_config import TestConfig
from engine.compile.config.config_layers import check_folder_defaults
from engine.compile.declarations.source_files import read_sources
from engine.compile.declarations.target import Target
from engine.compile.nodes.manifest import Source
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.templates.template_names import TemplateNames
from engine.errors import Diagnostic
from engine.jinja import OWN, MacroFile, Sandbox
from engine.project import LoadedProject
from engine.relations import Relation

# The table property that marks such a table.
FAILING_ROWS = "engine.test"


def failing_rows(target: Target, test: str) -> Relation:
    return Relation(target.catalog.name, f"{target.schema}_test_failures", test)


@dataclass(frozen=True, slots=True)
class CompileContext:
    """Target, names, macros and sources; `sandbox` knows the macros, `values` renders settings.

    `sources_whole`: all source files could be read, so that a source not found is none.
    """

    project: LoadedProject
    target: Target
    names: TemplateNames
    values: ValueRenderer
    sandbox: Sandbox
    sources: Mapping[str, Source]
    source_tests: Mapping[str, tuple[TestConfig, ...]]
    sources_whole: bool = True

    def failures(self, test: str) -> Relation:
        return failing_rows(self.target, test)


def share(
    project: LoadedProject, target: Target, names: TemplateNames, values: ValueRenderer, diagnostics: list[Diagnostic]
) -> CompileContext:
    sandbox = Sandbox(names.for_models())
    diagnostics += sandbox.add_macros([*own_macros(), *project.macros])
    declared = read_sources(project, target, values, diagnostics)
    check_folder_defaults(project, diagnostics)
    return CompileContext(
        project, target, names, values, sandbox, declared.sources, declared.tests, sources_whole=declared.whole
    )


def own_macros() -> list[MacroFile]:
    folder = resources.files("engine") / "macros"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [MacroFile(f"engine/macros/{f.name}", f.read_text(encoding="utf-8"), OWN) for f in files]
