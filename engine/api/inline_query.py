"""A query from the command line: compiled as if it were a model of the project, or only rendered for another engine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.api.requests import failing_on_warnings
from engine.errors import EngineError, ProjectError

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled, Model
    from engine.jinja import Rendered

INLINE = "inline_query"
# The file that places in a query are shown with.
QUERY = "query"
_STORAGE = "column-storage"


def compile_query(project: Project, sql: str) -> tuple[Compiled, Model]:
    """Compile a query, and the project with it. Raises ProjectError: the query or the project has errors."""
    from engine.compile import compile_project
    from engine.project import ModelText, is_project, load_project, missing_project

    if not is_project(project.root):
        raise ProjectError.from_diagnostics([missing_project(project.root)])
    loaded = load_project(project.root)
    models = (*loaded.models, ModelText(INLINE, "--inline", (), sql))
    result = compile_project(replace(loaded, models=models), target=project.target, variables=project.vars)
    if project.warnings_fail(loaded):
        result = failing_on_warnings(result)
    # Its rows are shown: no table has to hold them.
    errors = tuple(e for e in result.manifest.errors if (e.node, e.code) != (INLINE, _STORAGE))
    if errors:
        raise ProjectError.from_diagnostics(errors)
    return result, result.manifest.model(INLINE)


_REFERENCE = re.compile(r"`@(ref|source) ([^`]*)`")


def render_query(project: Project, compiled: Compiled, sql: str, relation: Callable[[str, str], str]) -> str:
    """Render the templates of a query, in the same process with limits and the same sandbox as those of a model.

    `relation` gives what is written for a `ref` or `source` (the first argument) of a name; it may raise an
    EngineError, which gets the place in the query.

    Raises:
        ProjectError: a template fails.
        SetupError: `process-ended`.
    """
    from engine.compile.templates.confined_process import run_confined

    rendered: Rendered = run_confined(_rendered, compiled, project.vars, sql)

    def written(match: re.Match[str]) -> str:
        try:
            return relation(match[1], match[2])
        except EngineError as error:
            place = rendered.location(match.start())
            raise type(error).from_diagnostics(diagnostic.at(place) for diagnostic in error.diagnostics) from error

    return _REFERENCE.sub(written, rendered.text)


def _rendered(compiled: Compiled, variables: dict[str, Any], sql: str) -> Rendered:
    from engine.compile.declarations.compile_context import share
    from engine.compile.pipeline.compile_project import names_of
    from engine.compile.templates.rendered_values import ValueRenderer

    target = compiled.target
    names = names_of(compiled.project, variables, os.environ)
    names.target = {"name": target.name, "schema": target.schema, "catalog": target.catalog.name}
    shared = share(compiled.project, target, names, ValueRenderer(names.for_values()), [])
    names.begin()
    return shared.sandbox.render(sql, QUERY)
