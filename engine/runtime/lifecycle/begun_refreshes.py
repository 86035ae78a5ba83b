"""A full refresh of several tables as one: noted beside the state of each before the first of them is touched.

Streams of a rebuilt table cannot continue with it. Whatever ends a run between two tables, the next build finds the
notes and rebuilds the rest (see `engine.plan.deployed.killed_refresh`). They are written against the order of
references: where a kill leaves some of them, no stream is without one whose input has one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from msgspec import structs

from engine.compile import Manifest, Model, Target
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed, Emit
from engine.plan import Plan, PlanOptions
from engine.plan.actions.action import ActionKind
from engine.plan.deployed.deployed_facts import Deployed
from engine.plan.deployed.state_folder import table_state
from engine.state import Phase
from engine.state.operations import Refresh
from engine.times import time_text


def note_refreshes(
    target: Target, models: Sequence[Model], plan: Plan, deployed: Deployed, said: PlanOptions
) -> frozenset[str]:
    """Note which tables a run rebuilds, and forget what the user discards.

    The locks of the models are held. Return the ids of those whose refresh begins with this run.
    """
    new: set[str] = set()
    at = time_text(int(time.time()) * 1000)
    for model in reversed(models):
        known, kind = deployed.models[model.id], plan.actions[model.id].kind
        if kind is not ActionKind.REFRESH:
            if known.refresh is not None and (said.discard_refresh or kind is ActionKind.RESET):
                table_state(target, model).journal.end(Refresh)
        elif known.state is not None or known.table is not None or known.view is not None:
            published = known.state is not None and known.state.phase is Phase.PUBLISHED
            before = known.state.generation if known.state is not None and published else 0
            begun = known.refresh or Refresh(at, before=before)
            accept = tuple(dict.fromkeys((*begun.accept, *said.accept)))
            table_state(target, model).journal.begin(structs.replace(begun, accept=accept))
            if known.refresh is None:
                new.add(model.id)
    return frozenset(new)


def forget_untouched(
    target: Target, manifest: Manifest, plan: Plan, noted: Collection[str], skipped: Collection[str]
) -> None:
    parents = {node: manifest.parents(node) for node in manifest.order}
    stopped = {*noted} & {*skipped}
    for node in stopped:
        above = {node, *ancestors(parents, node)}
        rebuilt = {i for i in above if i in plan.actions and plan.actions[i].kind is ActionKind.REFRESH}
        model = manifest.nodes[node]
        if rebuilt <= stopped and isinstance(model, Model):
            table_state(target, model).journal.end(Refresh)


def tell_resumed(emit: Emit, models: Iterable[Model], plan: Plan, deployed: Deployed, said: PlanOptions) -> None:
    begun = {
        model.name: refresh.at
        for model in models
        if plan.actions[model.id].kind is ActionKind.REFRESH and (refresh := deployed.models[model.id].refresh)
    }
    if begun and not said.full_refresh:
        names = ", ".join(f"'{name}'" for name in begun)
        message = f"the full refresh of {min(begun.values())} (UTC) was not finished; it continues with {names}"
        hint = "To discard it and continue with the tables as they are: engine build --discard-refresh"
        emit(Diagnosed(Diagnostic("refresh-unfinished", message, hint, Level.NOTE)))
