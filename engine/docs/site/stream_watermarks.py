"""How far streams are in event time, from their checkpoints; without Java."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime

from engine.compile import Target
from engine.compile.nodes.manifest import Manifest
from engine.errors import EngineError
from engine.plan.deployed.state_folder import table_state
from engine.state.checkpoint import next_watermark

_log = logging.getLogger("engine.docs")


def read_watermarks(manifest: Manifest, target: Target, only: Collection[str] | None = None) -> dict[str, datetime]:
    """The watermark with which the next micro-batch of each model begins, by the models' ids; some have none.

    Args:
        manifest: of the project.
        target: whose checkpoints are read.
        only: ids of the models that are wanted; None: all.
    """
    watermarks = {}
    for model in manifest.models:
        if not model.streaming or (only is not None and model.id not in only):
            continue
        folder = table_state(target, model)
        try:
            state = folder.load()
            mark = next_watermark(folder.checkpoint(state.generation)) if state else None
            if mark is not None:
                watermarks[model.id] = datetime.fromtimestamp(mark / 1000, UTC)
        except (EngineError, OSError, ValueError, OverflowError) as error:
            _log.warning("the watermark of %s cannot be shown: %s", model.name, error)
    return watermarks
