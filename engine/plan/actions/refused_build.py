"""The error of a build that cannot be done as it is asked for: nothing is started, and all is said at once."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import Manifest, Model
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, EngineError, Level
from engine.plan.actions.action import Plan

_SHOWN = 20


def refused_build(manifest: Manifest, plan: Plan) -> EngineError | None:
    """Return all that forbids a build, with what would be built without it; None: nothing forbids it."""
    found = plan.refusals
    if not found:
        return None
    rejected = [node for node in plan.rejected() if isinstance(manifest.nodes[node], Model)]
    others = list(_others(manifest, plan, rejected))
    return EngineError.of((*found, _left_out(rejected, others)) if rejected and others else found)


def _others(manifest: Manifest, plan: Plan, rejected: list[str]) -> Iterable[str]:
    parents = {node: set(manifest.parents(node)) for node in manifest.order}
    for node, action in plan.actions.items():
        if action.unchanged or not isinstance(manifest.nodes[node], Model):
            continue
        if not {node, *ancestors(parents, node)}.intersection(rejected):
            yield node


def _left_out(rejected: list[str], others: list[str]) -> Diagnostic:
    names = [node.partition(".")[2] for node in others]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    without = " ".join(f"{node.partition('.')[2]}+" for node in rejected)
    number = f"{len(rejected)} model{' is' if len(rejected) == 1 else 's are'} rejected"
    message = f"nothing was started, because {number}; without that this would be built: {shown}"
    return Diagnostic("build-rejected", message, f"To build the others add: --exclude {without}", Level.NOTE)
