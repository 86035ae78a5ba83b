"""The plan of a project against an earlier manifest alone: what an edit would do, without a catalog, state or sources.

What only they know is left out: what is unread, whether tables are there, what was changed by others. A model that an
earlier manifest has counts as built by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.compile import Manifest, Materialized, Model
from engine.compile.artifacts.dbt_manifest import OWN
from engine.compile.nodes.fingerprint import published_facts
from engine.plan.actions.action import Action, ActionKind, Plan, written_rows
from engine.plan.compare_models import compare_model
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.deployed_facts import LastWriter


def plan_against(manifest: Manifest, selected: Iterable[str], before: Mapping[str, LastWriter]) -> Plan:
    """Decide what a build would do if the models of an earlier manifest (`before`: last writers) were deployed."""
    actions: dict[str, Action] = {}
    for node in selected:
        model = manifest.nodes[node]
        if isinstance(model, Model) and model.is_inlined:
            continue
        if isinstance(model, Model):
            actions[node] = _action(manifest, model, before.get(node), actions)
        else:
            actions[node] = Action(node, ActionKind.TEST)
    return Plan(actions)


def removed(manifest: Manifest, before: Mapping[str, LastWriter]) -> tuple[str, ...]:
    return tuple(sorted(node.partition(".")[2] for node in before.keys() - manifest.nodes.keys()))


def _action(manifest: Manifest, model: Model, writer: LastWriter | None, built: Mapping[str, Action]) -> Action:
    comparison = _comparison(manifest, model, writer)
    if comparison.change is Change.NEW:
        writes = written_rows(model, ActionKind.CREATE, None)
        return Action(model.id, ActionKind.CREATE, unchanged=False, comparison=comparison, writes=writes)
    kind = ActionKind.RESUME if model.streaming else ActionKind.REBUILD
    refusals = (comparison.refusal,) if comparison.refusal is not None else ()
    same = comparison.change is Change.UNCHANGED
    # A stream reads what is new, whatever was edited upstream; a batch table is computed again from all.
    waits = not model.streaming and any(not built[node].unchanged for node in model.depends_on if node in built)
    unchanged = (None if waits else True) if same else False
    writes = "" if refusals or unchanged else written_rows(model, kind, None, edited=not same)
    return Action(
        model.id, kind, comparison.reasons, refusals, unchanged=unchanged, comparison=comparison, writes=writes
    )


def _comparison(manifest: Manifest, model: Model, writer: LastWriter | None) -> Comparison:
    # What was masked in the manifest is masked on both sides.
    model = replace(model, facts=published_facts(model.facts))
    try:
        return compare_model(manifest, model, writer)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        # The file is anybody's: its facts are not what an engine wrote.
        return compare_model(manifest, model, replace(writer, facts=None) if writer is not None else None)


def writers_in(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, LastWriter]:
    """Return what wrote the tables of the models of an earlier manifest.json, by id."""
    writers = {}
    for node, record in nodes.items():
        own = _part(_part(record, "meta"), OWN)
        stores_rows = _part(record, "config").get("materialized") != Materialized.EPHEMERAL
        if record.get("resource_type") == "model" and stores_rows and own.get("fingerprint"):
            writers[node] = LastWriter.from_record(str(own["fingerprint"]), _part(own, "facts"))
    return writers


def _part(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = record.get(key)
    return part if isinstance(part, dict) else {}
