"""About how long a build takes: from the last runs of this user, which are kept in the cache of the project.

Builds with work count, apart for those from the first row and those that continued with a checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from engine.api.requests import THREADS
from engine.compile import Manifest, Materialized, Model
from engine.errors import EngineError
from engine.events import BatchCommitted, Event, ModelFinished, Status
from engine.target_folder import TargetFolder

if TYPE_CHECKING:
    from engine.plan import Plan

_FILE = "durations.json"
_FIRST, _CONTINUED = "from the first row", "continued"
# Runs of a model that are kept.
_RUNS_STORED = 5
_MINUTE, _HOUR = 60, 3600
_WITH_DECIMALS = 10


def note_durations(folder: Path | None, manifest: Manifest, target: str, events: Iterable[Event]) -> None:
    """Remember how long the models of a run took; a failure to do so is ignored."""
    restarted = set()
    seconds_by_node: dict[str, tuple[str, float]] = {}
    for event in events:
        if isinstance(event, BatchCommitted) and event.batch_id == 0:
            restarted.add(event.node)
        elif isinstance(event, ModelFinished) and event.status is Status.SUCCESS:
            continued = event.kind == Materialized.STREAMING_TABLE and event.node not in restarted
            seconds_by_node[event.node] = (_CONTINUED if continued else _FIRST, round(event.seconds, 2))
    if folder is None or not seconds_by_node:
        return
    durations_by_target = _read_durations(folder)
    durations = {
        node: record for node, record in _mapping(durations_by_target.get(target)).items() if node in manifest.nodes
    }
    for node, (kind, seconds) in seconds_by_node.items():
        node_durations = _mapping(durations.get(node))
        durations[node] = {**node_durations, kind: [*_numbers(node_durations.get(kind)), seconds][-_RUNS_STORED:]}
    try:
        with TargetFolder(folder) as cache:
            cache.write(_FILE, json.dumps({**durations_by_target, target: durations}).encode())
    except (EngineError, OSError):
        return


def expected_seconds(folder: Path | None, manifest: Manifest, target: str, plan: Plan) -> dict[str, float]:
    """Return the seconds that models of a plan will take, by id: the median of the last runs."""
    from engine.plan import ActionKind

    durations = _mapping(_read_durations(folder).get(target)) if folder is not None else {}
    expected = {}
    for action in plan.actions.values() if durations else ():
        node = manifest.nodes[action.node]
        if action.refusals or action.unchanged or not isinstance(node, Model):
            continue
        streams = {ActionKind.RESUME: _CONTINUED, ActionKind.CREATE: _FIRST, ActionKind.REFRESH: _FIRST}
        kind = streams.get(action.kind, "") if node.streaming else _FIRST
        seconds_by_node = (
            _numbers(_mapping(durations.get(node.id)).get(kind)) if action.kind is not ActionKind.EMPTY else ()
        )
        if seconds_by_node:
            expected[node.id] = median(seconds_by_node)
    return expected


def total_seconds(manifest: Manifest, seconds: Mapping[str, float], threads: int = THREADS) -> float | None:
    """Return the seconds of models together: the longest way through them, or each thread's work; None: unknown."""
    if not seconds:
        return None
    ends: dict[str, float] = {}
    for node in manifest.order:
        ends[node] = seconds.get(node, 0.0) + max(
            (ends.get(parent, 0.0) for parent in manifest.parents(node)), default=0.0
        )
    return max(*ends.values(), sum(seconds.values()) / threads)


def seconds_text(seconds: float) -> str:
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.1f} h"
    if seconds >= 2 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds:.1f} s" if seconds < _WITH_DECIMALS else f"{seconds:.0f} s"


def _read_durations(folder: Path) -> Mapping[str, Any]:
    try:
        with TargetFolder(folder) as cache:
            text = cache.read(_FILE)
        return _mapping(json.loads(text or b"{}"))
    except (EngineError, OSError, ValueError, RecursionError):
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _numbers(value: Any) -> list[float]:
    numbers = value if isinstance(value, list) else []
    return [number for number in numbers if type(number) in {int, float} and 0 <= number < math.inf]
