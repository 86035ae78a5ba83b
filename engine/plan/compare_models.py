"""Stage 3: what a build has to do, from what the project says and what is deployed.

A pure comparison. The kinds of change and their outcome are those of design.md §4.2; the finer table of
restart compatibility comes with `engine plan`. Until then a change of a query that keeps state is refused
as a whole: Spark accepts most of them and computes wrongly (measured, about 100 cases).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from engine.compile import Manifest, Model
from engine.compile.sql.normalize import same_meaning
from engine.errors import Diagnostic, Location
from engine.plan import changed_materialization, changed_values, new_checkpoint, setting_changes, source_changes
from engine.plan.source_changes import Recorded, StreamSource
from engine.plan.unused_columns import comparable, renamed


class Change(StrEnum):
    """How a model differs from what is deployed."""

    NEW = "new"
    UNCHANGED = "unchanged"
    FORWARD = "forward"
    ADDITIVE = "additive"
    REBUILT = "rebuilt"
    REFRESH = "refresh"
    STATE_BREAKING = "state-breaking"
    SOURCE_CHANGED = "source-changed"
    IDENTITY_CHANGED = "identity-changed"
    KEY_CHANGED = "key-changed"


@dataclass(frozen=True, slots=True)
class DeployedModel:
    """What wrote a model's table last: the fingerprint, the facts behind it (None: lost), and the recorded start.

    `recorded` is None for batch models, and for a generation that was begun by a version that recorded nothing;
    `frozen` are the settings of Spark that the checkpoint keeps.
    """

    fingerprint: str
    facts: Mapping[str, Any] | None
    recorded: Recorded | None = None
    frozen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Action:
    """What to do with a model.

    Attributes:
        model: its id.
        change: how it differs from what is deployed.
        reasons: what changed, in words.
        refusal: the finding to show if it is rejected.
        kind_changed: it was materialized as something else.
        notes: settings of the project that have no effect as long as the model's checkpoint lives.
        lost: what a full refresh discards then, in words.
    """

    model: str
    change: Change
    reasons: tuple[str, ...] = ()
    refusal: Diagnostic | None = None
    kind_changed: bool = False
    notes: tuple[str, ...] = ()
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of a build by model id."""

    actions: Mapping[str, Action]


_RULES = "what it expects of its rows changed; that counts for new rows"
# How a query is compared step by step, and the one with which its state began.
_STATE = ("state", "began", "stateful", "keyed")
_BREAKING = {Change.STATE_BREAKING, Change.SOURCE_CHANGED, Change.IDENTITY_CHANGED, Change.KEY_CHANGED}


def make_plan(
    manifest: Manifest,
    selected: Iterable[str],
    deployed: Mapping[str, DeployedModel],
    *,
    full_refresh: bool = False,
    streams: Mapping[str, Sequence[StreamSource]] | None = None,
) -> Plan:
    """Compare the selected models with what is deployed.

    Args:
        manifest: the compiled project.
        selected: ids of the models to build.
        deployed: by model id; a model that is missing was never built.
        full_refresh: build streaming tables anew from their first row, and batch models in any case.
        streams: by model id, what each reads as a stream, in the order of its compiled SQL, with places resolved.
    """
    actions = {}
    for model_id in selected:
        node = manifest.nodes[model_id]
        if isinstance(node, Model):
            known = deployed.get(model_id)
            action = _action(manifest, node, known, (streams or {}).get(model_id))
            notes = setting_changes.state_store_notes(node, known.frozen) if known is not None else ()
            actions[model_id] = _refreshed(node, action) if full_refresh else replace(action, notes=notes)
    return Plan(actions)


def _action(
    manifest: Manifest, model: Model, deployed: DeployedModel | None, streams: Sequence[StreamSource] | None
) -> Action:
    if deployed is None:
        return Action(model.id, Change.NEW)
    read = _Read.of(model, deployed, streams)
    if (difference := read.difference) is not None and deployed.recorded is not None:
        finding = source_changes.rejection(
            str(model.relation), model.name, difference, new_checkpoint.ways(manifest, model)
        )
        return Action(model.id, Change.SOURCE_CHANGED, (difference,), finding.at(Location(model.file), model.name))
    if deployed.fingerprint == model.fingerprint:
        return Action(model.id, Change.UNCHANGED)
    if deployed.facts is None:
        return _refused(model, Change.IDENTITY_CHANGED, ("what the table's query was is not known any more",))
    return _changed(manifest, model, deployed, deployed.facts, read)


def _changed(
    manifest: Manifest, model: Model, deployed: DeployedModel, facts: Mapping[str, Any], read: _Read
) -> Action:
    read_now = (manifest.nodes.get(item.node) for item in model.inputs)
    tables = {node.name: node.relation.name for node in read_now if isinstance(node, Model)}
    static = source_changes.static_renames(facts, model.facts, tables, manifest.nodes)
    old, now = (
        renamed(facts, {**static, **source_changes.renames(read.before, read.now)}),
        model.facts.get("settings", {}),
    )
    before = setting_changes.before(old, deployed.recorded.settings if deployed.recorded else None, now)
    changed, frozen = setting_changes.differences(before, now)
    old, new = comparable(_without_settings(old), model.facts), _without_settings(comparable(model.facts, old))
    if _same(old, new) and _same_inputs(old, new) and not changed:
        return Action(model.id, Change.FORWARD if frozen else Change.UNCHANGED, tuple(frozen))
    change, reasons = _compare(model, old, new, read.difference, changed)
    if change is Change.UNCHANGED and frozen:
        change = Change.FORWARD
    if change not in _BREAKING:
        return Action(model.id, change, (*reasons, *frozen))
    if old["materialized"] != model.materialized.value:
        return _refused(model, change, reasons, lost=changed_materialization.lost(model, old))
    ways = new_checkpoint.ways(manifest, model) if change in {Change.STATE_BREAKING, Change.SOURCE_CHANGED} else ""
    return _refused(model, change, reasons, changed_values.query_changes(old, new), ways=ways)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a model's checkpoint reads, and what its query would read now."""

    before: Sequence[StreamSource]
    now: Sequence[StreamSource]
    difference: str | None

    @classmethod
    def of(cls, model: Model, deployed: DeployedModel, streams: Sequence[StreamSource] | None) -> _Read:
        recorded = deployed.recorded
        if recorded is not None and streams is not None:
            reason = source_changes.difference(recorded.streams, streams, ordered=recorded.textual)
            return cls(recorded.streams, streams, reason)
        before = source_changes.of_facts(deployed.facts) if deployed.facts else ()
        now = source_changes.of_facts(model.facts) if deployed.facts else ()
        return cls(before, now, source_changes.difference(before, now, ordered=False))


def _without_settings(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != "settings"}


def _refreshed(model: Model, action: Action) -> Action:
    """A full refresh allows every change."""
    return Action(model.id, Change.REFRESH, action.reasons, kind_changed=action.kind_changed, lost=action.lost)


def _compare(
    model: Model, old: Mapping[str, Any], new: Mapping[str, Any], difference: str | None, settings_changed: list[str]
) -> tuple[Change, tuple[str, ...]]:
    if not model.streaming and old["materialized"] == new["materialized"]:
        return Change.REBUILT, (*settings_changed, "the query changed")[:1]
    identity = _identity_reasons(old, new)
    if identity or difference is not None:
        return (Change.IDENTITY_CHANGED, identity) if identity else (Change.SOURCE_CHANGED, (str(difference),))
    from engine.plan import key_changes  # only where something changed: it reads SQL

    found = _continued(old, new, settings_changed)
    changed = key_changes.key_changes(old, new) if found[0] not in _BREAKING else ()
    return (Change.KEY_CHANGED, changed) if changed else found


def _continued(
    old: Mapping[str, Any], new: Mapping[str, Any], settings_changed: list[str]
) -> tuple[Change, tuple[str, ...]]:
    """What an edit means that leaves the table what it is."""
    from engine.plan import key_changes

    kept = new["stateful"] or _kept_state(old)
    if settings_changed:
        return Change.STATE_BREAKING if kept else Change.FORWARD, tuple(settings_changed)
    if not kept and _without_rules(old) == _without_rules(new):
        return Change.FORWARD, (_RULES,)
    if not kept:
        zones = [f"the {text}; that applies to rows read from now on" for text in key_changes.zone_changes(old, new)]
        same = _same({**old, "inputs": []}, {**new, "inputs": []})
        query = () if zones and same else ("the query changed; it keeps no state, so the new text counts for new rows",)
        return Change.FORWARD, (*query, *zones)
    return _stateful(old, new)


def _kept_state(old: Mapping[str, Any]) -> bool:
    """Whether a query kept state; facts without its steps may say so of one that grouped static inputs only."""
    if "state" in old or not old["stateful"] or old.get("inlined"):
        return bool(old["stateful"])
    from engine.compile.streaming.check_model import reads_state

    return reads_state(str(old["sql"]), [item for item in old["inputs"] if item["stream"]])


def _stateful(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, tuple[str, ...]]:
    """What an edit means for a query that keeps state: by its steps, or by its text where that is all there is."""
    from engine.plan import state_changes  # only where something changed: it reads SQL

    found = state_changes.differences(old, new)
    if found is None:
        if _same(old, new):
            return Change.UNCHANGED, ()
        if _without_rules(old) == _without_rules(new):
            return Change.FORWARD, (_RULES,)
        return Change.STATE_BREAKING, tuple(_stateful_reasons(old, new))
    breaking = tuple(item.text for item in found if item.kind == "breaking")
    if breaking:
        return Change.STATE_BREAKING, breaking
    rules = () if _rules(old) == _rules(new) else (_RULES,)
    reasons = (*rules, *(item.text for item in found))
    if any(item.kind == "additive" for item in found):
        return Change.ADDITIVE, reasons
    return (Change.FORWARD, reasons) if reasons else (Change.UNCHANGED, ())


def _without_rules(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without what takes rows out before or after the query's state, and leaves that as it is."""
    inputs = []
    for item in facts["inputs"]:
        rules = {"max_future", "on_null"}
        watermark = {key: value for key, value in (item.get("watermark") or {}).items() if key not in rules}
        inputs.append({**item, "watermark": watermark})
    return {**{key: value for key, value in facts.items() if key not in {"expectations", *_STATE}}, "inputs": inputs}


def _rules(facts: Mapping[str, Any]) -> list[Any]:
    """What takes rows out before or after the query's state."""
    times = [item.get("watermark") or {} for item in facts["inputs"]]
    return [facts.get("expectations") or [], [(mark.get("max_future"), mark.get("on_null")) for mark in times]]


def _identity_reasons(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Why it would be another table."""
    if text := changed_materialization.changed(old, new):
        return (text,)
    return tuple(changed_values.identity_changes(old, new))


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only the spelling of the query differs."""
    rest = [{key: value for key, value in facts.items() if key not in {"sql", *_STATE}} for facts in (old, new)]
    return rest[0] == rest[1] and same_meaning(str(old.get("sql")), str(new.get("sql")))


def _same_inputs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the inputs of a query that keeps state have the columns that they had; `*` may stand for them."""
    known = [facts["state"]["inputs"] for facts in (old, new) if "state" in facts]
    return known[1:] == known[:1] or len(known) < 2  # noqa: PLR2004 - both


def _stateful_reasons(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    reasons = []
    for name in sorted({*old["windows"], *new["windows"]}):
        before, after = old["windows"].get(name), new["windows"].get(name)
        if before != after:
            reasons.append(f"the window '{name}' changed from {before or 'nothing'} to {after or 'nothing'}")
    reasons += changed_values.input_changes(old, new)
    if old["sql"] != new["sql"]:
        reasons.append("the query changed")
    if old["stateful"] != new["stateful"]:
        reasons.append("it keeps state now" if new["stateful"] else "it keeps no state any more")
    return reasons or ["the query changed"]


def _refused(
    model: Model, change: Change, reasons: tuple[str, ...], lines: Sequence[str] = (), *, lost: str = "", ways: str = ""
) -> Action:
    message = f"{model.relation} was written by another query: {'; '.join(reasons)}"
    hint = f"Continuing would mix rows of both. Undo the edit, or rebuild the table: engine build -f -s {model.name}"
    hint = "\n".join([*lines, f"{hint}; or {ways}" if ways else hint])
    if lost:
        hint = f"Undo the edit, or replace it: engine build -f -s {model.name}. {lost}"
    finding = Diagnostic("model-changed", message, hint, node=model.name, location=Location(model.file))
    return Action(model.id, change, reasons, finding, kind_changed=bool(lost), lost=lost)
