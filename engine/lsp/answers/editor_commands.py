"""Commands of the server, each of which gives a text to show beside the model."""

from __future__ import annotations

from engine.errors import EngineError
from engine.lsp.opened.open_project import OpenProject

EXPLAIN = "headrace.explain"
COMPILED_SQL = "headrace.compiledSql"
PLAN = "headrace.plan"


def explanation_text(code: str) -> str:
    from engine.diagnostics.explanations import explanations

    one = explanations().get(code)
    return "" if one is None else f"# {one.code}\n\n{one.summary}\n\n{one.cause}\n\n{one.fix}\n"


def compiled_sql(opened: OpenProject, file: str) -> str:
    """Return the SQL of a model as the editor has it, for Spark; empty if it cannot be compiled."""
    edited = opened.analysed(file)
    return edited.model.sql if edited else ""


def plan_text(opened: OpenProject, file: str) -> str:
    """Return what a build would do to a model as the editor has it, and why.

    An editor asks no server: with a catalog of one, the answer names the command that does.
    """
    from engine.api.plan_report.plan_output import plan_lines
    from engine.lake.catalog.catalog_settings import is_local

    model = opened.model_of(file)
    if model is None:
        return "This file is not a model of the project."
    try:
        compiled = opened.compiled_with({})
        if not is_local(compiled.target.catalog):
            return f"The catalog is on a server, which an editor does not ask. Run: engine plan -s {model.name}"
        if compiled.manifest.errors:
            return "\n".join(map(str, compiled.manifest.errors))
        plan = opened.project.decide(compiled, [model.id])
    except EngineError as error:
        return "\n".join(map(str, error.diagnostics))
    refusals = [str(refusal) for refusal in plan.refusals]
    return "\n".join([*plan_lines(compiled.manifest, plan), *refusals])
