"""An earlier state of the project, for `state:` and `result:`: the artifacts of an earlier run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.compile.manifest import Manifest, Node
from engine.errors import UsageError

STATES = ("new", "old", "modified", "modified.body", "modified.config", "modified.relation", "unmodified")
# Where a node's definition stands is no part of it; a model's fingerprint stands for its text.
_BODY = ("sql", "spec")
_PLACES = ("id", "name", "file", "positions", "facts", "location", "broken", "indirect")
_NOT_CONFIG = (*_BODY, *_PLACES, "fingerprint", "raw_sql", "relation")


@dataclass(frozen=True, slots=True)
class Previous:
    """The nodes of an earlier manifest.json and the statuses of an earlier run_results.json, by id."""

    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)


def load_previous(folder: Path, *, must_exist: bool) -> Previous:
    """Read the artifacts of a folder.

    Raises:
        UsageError: there is no readable manifest.json and `must_exist` says there should be.
    """
    manifest = _read(folder / "manifest.json")
    if must_exist and manifest is None:
        hint = "Keep the target/ folder of the run to compare with, and name the copy."
        raise UsageError("usage", f"there is no manifest.json that can be read in {folder}", hint)
    results = _read(folder / "run_results.json") or {}
    statuses = {str(r.get("unique_id")): str(r.get("status")) for r in results.get("results", [])}
    return Previous((manifest or {}).get("nodes", {}), statuses)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def in_state(node: Node, state: str, previous: Previous) -> bool:
    """Whether a node is new, modified, ... against an earlier manifest."""
    before = previous.nodes.get(node.id)
    if before is None:
        return state == "new"
    now, before = _said(json.loads(json.dumps(asdict(node), default=str))), _said(before)
    changed = {
        "modified.body": _differs(now, before, ("fingerprint",) if "fingerprint" in now else _BODY),
        "modified.relation": _differs(now, before, ("relation",)),
        "modified.config": _differs(now, before, [key for key in now if key not in _NOT_CONFIG]),
    }
    if state in changed:
        return changed[state]
    return {"old": True, "modified": any(changed.values()), "unmodified": not any(changed.values())}.get(state, False)


def _said(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node without what follows from its query: types and lineage of its columns."""
    columns = [{key: c.get(key) for key in ("name", "description", "meta")} for c in node.get("columns", [])]
    return {**node, "columns": [c for c in columns if c["description"] or c["meta"]]}


def _differs(now: Mapping[str, Any], before: Mapping[str, Any], keys: Any) -> bool:
    return any(now.get(key) != before.get(key) for key in keys)


def with_result(manifest: Manifest, status: str, previous: Previous) -> set[str]:
    """The nodes that ended in a way in the earlier run; `success` includes what was unchanged."""
    wanted = {"success": {"success", "unchanged"}}.get(status, {status})
    return {node for node in manifest.nodes if previous.results.get(node) in wanted}
