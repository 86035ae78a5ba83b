"""`engine build --rebuild` in a history, also one that is killed: the tables are what a full refresh would have given."""

from __future__ import annotations

from tests.histories.difference import DifferenceError
from tests.histories.follow import REFRESH, Followed
from tests.histories.points import Armed, Points, fail
from tests.histories.steps import Step
from tests.histories.world import World
from tests.lab import Result

# What no user should see, and what only a query can be wrong with.
_RAW = {"internal-error", "query-failed", "spark-session", "compiler-error", "usage"}


def rebuild(step: Step, world: World, models: dict[str, Followed], points: Points) -> None:
    """Rebuild a model and the streams of its table beside their tables, and publish them, where that is not rejected."""
    chosen = _with_readers(step.model, models)
    if not chosen or any(known.frozen is not None or known.kind.tested for known in chosen):
        return
    command = ("build", "--rebuild", "-s", *(known.name for known in chosen))
    point, ending = step.detail
    if point:
        points.armed = Armed(point, step.model + ending, 0, fail)
    result = world.lab.run(*command)
    happened = points.armed is not None and points.armed.happened
    points.armed = None
    published = {}
    if happened:
        if result.code == 0:
            raise DifferenceError("a rebuild that was killed has ended well")
        published = {known.name: known.rows() for known in chosen if known.rows() != known.oracle.table()}
        if ending and published:
            raise DifferenceError(f"tables have changed while others were built beside them: {[*published]}")
        result = world.lab.run(*command)
        if result.code != 0:
            raise DifferenceError(f"a rebuild that was killed is not finished: {result.text[-2000:]}")
    world.said = f"{' '.join(command)}: {result.code} {happened} {' '.join(sorted(set(result.codes())))}"
    if result.code == 0:
        _done(chosen, result)
    elif result.code != 1 or _codes(result) & _RAW or "Traceback" in result.text:
        raise DifferenceError(f"a rebuild ended with {result.code}: {result.text[-2000:]}")
    for known in models.values():
        known.same()
        if known.name in published and published[known.name] != known.rows():
            raise DifferenceError(f"{known.name}: it was published twice, with other rows")


def _with_readers(name: str, models: dict[str, Followed]) -> list[Followed]:
    """A model and the streams of its table, and of theirs; none for a batch table."""
    found: list[Followed] = []
    for known in models.values():
        if not known.kind.batch and (known.name == name or known.kind.upstream in [one.name for one in found]):
            found.append(known)
    return found


def _codes(result: Result) -> set[str]:
    return {e["code"] for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"}


def _done(chosen: list[Followed], result: Result) -> None:
    warnings = " ".join(str(e) for e in result.events if e["event"] == "Diagnosed")
    for known in chosen:
        # Its late rows are counted by each of the runs.
        known.asked, known.tidy = REFRESH, False
        known.follow(done=True, warnings=warnings, late=0)
        known.asked = ""
