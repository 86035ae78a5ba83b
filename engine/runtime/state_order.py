"""Spark stores the aggregates of a group by position: an edited SELECT list runs in the order of the state."""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model
from engine.compile.ordering import reordered
from engine.compile.stateful import Meaning, UnprovableError, blocks, meaning
from engine.state import ModelState, TableState


def in_order_of_state(model: Model, folder: TableState, state: ModelState | None) -> Model:
    """Return a model whose aggregates are named first in the order in which its state holds them.

    The facts of such a model say with which query the state began, for as long as the generation lives.
    """
    facts = folder.facts(state) if state is not None and state.fingerprint else None
    if facts is None or "state" not in facts or "state" not in model.facts:
        return model
    if facts["state"] == model.facts["state"] and "began" not in facts:
        return model
    began = facts.get("began") or facts["state"]
    try:
        first, now = meaning(began), meaning({**model.facts["state"], "sql": model.sql})
    except UnprovableError:
        return model
    if [len(part) for part in _aggregates(first)] != [len(part) for part in _aggregates(now)]:
        return model
    if _aggregates(first) == _aggregates(now) or (sql := reordered(model.sql, first, now)) is None:
        return model
    return replace(model, sql=sql, facts={**model.facts, "began": began})


def _aggregates(said: Meaning) -> list[list[str]]:
    return [[call.key for call in block.aggregates] for block in blocks(said.block)]
