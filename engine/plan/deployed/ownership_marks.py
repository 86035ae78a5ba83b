"""The marks by which a table says whose it is: see `engine.runtime.context.ownership`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.compile import Model

STAGING, SEED = "engine.staging", "engine.seed"
# What a table beside a model's table is, and how its name ends.
_BESIDE = {
    STAGING: ("staging table", re.compile(r"__g\d+")),
    SEED: ("initial snapshot", re.compile(r"__seed\d+_\w+")),
    "engine.quarantine": ("quarantine", re.compile("__quarantine")),
    "engine.deleted": ("deleted keys", re.compile("__deleted")),
}
ROLES = tuple(_BESIDE)


def made_by(model: Model, properties: Mapping[str, str]) -> bool:
    return properties.get("engine.model") == model.name and not any(role in properties for role in ROLES)


def role_beside(ending: str, properties: Mapping[str, str]) -> str:
    """What a table beside a model's table is, by its marks and by the end of its name; empty: something else."""
    for mark, (role, name) in _BESIDE.items():
        if properties.get(mark) == "true" and name.fullmatch(ending):
            return role
    return ""
