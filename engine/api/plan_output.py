"""A plan as text, and as records for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.api.deferral import deferred_inputs
from engine.characters import one_line
from engine.compile import Manifest, Materialized, Model, UnitTest
from engine.compile.artifacts.dbt_manifest import unique_id

if TYPE_CHECKING:
    from engine.plan import Action, Plan, Unread
    from engine.plan.edits.affected_columns import AffectedModel

# Names of inputs that a sentence has at most.
_NAMED = 3
_NOT_BUILT = ("unchanged", "rejected")
_NONE: Mapping[str, float] = {}


def plan_record(manifest: Manifest, action: Action, *, diff: bool = False) -> dict[str, Any]:
    """Return an action of a plan as a record for JSON; `diff` as in `plan_lines`."""
    node = manifest.nodes[action.node]
    record: dict[str, Any] = {
        "unique_id": unique_id(node.id, manifest.project),
        "name": node.name,
        "action": action.kind.value,
    }
    if isinstance(node, Model):
        change = action.comparison.change.value if action.comparison is not None else None
        record |= {"materialized": node.materialized.value, "relation": str(node.relation), "change": change}
    affected, exposures = _affected(manifest, action)
    return record | {
        "unchanged": action.unchanged,
        "reasons": list(action.reasons),
        "notes": list(action.notes),
        "affects": [
            {"name": one.name, "columns": one.columns if one.columns is None else list(one.columns)} for one in affected
        ],
        "exposures": list(exposures),
        "reads": [{"name": u.name, "what": u.what or None, "new": u.count} for u in action.unread],
        "deferred": deferred_inputs(manifest, node.id),
        "refusals": [refusal.to_dict() for refusal in action.refusals],
        **({"diff": list(plan_diff(manifest, action))} if diff else {}),
    }


def plan_lines(
    manifest: Manifest, plan: Plan, *, diff: bool = False, took: Mapping[str, float] = _NONE
) -> Iterator[str]:
    """Return the plan as text: a line a model, its reasons and what it reads below it; tests are counted.

    Args:
        manifest: the compiled project.
        plan: of it.
        diff: also what an edit changes of the settings and the query of a model.
        took: seconds that the last run took for a model, by its id.
    """
    counted: Counter[str] = Counter()
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if not isinstance(node, Model):
            kind = "unit test" if isinstance(node, UnitTest) else "data test"
            counted[f"cached {kind}" if action.unchanged else kind] += 1
            continue
        word = plan_word(action)
        counted[word] += 1
        seconds = took.get(node.id) if word not in _NOT_BUILT else None
        last = f" ({seconds:.1f} s last time)" if seconds is not None else ""
        yield one_line(f"{word:<10} {node.materialized.value} {node.relation}{last}")
        yield from (f"{'':<10} {one_line(detail)}" for detail in plan_details(manifest, action))
        if diff:
            yield from (f"{'':<10} {one_line(line)}" for line in plan_diff(manifest, action))
    if counted:
        yield ", ".join(
            f"{number} {word}{'s' if 'test' in word and number > 1 else ''}" for word, number in counted.items()
        )


def plan_details(manifest: Manifest, action: Action) -> Iterator[str]:
    """Yield why a model is built and what it reads; of one that is rejected, why it is."""
    if action.refusals:
        # What would follow from the edit if it were not rejected would be read as what happens.
        edit = action.comparison
        rejected = edit.refusal.message if edit is not None and edit.refusal is not None else None
        if edit is not None and rejected in {refusal.message for refusal in action.refusals}:
            yield from edit.reasons
        yield from (f"{one.message} [{one.code}]" for one in action.refusals if one.message != rejected)
        return
    yield from action.reasons
    affected, exposures = _affected(manifest, action)
    if affected or exposures:
        from engine.plan.edits.affected_columns import affected_text

        yield from affected_text(affected, exposures)
    yield from (_reads(unread) for unread in action.unread if unread.count != 0)
    if action.unchanged is None and not action.reasons:
        yield from _if_changed(manifest, action)
    for name, table in deferred_inputs(manifest, action.node).items():
        yield f"{name} is deferred to {table}"


def _affected(manifest: Manifest, action: Action) -> tuple[tuple[AffectedModel, ...], tuple[str, ...]]:
    """The models downstream of an edited one whose values may differ, and the exposures that read such values."""
    node, comparison = manifest.nodes[action.node], action.comparison
    if not isinstance(node, Model) or comparison is None or comparison.before is None:
        return (), ()
    from engine.plan.edits.affected_columns import affected_exposures, affected_models

    found = affected_models(manifest, node, comparison.before)
    return found, affected_exposures(manifest, node, comparison.before, found)


def plan_diff(manifest: Manifest, action: Action) -> tuple[str, ...]:
    """Return what an edit changes of a model's settings and query, in lines of a diff."""
    node, comparison = manifest.nodes[action.node], action.comparison
    if not isinstance(node, Model) or comparison is None or comparison.before is None:
        return ()
    from engine.plan.edits.definition_diff import definition_diff

    return definition_diff(comparison.before, node.facts)


def plan_word(action: Action) -> str:
    """Return what becomes of a model, in a word: `rejected`, `unchanged`, or its kind of action."""
    if action.refusals:
        return "rejected"
    return "unchanged" if action.unchanged else action.kind.value


def _if_changed(manifest: Manifest, action: Action) -> Iterator[str]:
    """What decides whether a batch table or view is built that only a build can tell of."""
    node = manifest.nodes[action.node]
    if isinstance(node, Model) and not node.streaming and plan_word(action) == "rebuild":
        names = list(dict.fromkeys(item.name for item in node.inputs))
        shown = " or ".join([*names[:_NAMED], *(["others"] if len(names) > _NAMED else [])])
        if shown and node.materialized is Materialized.VIEW:
            yield f"created again if the columns of {shown} change"
        elif shown:
            yield f"computed again if {shown} has changed by then"


def _reads(unread: Unread) -> str:
    """What a stream reads next."""
    if unread.count is None:
        return f"reads what is new in {unread.name}"
    names = ", ".join(unread.names)
    more = f": {names}{', ...' if unread.count > len(unread.names) else ''}" if names else ""
    what = unread.what[:-1] if unread.count == 1 else unread.what
    return f"reads {unread.count:,} new {what} of {unread.name}{more}"
