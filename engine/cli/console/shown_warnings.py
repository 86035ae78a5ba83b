"""Which warnings of a project a command shows: those of the nodes that it is about, and to people not over and over."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Diagnostic, EngineError
from engine.target_folder import TargetFolder

if TYPE_CHECKING:
    from engine.compile import Manifest

_FILE = "told.json"
_DAY = 24 * 60 * 60


def warnings_of(manifest: Manifest, nodes: Collection[str]) -> list[Diagnostic]:
    """Return the warnings about some nodes, about the sources that these read, and about no node at all."""
    relevant_nodes = {
        *nodes,
        *(parent for node in nodes for parent in manifest.parents(node) if parent.startswith("source.")),
    }
    all_names, about_names = _names(manifest, manifest.nodes), _names(manifest, relevant_nodes)
    warnings = (diagnostic for diagnostic in manifest.diagnostics if not diagnostic.is_error)
    return [
        diagnostic
        for diagnostic in warnings
        if not (names := _node_or_file(diagnostic) & all_names) or names & about_names
    ]


def _names(manifest: Manifest, nodes: Iterable[str]) -> set[str]:
    """The names and files of nodes; a warning has one or the other."""
    return {name for node in nodes for name in (manifest.nodes[node].name, manifest.nodes[node].file)}


def _node_or_file(warning: Diagnostic) -> set[str]:
    if warning.node:
        return {warning.node}
    return {warning.location.file} if warning.location else set()


def not_shown_today(folder: Path | None, warnings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return warnings that were not shown within a day; code, node, file and text count, the line does not."""
    shown_times = _shown_times(folder)
    return [warning for warning in warnings if _identity(warning) not in shown_times]


def note_shown(folder: Path | None, warnings: Sequence[Diagnostic]) -> None:
    """Remember that warnings are shown now; a failure to do so is ignored."""
    if folder is None or not warnings:
        return
    shown_times = {**_shown_times(folder), **dict.fromkeys(map(_identity, warnings), time.time())}
    try:
        with TargetFolder(folder) as cache:
            cache.write(_FILE, json.dumps(shown_times).encode())
    except (EngineError, OSError):
        return


def _shown_times(folder: Path | None) -> dict[str, float]:
    if folder is None:
        return {}
    with TargetFolder(folder) as cache:
        text = cache.read(_FILE)
    try:
        record = json.loads(text or b"{}")
    except (ValueError, RecursionError):
        return {}
    now = time.time()
    times = record.items() if isinstance(record, dict) else ()
    return {key: at for key, at in times if isinstance(at, int | float) and 0 <= now - at < _DAY}


def _identity(warning: Diagnostic) -> str:
    file = warning.location.file if warning.location else None
    text = json.dumps([warning.code, warning.node, file, warning.message, warning.hint])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
