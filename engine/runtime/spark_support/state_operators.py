"""Spark's names of the steps of a query that keep state, in plain words, and what its progress says they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.events import HeldInState

JOIN: Final = "symmetricHashJoin"
_KEYS = ("keys of dedup", "keys that were read; a row that repeats one is dropped")
# What each holds, and what that is for.
_WORDS: Final = {
    "stateStoreSave": ("open groups", "groups of GROUP BY, one a window and key, that later rows can still change"),
    "sessionWindowStateStoreSaveExec": ("open sessions", "session windows that later rows can still extend"),
    "dedupe": _KEYS,
    "dedupeWithinWatermark": _KEYS,
    "globalLimit": ("rows counted by LIMIT", "how many rows LIMIT has let through"),
    JOIN: ("rows that may still find a match", "rows of both sides of a join that later rows of the other can match"),
}


def meaning_of(operator: str) -> str:
    return _WORDS.get(operator, (operator, ""))[0]


def held_in_state(record: Mapping[str, Any]) -> tuple[HeldInState, ...]:
    found = []
    for item in record.get("stateOperators") or ():
        operator = str(item.get("operatorName", ""))
        meaning, explanation = _WORDS.get(operator, (operator, ""))
        count, memory = (max(0, int(item.get(key) or 0)) for key in ("numRowsTotal", "memoryUsedBytes"))
        found.append(HeldInState(operator, meaning, explanation, count, memory))
    return tuple(found)
