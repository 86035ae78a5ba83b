"""`engine rollback` in a history, also one that is killed."""

from __future__ import annotations

from tests.histories.difference import DifferenceError
from tests.histories.follow import Followed
from tests.histories.points import Armed, Points, fail
from tests.histories.steps import Step
from tests.histories.world import World


def go_back(step: Step, world: World, models: dict[str, Followed], points: Points) -> None:
    """Undo the last full refresh of a model and of what streams from it, where there is one to undo."""
    command, (point, _) = ("rollback", f"{step.model}+", "--yes"), step.detail
    if point:
        points.armed = Armed(point, step.model, 0, fail)
    result = world.lab.run(*command)
    if point and points.armed is not None and points.armed.happened:
        points.armed = None
        for known in models.values():
            known.same_or_earlier()
        if point == "unnoted":
            result.code = 0
        else:
            result = world.lab.run(*command)
            if result.code != 0:
                raise DifferenceError(f"a rollback that was killed is not finished: {result.text[-2000:]}")
    codes = {e["code"] for e in result.events if e["event"] == "Diagnosed"}
    if result.code != 0 and not codes & {"rollback-unavailable", "downstream-stops"}:
        raise DifferenceError(f"rollback ended with {result.code}: {result.text[-2000:]}")
    for known in models.values():
        known.went_back()
