"""Running a plan in a folder of its own, and finding a short one that fails the same way."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from tests.histories.difference import DifferenceError
from tests.histories.history import History
from tests.histories.kept_running import KeptRunning
from tests.histories.steps import NEEDS, Plan
from tests.histories.world import World
from tests.lab import Lab, LabSession
from tests.odd_folders.names import folder_name, strays
from tests.services.kafka import Broker

_numbers = count()
_MOST = 40


def failure(
    plan: Plan,
    folder: Path,
    session: LabSession,
    printed: Any,
    tell: Callable[[str], None] | None = None,
    tally: Counter[str] | None = None,
    broker: Broker | None = None,
    *,
    kept: bool = False,
    odd: int | None = None,
) -> str | None:
    """Run a plan; what differs, or None. With a seed in `odd` the project is in a folder with a random name."""
    number = next(_numbers)
    outer = folder / f"project{number}"
    name = "project" if odd is None else folder_name(random.Random(f"{odd} {number}"))
    root = outer / name
    root.mkdir(parents=True)
    world = World(Lab(root, session, printed), plan.models, broker=broker)
    running = KeptRunning(world.lab) if kept else None
    history = History(world, plan, tell or (lambda _: None), kept=running)
    try:
        history.run()
    except DifferenceError as error:
        return str(error)
    finally:
        if running is not None:
            running.stop()
        history.points.armed = None
        if tally is not None:
            tally.update(history.tally)
        beside = strays(outer, (history.world.lab.root.name,)) if history.world.lab.root.exists() else []
        shutil.rmtree(outer, ignore_errors=True)
    return f"{beside} are beside the project" if beside else None


def shrunk(
    plan: Plan, found: str, folder: Path, session: LabSession, printed: Any, broker: Broker | None = None
) -> tuple[Plan, str]:
    """Leave out models, steps and files as long as a plan fails the same way."""
    sort, tries = _sort(found), 0
    again = True
    while again and tries < _MOST:
        again = False
        for smaller in _smaller(plan):
            tries += 1
            now = failure(smaller, folder, session, printed, broker=broker)
            if now is not None and _sort(now) == sort:
                plan, found, again = smaller, now, True
                break
            if tries >= _MOST:
                break
    return plan, found


def _sort(found: str) -> str:
    """What of a difference stays when the history gets shorter."""
    return re.sub(r"[^a-z_ ]+.*", "", found)


def _smaller(plan: Plan) -> Iterator[Plan]:
    for name in plan.models:
        rest = tuple(m for m in plan.models if m != name)
        if rest and not any(NEEDS.get(other) == name for other in rest):
            yield replace(plan, models=rest, steps=tuple(s for s in plan.steps if not s.model or s.model != name))
    for size in (4, 2, 1):
        for at in range(1, len(plan.steps), size):
            yield replace(plan, steps=(*plan.steps[:at], *plan.steps[at + size :]))
    for at, step in enumerate(plan.steps):
        if at and step.files:
            yield replace(plan, steps=(*plan.steps[:at], replace(step, files=()), *plan.steps[at + 1 :]))
