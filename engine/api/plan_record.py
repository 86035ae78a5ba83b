"""What a build would do to a node, as JSON has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.api.deferral import deferred_inputs
from engine.compile import Manifest, Model
from engine.compile.artifacts.dbt_manifest import unique_id

if TYPE_CHECKING:
    from engine.plan import Action


def plan_record(manifest: Manifest, action: Action) -> dict[str, Any]:
    """Return an action of a plan as a record for JSON."""
    node = manifest.nodes[action.node]
    record: dict[str, Any] = {
        "unique_id": unique_id(node.id, manifest.project),
        "name": node.name,
        "action": action.kind.value,
    }
    if isinstance(node, Model):
        change = action.comparison.change.value if action.comparison is not None else None
        record |= {"materialized": node.materialized.value, "relation": str(node.relation), "change": change}
    return record | {
        "unchanged": action.unchanged,
        "reasons": list(action.reasons),
        "notes": list(action.notes),
        "reads": [{"name": u.name, "what": u.what or None, "new": u.count} for u in action.unread],
        "deferred": deferred_inputs(manifest, node.id),
        "refusals": [refusal.to_dict() for refusal in action.refusals],
    }
