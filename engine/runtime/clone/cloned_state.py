"""The state of another target's table as that of a clone of it: the same checkpoint, with the names of here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.compile import Model
from engine.compile.nodes.fingerprint import fingerprint
from engine.runtime.context.copy_generation import copy_generation
from engine.state import ModelState, Phase, TableState


@dataclass(frozen=True, slots=True)
class Clone:
    """A model whose table another target has."""

    own: Model
    other: Model
    folder: TableState
    source: TableState


def copy_state(
    one: Clone, state: ModelState, names: Mapping[str, str], uuids: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Give a table that was cloned the state of the other one; the locks of both are held.

    Raises:
        StateError: `state-unreadable`, `state-unwritable`.
    """
    number = state.generation
    facts = one.source.facts(state)
    known = _facts(one.own, facts if isinstance(facts, Mapping) else {})
    starts = {node: _start(start, uuids.get(node)) for node, start in state.starts.items()}
    made = replace(
        state,
        table=str(one.own.relation),
        uuid=uuids[one.own.id],
        phase=Phase.PUBLISHED,
        fingerprint=fingerprint(known),
        starts=starts,
        environment=environment,
    )
    one.folder.discard(number)
    copy_generation(
        one.source, number, one.folder, number, {node: (names[node], known) for node, known in uuids.items()}
    )
    one.folder.save_facts(number, made.fingerprint, known)
    one.folder.save(made)


def _start(start: Mapping[str, Any], clone: str | None) -> Mapping[str, Any]:
    return start if clone is None else {**start, "uuid": clone}


def _facts(own: Model, known: Mapping[str, Any]) -> dict[str, Any]:
    deferred = {item["name"]: item["deferred"] for item in own.facts["inputs"] if "deferred" in item}
    inputs = [
        {**{key: value for key, value in item.items() if key != "deferred"}, **_deferred(deferred.get(item["name"]))}
        for item in known["inputs"]
    ]
    return {**known, "relation": str(own.relation), "inputs": inputs}


def _deferred(table: str | None) -> dict[str, str]:
    return {} if table is None else {"deferred": table}
