"""What a project adds, removes and changes against an earlier manifest.json."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.compile.artifacts.dbt_manifest import OWN, own_id
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import Manifest, Model, Source
from engine.compile.selection.previous_state import Previous, in_state, tables_of
from engine.plan.actions.action import Action
from engine.plan.against_manifest import plan_against, writers_in

_PAGES = ("model", "source", "exposure")
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """How a node differs.

    Attributes:
        kind: `added` or `changed`.
        details: what differs, each with its subject: columns, inputs, settings.
        sql: lines of both texts, each with ` `, `-` or `+` before it; empty if the text is the same or new.
        action: what a build would do with the table.
    """

    kind: str
    details: tuple[tuple[str, str], ...] = ()
    sql: tuple[str, ...] = ()
    action: str = ""


@dataclass(frozen=True, slots=True)
class RemovedNode:
    """A node that only the earlier manifest has; `kind` is `source`, `exposure`, or as its table was made."""

    id: str
    name: str
    kind: str
    file: str
    sql: str
    reads: tuple[str, ...]
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    changes: Mapping[str, Change]
    removed: tuple[RemovedNode, ...]


def differences(manifest: Manifest, earlier_project: Previous) -> Differences:
    tables = tables_of(manifest)
    models = [model.id for model in manifest.models]
    actions = plan_against(manifest, models, writers_in(earlier_project.nodes)).actions
    nodes: tuple[Source | Model | Exposure, ...] = (*manifest.sources, *manifest.models, *manifest.exposures)
    changes = {node.id: _change(node, earlier_project, tables, actions.get(node.id)) for node in nodes}
    removed = tuple(_removed(manifest, earlier_project))
    return Differences({node: change for node, change in changes.items() if change is not None}, removed)


def _change(
    node: Model | Source | Exposure, earlier_project: Previous, tables: Mapping[str, str], action: Action | None
) -> Change | None:
    word = _action_word(action)
    before = earlier_project.nodes.get(node.id)
    if before is None:
        return Change("added", action=word)
    details = tuple(_details(node, before, earlier_project, tables))
    if not details and not in_state(node, "modified", earlier_project, tables):
        return None
    sql: tuple[str, ...] = ()
    if isinstance(node, Model):
        sql = tuple(_diff(str(before.get("raw_code") or ""), node.raw_sql.strip()))
    return Change("changed", details or (("Definition", "changed"),), sql, word)


def _action_word(action: Action | None) -> str:
    if action is None:
        return ""
    if action.refusals:
        return "rejected: " + "; ".join(refusal.message for refusal in action.refusals)
    return "unchanged" if action.unchanged else action.kind.value


def _details(
    node: Model | Source | Exposure, before: Mapping[str, Any], earlier_project: Previous, tables: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if not isinstance(node, Exposure):
        yield from _columns(node, _mapping(before.get("columns")))
    if not isinstance(node, Source):
        was, now = set(_reads(before)), set(node.depends_on)
        yield from _listed_nodes("Reads", sorted(now - was))
        yield from _listed_nodes("No longer reads", sorted(was - now))
    for state, text in (("modified.config", "Settings"), ("modified.relation", "Table name")):
        if in_state(node, state, earlier_project, tables):
            yield text, "changed"
    if str(before.get("description") or "") != node.description:
        yield "Description", "changed"


def _columns(node: Model | Source, was: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    before = {name.lower(): _mapping(column) for name, column in was.items()}
    now = {column.name.lower(): column for column in node.columns}
    yield from _listed("Columns added", [column.name for key, column in now.items() if key not in before])
    yield from _listed("Columns removed", [name for name in was if name.lower() not in now])
    for key, column in now.items():
        earlier = before.get(key)
        if earlier is None:
            continue
        type_ = earlier.get("data_type")
        if (type_ or None) != (column.type or None):
            yield f"Type of {column.name}", f"{type_ or 'unknown'} → {column.type or 'unknown'}"
        sql = str(_mapping(_mapping(earlier.get("meta")).get(OWN)).get("sql") or "")
        if sql != column.sql:
            yield f"Expression of {column.name}", f"{sql or 'none'} → {column.sql or 'none'}"


def _listed_nodes(subject: str, nodes: Sequence[str]) -> Iterator[tuple[str, str]]:
    return _listed(subject, [node.partition(".")[2] for node in nodes])


def _listed(subject: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if names:
        yield subject, ", ".join(names)


def _diff(before: str, now: str) -> Iterator[str]:
    if before == now:
        return
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=_CONTEXT)
    yield from (line for line in lines if not line.startswith(("---", "+++")))


def _removed(manifest: Manifest, earlier_project: Previous) -> Iterator[RemovedNode]:
    for id_, node in earlier_project.nodes.items():
        kind, _, name = id_.partition(".")
        if kind not in _PAGES or id_ in manifest.nodes:
            continue
        readers = tuple(other for other, record in earlier_project.nodes.items() if id_ in _reads(record))
        file, sql = str(node.get("original_file_path") or ""), str(node.get("raw_code") or "")
        yield RemovedNode(id_, name, _kind(kind, node), file, sql, _reads(node), readers)


def _kind(kind: str, node: Mapping[str, Any]) -> str:
    if kind != "model":
        return kind
    materialized = str(_mapping(node.get("config")).get("materialized"))
    return {"view": "view", "ephemeral": "view", "streaming_table": "stream"}.get(materialized, "table")


def _reads(node: Mapping[str, Any]) -> tuple[str, ...]:
    read = _mapping(node.get("depends_on")).get("nodes")
    return tuple(own_id(name) for name in read if isinstance(name, str)) if isinstance(read, list) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
