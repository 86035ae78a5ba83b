"""Stage 3: what a build does to each node, from the manifest, what is deployed and what the user says.

`plan_selection` reads what is deployed, without Java; `make_plan` and all below it are pure.
"""

from engine.plan.actions.action import Action, ActionKind, Plan, PlanOptions, Reset, Unread
from engine.plan.actions.plan_nodes import make_plan
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel, DeployedSource, LastWriter
from engine.plan.plan_project import plan_selection

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
    "plan_selection",
]
