"""A plan as text, and as records for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.api.deferral import deferred_inputs
from engine.api.plan_report.durations import seconds_text
from engine.characters import one_line
from engine.compile import Manifest, Model, Sink, UnitTest
from engine.compile.artifacts.dbt_manifest import unique_id
from engine.compile.nodes.fingerprint import published_facts

if TYPE_CHECKING:
    from engine.plan import Action, Plan, Unread
    from engine.plan.edits.affected_columns import AffectedModel

# Names of inputs that a sentence has at most.
_NAMED = 3
_NONE: Mapping[str, float] = {}


def plan_record(
    manifest: Manifest, action: Action, *, diff: bool = False, seconds_by_node: Mapping[str, float] = _NONE
) -> dict[str, Any]:
    node = manifest.nodes[action.node]
    record: dict[str, Any] = {
        "unique_id": unique_id(node.id, manifest.project),
        "name": node.name,
        "action": action.kind.value,
    }
    if isinstance(node, Model):
        change = action.comparison.change.value if action.comparison is not None else None
        record |= {"materialized": node.materialized.value, "relation": str(node.relation), "change": change}
    affected, exposures = plan_effects(manifest, action)
    return record | {
        "unchanged": action.unchanged,
        "reasons": list(action.reasons),
        "notes": list(action.notes),
        "affects": [
            {"name": one.name, "columns": one.columns if one.columns is None else list(one.columns)} for one in affected
        ],
        "exposures": list(exposures),
        "reads": [{"name": u.name, "what": u.unit or None, "new": u.count, "rows": u.rows} for u in action.unread],
        "writes": action.writes or None,
        "rows": action.rows,
        "about_seconds": seconds_by_node.get(node.id),
        "deferred": deferred_inputs(manifest, node.id),
        "refusals": [refusal.to_dict() for refusal in action.refusals],
        **({"diff": list(plan_diff(manifest, action))} if diff else {}),
    }


def plan_lines(
    manifest: Manifest,
    plan: Plan,
    *,
    diff: bool = False,
    seconds_by_node: Mapping[str, float] = _NONE,
    total: float | None = None,
) -> Iterator[str]:
    """Return the plan as text: a line a model, its reasons and what it reads below it; tests are counted."""
    counts: Counter[str] = Counter()
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if not isinstance(node, Model):
            kind = "unit test" if isinstance(node, UnitTest) else "data test"
            counts[f"cached {kind}" if action.unchanged else kind] += 1
            continue
        word = plan_word(action)
        counts[word] += 1
        time = f" (about {seconds_text(seconds_by_node[node.id])})" if node.id in seconds_by_node else ""
        yield one_line(f"{word:<10} {node.materialized.value} {node.relation}{time}")
        yield from (f"{'':<10} {one_line(detail)}" for detail in plan_details(manifest, action))
        if diff:
            yield from (f"{'':<10} {one_line(line)}" for line in plan_diff(manifest, action))
    if counts:
        yield ", ".join(
            f"{number} {word}{'s' if 'test' in word and number > 1 else ''}" for word, number in counts.items()
        ) + (f"; about {seconds_text(total)}" if total is not None else "")


def sink_lines(manifest: Manifest, waiting: Mapping[str, str]) -> Iterator[str]:
    """Return a line per sink with what waits for it; `waiting`: that, in words, by id of a sink."""
    for id_, text in waiting.items():
        if isinstance(sink := manifest.nodes[id_], Sink):
            yield one_line(f"sink {sink.name} ({sink.place}): {text}")


def sink_record(manifest: Manifest, id_: str, waiting: str) -> dict[str, Any]:
    sink = manifest.nodes[id_]
    place = sink.place if isinstance(sink, Sink) else ""
    return {"unique_id": unique_id(id_, manifest.project), "name": sink.name, "action": "deliver", "place": place,
            "waiting": waiting}  # fmt: skip


def plan_details(manifest: Manifest, action: Action) -> Iterator[str]:
    yield from plan_reasons(manifest, action)
    if action.refusals:
        return
    affected, exposures = plan_effects(manifest, action)
    if affected or exposures:
        from engine.plan.edits.affected_columns import affected_text

        yield from affected_text(affected, exposures)
    yield from (f"reads {text}" for text in plan_reads(action))


def plan_reasons(manifest: Manifest, action: Action) -> Iterator[str]:
    if action.refusals:
        # What would follow from the edit if it were not rejected would be read as what happens.
        edit = action.comparison
        rejected = edit.refusal.message if edit is not None and edit.refusal is not None else None
        if edit is not None and rejected in {refusal.message for refusal in action.refusals}:
            yield from edit.reasons
        yield from (f"{one.message} [{one.code}]" for one in action.refusals if one.message != rejected)
        return
    yield from action.reasons
    if action.unchanged is None and not action.reasons:
        yield from _if_changed(manifest, action)
    for name, table in deferred_inputs(manifest, action.node).items():
        yield f"{name} is deferred to {table}"


def plan_effects(manifest: Manifest, action: Action) -> tuple[tuple[AffectedModel, ...], tuple[str, ...]]:
    node, comparison = manifest.nodes[action.node], action.comparison
    if not isinstance(node, Model) or comparison is None or comparison.before is None:
        return (), ()
    from engine.plan.edits.affected_columns import affected_exposures, affected_models

    affected = affected_models(manifest, node, comparison.before)
    return affected, affected_exposures(manifest, node, comparison.before, affected)


def plan_reads(action: Action) -> Iterator[str]:
    yield from (_reads(unread) for unread in action.unread if unread.count != 0)


def plan_diff(manifest: Manifest, action: Action) -> tuple[str, ...]:
    node, comparison = manifest.nodes[action.node], action.comparison
    if not isinstance(node, Model) or comparison is None or comparison.before is None:
        return ()
    from engine.plan.edits.definition_diff import definition_diff

    # Facts of an artifact have no credentials.
    return definition_diff(published_facts(comparison.before), published_facts(node.facts))


def plan_word(action: Action) -> str:
    if action.refusals:
        return "rejected"
    return "unchanged" if action.unchanged else action.kind.value


def plan_summary(manifest: Manifest, plan: Plan, total: float | None = None) -> str:
    """Return how many models have which action, how many tests run, and how long all takes (`total` in seconds)."""
    counts: Counter[str] = Counter()
    tests = 0
    for action in plan.actions.values():
        if isinstance(manifest.nodes[action.node], Model):
            counts[plan_word(action)] += 1
        else:
            tests += not action.unchanged
    parts = [f"{counts[word]:,} {word}" for word in sorted(counts, key=rejected_first)]
    parts += [f"{tests:,} {'test runs' if tests == 1 else 'tests run'}"] if tests else []
    return ", ".join(parts) + (f"; about {seconds_text(total)}" if total is not None else "")


def rejected_first(word: str) -> tuple[bool, str]:
    return word != "rejected", word


def _if_changed(manifest: Manifest, action: Action) -> Iterator[str]:
    """What decides whether a batch table or view is built that only a build can tell of."""
    node = manifest.nodes[action.node]
    if isinstance(node, Model) and not node.streaming and plan_word(action) == "rebuild":
        names = list(dict.fromkeys(item.name for item in node.inputs))
        inputs = " or ".join([*names[:_NAMED], *(["others"] if len(names) > _NAMED else [])])
        if inputs and node.computed_when_read:
            yield f"recreated if the columns of {inputs} change"
        elif inputs and node.write.history:
            yield f"compared again if {inputs} has changed by then"
        elif inputs:
            yield f"recomputed if {inputs} has changed by then"


def _reads(unread: Unread) -> str:
    if unread.count is None:
        return f"new data in {unread.name}"
    names = ", ".join(unread.names)
    more = f": {names}{', ...' if unread.count > len(unread.names) else ''}" if names else ""
    unit = unread.unit[:-1] if unread.count == 1 else unread.unit
    rows = f" ({unread.rows:,} row{'' if unread.rows == 1 else 's'})" if unread.rows else ""
    return f"{unread.count:,} new {unit} of {unread.name}{rows}{more}"
