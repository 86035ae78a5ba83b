"""An edit of a project that is kept running: what of it is used, and what is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.api.requests import Selection, runnable, sinks_among
from engine.errors import Diagnostic, EngineError

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled, Manifest


@dataclass(frozen=True, slots=True)
class ProjectEdit:
    """What an edit comes to.

    `rejected`: why some nodes, or all, continue as they were. `compiled`: the project to use from now on; None: the one
    in use. `nodes` (models and tests) and `sinks` are kept running then; of these, `changed` have another definition,
    and `unused` continue with the old one.
    """

    rejected: tuple[Diagnostic, ...]
    compiled: Compiled | None = None
    nodes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()


def read_edit(project: Project, selection: Selection, current: Compiled | None) -> ProjectEdit:
    """Compile and plan the project as it is on disk.

    A model whose edit its plan rejects continues as it was, with what reads it. If that is not possible, or the project
    has errors, nothing of the edit is used.
    """
    try:
        compiled = project.compile()
        if compiled.manifest.errors:
            return ProjectEdit(compiled.manifest.errors)
        choice = project.select(compiled.manifest, selection)
        nodes = runnable(compiled.manifest, choice.nodes, "build")
        sinks = tuple(sinks_among(choice.nodes, "build"))
        compiled = project.defer(compiled, nodes, selection)
        changed = _changed(current, compiled, nodes)
        plan = project.decide(compiled, changed) if changed else None
        if plan is None or not plan.refusals:
            return ProjectEdit((), compiled, tuple(nodes), (*changed, *_changed(current, compiled, sinks)), sinks=sinks)
        refusals = plan.refusals
        mixed = _with_current_nodes(
            current, compiled, {node for node, action in plan.actions.items() if action.refusals}
        )
        if mixed is None:
            return ProjectEdit(refusals)
        changed = _changed(current, mixed, nodes)
        if changed and (further_refusals := project.decide(mixed, changed).refusals):
            return ProjectEdit((*refusals, *further_refusals))
        unused = tuple(node for node in (*nodes, *sinks) if mixed.manifest.nodes[node] != compiled.manifest.nodes[node])
        changed = (*changed, *_changed(current, mixed, sinks))
        return ProjectEdit(refusals, mixed, tuple(nodes), changed, unused, sinks)
    except EngineError as error:
        return ProjectEdit(error.diagnostics)


def _changed(current: Compiled | None, compiled: Compiled, nodes: Sequence[str]) -> tuple[str, ...]:
    current_nodes = current.manifest.nodes if current is not None else {}
    return tuple(node for node in nodes if current_nodes.get(node) != compiled.manifest.nodes[node])


def _with_current_nodes(current: Compiled | None, compiled: Compiled, refusals: set[str]) -> Compiled | None:
    """The project with some nodes, and all that read them, as they are in use; None: it would not hold together."""
    if current is None:
        return None
    old, new = current.manifest, compiled.manifest
    unchanged = set(refusals)
    for node in (*new.order, *(sink.id for sink in new.sinks)):
        if unchanged & set(new.parents(node)):
            unchanged.add(node)
    if any(node not in old.nodes for node in refusals):
        return None
    unchanged &= old.nodes.keys()
    nodes = {id_: old.nodes[id_] if id_ in unchanged else node for id_, node in new.nodes.items()}
    records = {
        id_: old.records[id_] if id_ in unchanged and id_ in old.records else one for id_, one in new.records.items()
    }
    mixed = replace(new, nodes=nodes, records=records)
    return replace(compiled, manifest=mixed) if _in_order(mixed) else None


def _in_order(manifest: Manifest) -> bool:
    ordered = {id_ for id_ in manifest.nodes if id_ not in manifest.order}
    for node in manifest.order:
        if not set(manifest.parents(node)) <= ordered:
            return False
        ordered.add(node)
    return True
