"""Stage 3: what a build does to each node, from the manifest, what is deployed and what the user says.

`deployed` is what reads, without Java; everything else is pure.
"""

from engine.plan.actions.action import Action, ActionKind, Plan, PlanOptions, Reset, Unread
from engine.plan.actions.plan_nodes import make_plan
from engine.plan.compare_models import Change, Comparison
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel, DeployedSource, LastWriter

__all__ = [
    "Action",
    "ActionKind",
    "Change",
    "Comparison",
    "Deployed",
    "DeployedModel",
    "DeployedSource",
    "LastWriter",
    "Plan",
    "PlanOptions",
    "Reset",
    "Unread",
    "make_plan",
]
