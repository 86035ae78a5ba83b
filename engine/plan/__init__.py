"""Stage 3: a pure comparison of the manifest and what is deployed."""

from engine.plan.compare_models import Action, Change, DeployedModel, Plan, make_plan

__all__ = ["Action", "Change", "DeployedModel", "Plan", "make_plan"]
