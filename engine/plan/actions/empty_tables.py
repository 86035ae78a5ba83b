"""`--empty`: which tables are made without reading a row, and which are left as they are."""

from __future__ import annotations

from engine.compile import Model
from engine.errors import Diagnostic, Location
from engine.plan.actions.action import Action, ActionKind
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.deployed.generations import has_commits


def has_rows(known: DeployedModel, kind: ActionKind) -> bool:
    """Return whether something was committed to a model's table, or its query has begun; a view counts, too.

    Args:
        known: what there is of the model.
        kind: what a build would do to it.
    """
    written = has_commits(known.table) or has_commits(known.written)
    return written or known.view is not None or kind is ActionKind.RESUME


def left_alone(model: Model, known: DeployedModel, kind: ActionKind, comparison: Comparison) -> Action:
    """Return the action for a table with rows: none, or a refusal if the model is not what wrote them.

    Args:
        model: of the table.
        known: what there is of it.
        kind: what a build would do to it.
        comparison: of the model with what wrote the table.
    """
    refusals = list(known.faults)
    if comparison.change is not Change.UNCHANGED:
        message = f"{model.relation} exists, and '{model.name}' has changed since it was written"
        hint = (
            "--empty makes tables that do not exist, and changes no other: use a schema of its own (--target), or "
            f"exclude the model: --exclude {model.name}+"
        )
        refusals.append(Diagnostic("empty-existing", message, hint, node=model.name, location=Location(model.file)))
    reasons = ("its table exists, and is left as it is",)
    unchanged = None if refusals else True
    return Action(model.id, kind, reasons, tuple(refusals), unchanged=unchanged, comparison=comparison)
