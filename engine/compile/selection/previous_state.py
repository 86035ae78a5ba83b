"""An earlier state of the project, for `state:` and `result:`: the artifacts of an earlier run.

It may be of another target, so that nodes are compared without the names of tables: a model by its definition, the
schema that it adds to the target's, and its alias.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bounds.regular_file import NotRegularError, parse_json, read_regular
from engine.compile.artifacts.dbt_manifest import OWN, About, node_dict, own_id
from engine.compile.nodes.manifest import Manifest, Node
from engine.errors import UsageError

STATES = ("new", "old", "modified", "modified.body", "modified.config", "modified.relation", "unmodified")
_RELATION = ("database", "schema", "alias", "identifier")
_DESCRIBED = ("description", "tags")
# A source's settings are what it is, no matter of how it is built.
_SAID_BY_SOURCE = ("config", "external")
_NO_ONE = About("")
# Of an artifact: those of five thousand models have a third of both.
_MOST_BYTES = 1 << 27
_MOST_VALUES = 5_000_000
# The name of a table in SQL.
_TABLE = re.compile(r"[^\s]{1,300}\.[^\s]{1,700}")
# Comparisons of letters by which tables are replaced in a text: more, and they stay.
_MOST_WORK = 50_000_000


@dataclass(frozen=True, slots=True)
class Previous:
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)


def load_previous(folder: Path, *, must_exist: bool) -> Previous:
    """Read the artifacts of a folder.

    Raises:
        UsageError: no readable manifest.json, and `must_exist`; or a file is a link, not a file, or too large.
    """
    manifest = _read(folder / "manifest.json")
    if must_exist and manifest is None:
        hint = "Keep a copy of the target/ folder of the run to compare with, and pass its path."
        raise UsageError("usage", f"there is no readable manifest.json in {folder}", hint)
    nodes = {
        own_id(unique): node
        for kind in ("nodes", "sources", "unit_tests", "exposures")
        for unique, node in _mapping((manifest or {}).get(kind)).items()
        if isinstance(node, dict)
    }
    listed = (_read(folder / "run_results.json") or {}).get("results")
    results = [r for r in listed if isinstance(r, dict)] if isinstance(listed, list) else []
    tables = {
        name: str(node["relation_name"])
        for name, node in nodes.items()
        if node.get("resource_type") == "model" and _TABLE.fullmatch(str(node.get("relation_name"))[:2_000])
    }
    return Previous(nodes, {own_id(str(r.get("unique_id"))): _status(r) for r in results}, tables)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = parse_json(read_regular(path, _MOST_BYTES), _MOST_VALUES, _MOST_BYTES)
    except NotRegularError as error:
        raise _unusable(str(error)) from error
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _unusable(reason: str) -> UsageError:
    hint = "Pass a copy of the target/ folder of a run: regular files that engine wrote."
    return UsageError("usage", f"an earlier state cannot be read: {reason}", hint)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _status(result: Mapping[str, Any]) -> str:
    """The status; dbt has no word for a model that had nothing new to read."""
    unchanged = _mapping(result.get("adapter_response")).get("unchanged") is True
    return "unchanged" if unchanged else str(result.get("status"))


def in_state(node: Node, state: str, previous_run: Previous, tables: Mapping[str, str]) -> bool:
    """Whether a node is new, modified, ... (one of `STATES`) against an earlier manifest."""
    before = previous_run.nodes.get(node.id)
    if before is None:
        # As in dbt, what is new is modified, too, in each of its parts.
        return state == "new" or state.startswith("modified")
    now: Mapping[str, Any] = json.loads(json.dumps(node_dict(node, _NO_ONE), default=str))
    try:
        changed = {
            "modified.body": _with_ids(_body(now), now, tables)
            != _with_ids(_body(before), before, previous_run.tables),
            "modified.relation": _relation(now) != _relation(before),
            "modified.config": _with_ids(_config(now), now, tables)
            != _with_ids(_config(before), before, previous_run.tables),
        }
    except RecursionError as error:
        raise _unusable(f"its {node.id} is nested too deeply") from error
    if state in changed:
        return changed[state]
    return {"old": True, "modified": any(changed.values()), "unmodified": not any(changed.values())}.get(state, False)


def tables_of(manifest: Manifest) -> dict[str, str]:
    return {model.id: (model.deferred_from or model.relation).sql for model in manifest.models if model.in_catalog}


def _with_ids(parts: list[Any], node: Mapping[str, Any], tables: Mapping[str, str]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    read = _mapping(node.get("depends_on")).get("nodes")
    ids = {own_id(unique) for unique in (node.get("unique_id"), *(read if isinstance(read, list) else ()))
           if isinstance(unique, str)}  # fmt: skip
    marks = {tables[name]: _mark(name) for name in ids if name in tables}
    if not marks or len(text) * len(marks) > _MOST_WORK:
        return text
    # All at once: what takes the place of one is not a table that is replaced again.
    longest_first = sorted(marks, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: marks[match[0]], text)


def _mark(name: str) -> str:
    return f"<{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}>"


def _relation(node: Mapping[str, Any]) -> list[Any]:
    own = _own(node)
    return [own["custom_schema"], node.get("alias")] if "custom_schema" in own else _part(node, _RELATION)


def _part(node: Mapping[str, Any], keys: tuple[str, ...]) -> list[Any]:
    return [node.get(key) for key in keys]


def _own(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(node.get("meta")).get(OWN))


def _body(node: Mapping[str, Any]) -> list[Any]:
    """What the node computes: a model's definition stands for its text, a source's settings for what it gives."""
    if node.get("resource_type") == "source":
        names = [[c.get("name"), c.get("data_type")] for c in _columns(node)]
        return [*_part(node, _SAID_BY_SOURCE), names]
    definition = _own(node).get("definition")
    return [definition] if definition else [node.get("raw_code"), node.get("compiled_code")]


def _config(node: Mapping[str, Any]) -> list[Any]:
    config = dict(_mapping(node.get("config"))) if node.get("resource_type") != "source" else {}
    for key in _RELATION:
        config.pop(key, None)
    user = {key: value for key, value in _mapping(node.get("meta")).items() if key != OWN}
    columns = [_described(column) for column in _columns(node)]
    title = _own(node).get("title")
    return [config, *_part(node, _DESCRIBED), user, title, [c for c in columns if c["description"] or c["meta"]]]


def _columns(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [column for column in _mapping(node.get("columns")).values() if isinstance(column, dict)]


def _described(column: Mapping[str, Any]) -> dict[str, Any]:
    """A column without what follows from the query: its type and lineage."""
    meta = {key: value for key, value in _mapping(column.get("meta")).items() if key != OWN}
    return {"name": column.get("name"), "description": column.get("description"), "meta": meta}


def with_result(manifest: Manifest, status: str, previous_run: Previous) -> set[str]:
    statuses = {"success": {"success", "unchanged"}}.get(status, {status})
    return {node for node in manifest.nodes if previous_run.results.get(node) in statuses}
