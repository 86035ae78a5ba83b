"""A rebuild beside the tables, as a project is asked for it: which models and tests it has, and what forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.api.one_session import one_at_a_time
from engine.errors import EngineError, UsageError
from engine.events import Emit

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled
    from engine.runtime.rebuild.tables_beside import Rebuild


def rebuild_of(project: Project, compiled: Compiled, nodes: Sequence[str], threads: int, on_event: Emit) -> Rebuild:
    """Return a rebuild of the streaming tables among some nodes, with their data tests.

    Raises UsageError: there is no streaming table among them.
    """
    from engine.api.requests import failing_on_warnings
    from engine.compile import DataTest, Model, UnitTest, compile_project
    from engine.plan.actions.action import run_order
    from engine.runtime.rebuild.tables_beside import Rebuild, next_relations, project_with_next_tables

    manifest = compiled.manifest
    order = run_order(manifest, nodes)
    models = [node for i in order if isinstance(node := manifest.nodes[i], Model) and node.streaming]
    if not models:
        message = "the selection has no streaming table to rebuild"
        raise UsageError("usage", message, "Batch tables and views are computed by an ordinary build.")
    ids = {model.id for model in models}
    tests = [node for i in order if isinstance(node := manifest.nodes[i], DataTest) and ids & set(node.depends_on)]
    units = [node for i in order if isinstance(node := manifest.nodes[i], UnitTest) and node.model in ids]
    recompiled = compile_project(
        compiled.project, target=project.target, variables=project.vars, deferred=next_relations(models)
    )
    recompiled = failing_on_warnings(recompiled) if project.warnings_fail(compiled.project) else recompiled
    if recompiled.manifest.errors:
        raise EngineError.from_diagnostics(recompiled.manifest.errors)
    return Rebuild(
        manifest,
        project_with_next_tables(recompiled.manifest, models),
        compiled.target,
        project.root,
        project.target_dir,
        tuple(model.id for model in models),
        tuple(unit.id for unit in units),
        tuple(test.id for test in tests),
        threads,
        one_at_a_time(on_event),
    )


def check_rebuild(project: Project, compiled: Compiled, rebuild: Rebuild, accept: Sequence[str]) -> None:
    """Check that the models can be rebuilt beside their tables.

    Raises EngineError: all that forbids it, as for a full refresh, and `rebuild-unavailable`.
    """
    from engine.runtime.rebuild.rebuild_checks import rebuild_faults

    place = compiled.target.place(project.root)
    models = [rebuild.model(node) for node in rebuild.models]
    plan = project.decide(compiled, rebuild.models, full_refresh=True, accept=accept)
    faults = [*plan.refusals, *rebuild_faults(compiled.manifest, compiled.target, place, models)]
    if faults:
        raise EngineError.from_diagnostics(faults)
