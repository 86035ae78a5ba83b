"""How the turn of a model ends for which the plan is certain that there is nothing to do."""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model, Target
from engine.events import Outcome, Status
from engine.plan import Plan
from engine.plan.deployed.state_folder import table_state


def nothing_new(plan: Plan, target: Target, model: Model) -> Outcome | None:
    """Return the outcome of a model without work; None: it has some, or only Spark and the systems behind it know.

    The plan is of the time at which the tables were locked: what comes later waits for the next build.
    """
    action = plan.actions.get(model.id)
    if action is None or not action.unchanged:
        return None
    folder = table_state(target, model)
    state = folder.load()
    if action.inputs is not None and state is not None:
        # Older snapshots may expire: none of the rows that the model reads changed since.
        folder.save(replace(state, inputs=action.inputs))
    snapshot = state.snapshot if state is not None else None
    return Outcome(Status.UNCHANGED, "no new data", snapshot_id=snapshot, note="; ".join(action.notes))
