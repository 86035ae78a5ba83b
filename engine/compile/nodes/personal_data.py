"""Which columns hold personal data: those marked `meta: {pii: true}`, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine.compile.nodes.manifest import Column, Manifest, Model, Source

KEY = "pii"
_NO = {"", "0", "false", "no", "none"}


def personal_columns(manifest: Manifest) -> Mapping[str, frozenset[str]]:
    """Return the paths that hold personal data, by node: columns, and fields of them (`place.street`), in lower case.

    A column whose value comes from one, at any distance, is one too, unless it is marked `meta: {pii: false}` itself.
    """
    paths_by_node: dict[str, frozenset[str]] = {}
    nodes: list[Source | Model] = [*manifest.sources, *manifest.models]
    for node in nodes:
        whole = _is_marked(node.meta) or KEY in {tag.lower() for tag in node.tags}
        columns = (*node.columns, *(node.fields if isinstance(node, Source) else ()))
        paths = (column.name.lower() for column in columns if _is_personal(column, whole, paths_by_node))
        paths_by_node[node.id] = frozenset(paths)
    return paths_by_node


def hidden_columns(node: Model, table_columns: Iterable[str], personal: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the stored columns that may hold personal data; unknown columns may, where the project has some."""
    column_names = {column.name.lower() for column in node.columns}
    marked = any(personal.values())
    return frozenset(
        name
        for name in table_columns
        if (marked and name.lower() not in column_names)
        or any(_overlap(name.lower(), path) for path in personal.get(node.id, ()))
    )


def _is_personal(column: Column, whole: bool, paths_by_node: Mapping[str, frozenset[str]]) -> bool:
    if KEY in column.meta:
        return _is_marked(column.meta)
    inherited = (
        _overlap(origin.column.lower(), path)
        for origin in column.origins
        for path in paths_by_node.get(origin.node, ())
    )
    return whole or any(inherited)


def _is_marked(meta: Mapping[str, Any]) -> bool:
    return str(meta.get(KEY, "")).strip().lower() not in _NO


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
