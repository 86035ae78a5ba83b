"""The marks by which a table says whose it is: see `engine.runtime.context.ownership`."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile import Model

STAGING, SEED = "engine.staging", "engine.seed"
ROLES = (STAGING, SEED, "engine.quarantine", "engine.deleted")


def made_by(model: Model, properties: Mapping[str, str]) -> bool:
    """Return whether a table was made for a model's own rows, and not to be beside them."""
    return properties.get("engine.model") == model.name and not any(role in properties for role in ROLES)
