"""Edits of a history of full extracts: its versions cannot be computed again, so most edits apply to new ones only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.compile import Materialized, Model
from engine.plan.comparison import Change

# What a version is, and by what two versions belong together.
_IDENTITY = ("history", "unique_key", "sequence_by")


def keeps_history(facts: Mapping[str, Any]) -> bool:
    return facts["materialized"] == Materialized.TABLE.value and bool((facts.get("write") or {}).get("history"))


def protected(model: Model) -> bool:
    """Return whether a full refresh is rejected: as the header says, and of a history unless it allows that."""
    allowed = model.operation.full_refresh
    return allowed is False or (bool(model.write.history) and not model.streaming and allowed is not True)


def changes(old: Mapping[str, Any], new: Mapping[str, Any], reasons: Sequence[str]) -> tuple[Change, tuple[str, ...]]:
    """Return what an edit of a history means: other keys, another order or other partitions are another table."""
    writes = [facts.get("write") or {} for facts in (old, new)]
    identity = any(writes[0].get(key) != writes[1].get(key) for key in _IDENTITY)
    if identity or old.get("partition_by") != new.get("partition_by"):
        # Compares SQL: a command with nothing to do loads no parser.
        from engine.plan import changed_values

        return Change.IDENTITY_CHANGED, tuple(changed_values.identity_changes(old, new))
    if not reasons:
        return Change.UNCHANGED, ()
    return Change.FORWARD, tuple(f"{reason}; it applies to new versions" for reason in reasons)
