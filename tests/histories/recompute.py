"""`engine backfill` in a history, also one that is killed: a table is what a batch over the input that was read gives."""

from __future__ import annotations

from tests.histories.batches import read
from tests.histories.difference import DifferenceError
from tests.histories.follow import Followed
from tests.histories.oracle import Oracle
from tests.histories.points import Armed, Points, fail
from tests.histories.steps import Step
from tests.histories.world import World
from tests.lab import Result

# The model whose rows each come from one record, and have a time.
MODEL = "plain"
_COMMAND = (
    "backfill", MODEL, "--from", "2000-01-01", "--column", "at", "--yes", "--accept", "fewer-rows",
    "--rows-per-commit", "1",
)  # fmt: skip
# What no user should see, and what only a query can be wrong with.
_RAW = {"internal-error", "query-failed", "spark-session", "compiler-error", "usage"}


def recompute(step: Step, world: World, models: dict[str, Followed], points: Points) -> None:
    """Compute all rows of the model that have a time again, where that is not rejected."""
    known = models.get(MODEL)
    readers = [one for one in models.values() if one.upstream is known and not one.kind.batch]
    if known is None or known.frozen is not None or any(one.gap or one.owed or one.asked for one in readers):
        return
    (point,) = step.detail
    if point:
        points.armed = Armed(point, MODEL, 0, fail)
    result = world.lab.run(*_COMMAND)
    happened = points.armed is not None and points.armed.happened
    points.armed = None
    if happened:
        if result.code == 0:
            raise DifferenceError("a backfill that was killed has ended well")
        result = world.lab.run(*_COMMAND)
        if result.code != 0:
            raise DifferenceError(f"a backfill that was killed is not finished: {result.text[-2000:]}")
    if result.code == 0:
        _done(world, known, readers)
    elif result.code != 1 or _codes(result) & _RAW:
        raise DifferenceError(f"backfill ended with {result.code}: {result.text[-2000:]}")
    known.same()


def _codes(result: Result) -> set[str]:
    return {e["code"] for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"}


def _done(world: World, known: Followed, readers: list[Followed]) -> None:
    state = world.loaded(MODEL)
    if state is None:
        raise DifferenceError("a backfill without a state")
    seen = read(world.state(MODEL).checkpoint(state.generation))
    names = [name for batch in seen.batches[: seen.committed + 1] for name in batch.files]
    rows = [row for name in names for row in world.landed[name] if row is not None and row["at"] is not None]
    again = Oracle(known.kind)
    again.batch({known.kind.sources[0]: rows}, 0, world.effective(MODEL), 0)
    for reader in readers:
        if world.loaded(reader.name) is not None:
            reader.keeps_what_it_has_read()
    known.oracle.rows = [*(row for row in known.oracle.rows if row["at"] is None), *again.rows]
    for reader in readers:
        if world.loaded(reader.name) is not None:
            reader.since = len(known.visible)
