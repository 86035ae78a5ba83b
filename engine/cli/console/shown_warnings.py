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
    """The warnings about some nodes, about the sources that these read, and about no node at all.

    Args:
        manifest: the compiled project.
        nodes: ids.
    """
    about = {*nodes, *(parent for node in nodes for parent in manifest.parents(node) if parent.startswith("source."))}
    every, chosen = _names(manifest, manifest.nodes), _names(manifest, about)
    warnings = (found for found in manifest.diagnostics if not found.is_error)
    return [found for found in warnings if not (names := _concerned(found) & every) or names & chosen]


def _names(manifest: Manifest, nodes: Iterable[str]) -> set[str]:
    """The names and files of nodes; a warning has one or the other."""
    return {name for node in nodes for name in (manifest.nodes[node].name, manifest.nodes[node].file)}


def _concerned(found: Diagnostic) -> set[str]:
    if found.node:
        return {found.node}
    return {found.location.file} if found.location else set()


def not_told_today(folder: Path | None, warnings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The warnings that were not shown within a day.

    Args:
        folder: what the user's cache keeps of the project; None: all are new.
        warnings: each counts by its code, node, file and text, and not by its line.
    """
    told = _told(folder)
    return [found for found in warnings if _identity(found) not in told]


def note_told(folder: Path | None, warnings: Sequence[Diagnostic]) -> None:
    """Remember that warnings are shown now; a failure to do so is ignored."""
    if folder is None or not warnings:
        return
    told = {**_told(folder), **dict.fromkeys(map(_identity, warnings), time.time())}
    try:
        with TargetFolder(folder) as cache:
            cache.write(_FILE, json.dumps(told).encode())
    except (EngineError, OSError):
        return


def _told(folder: Path | None) -> dict[str, float]:
    """When warnings were shown, of those shown within a day."""
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


def _identity(found: Diagnostic) -> str:
    file = found.location.file if found.location else None
    text = json.dumps([found.code, found.node, file, found.message, found.hint])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
