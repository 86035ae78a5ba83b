"""A query from the command line, compiled as if it were a model of the project."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.api.warnings_as_errors import failing_on_warnings
from engine.errors import ProjectError

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled, Model

INLINE = "inline_query"
_STORAGE = "column-storage"


def compile_query(project: Project, sql: str) -> tuple[Compiled, Model]:
    """Compile a query, and the project with it.

    Raises:
        ProjectError: the query or the project has errors.
    """
    from engine.compile import compile_project
    from engine.project import ModelText, is_project, load_project, missing_project

    if not is_project(project.root):
        raise ProjectError.of([missing_project(project.root)])
    loaded = load_project(project.root)
    models = (*loaded.models, ModelText(INLINE, "--inline", (), sql))
    result = compile_project(replace(loaded, models=models), target=project.target, variables=project.vars)
    if project.warnings_fail(loaded):
        result = failing_on_warnings(result)
    # Its rows are shown: no table has to hold them.
    errors = tuple(e for e in result.manifest.errors if (e.node, e.code) != (INLINE, _STORAGE))
    if errors:
        raise ProjectError.of(errors)
    return result, result.manifest.model(INLINE)
