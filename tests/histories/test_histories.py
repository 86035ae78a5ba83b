"""A slice of the random histories; `python -m tests.histories` runs as many as one likes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.histories.difference import DifferenceError
from tests.histories.history import History
from tests.histories.kept_running import KeptRunning
from tests.histories.kinds import FEED, KINDS
from tests.histories.oracle import content
from tests.histories.points import Points
from tests.histories.steps import MODELS, OPERATIONS, Plan, Step, plan
from tests.histories.world import World
from tests.lab import Lab

SEED = 5
LENGTH = 3
# Of the others some compute much, or start a process of their own.
QUICK = (
    "land", "late", "null", "bad", "duplicate", "edit", "kill", "reset-now", "reset-earliest", "refresh", "rename",
    "rollback", "rollback-in-build", "compact", "lost-state", "lost-checkpoint",
)  # fmt: skip
WHILE_KEPT = ("land", "late", "bad", "duplicate", "edit", "kill", "rollback", "compact", "expire")
WITHOUT_A_TOPIC = tuple(name for name in MODELS if FEED not in KINDS[name].sources)
ROW = {"id": 1, "at": "2024-05-01T10:00:00Z", "kind": "a", "amount": 1.25}


@pytest.fixture(autouse=True)
def _no_points_are_left() -> Iterator[None]:
    """Other tests share the process."""
    yield
    Points.removed()


def run(lab: Lab, history: Plan) -> None:
    History(World(lab, history.models), history, tell=print).run()


@pytest.mark.nightly_except("2")
@pytest.mark.spark
@pytest.mark.parametrize("number", range(4))
def test_a_random_history_leaves_the_rows_of_a_batch_computation(lab: Lab, number: int) -> None:
    run(lab, plan(SEED, number, LENGTH, QUICK, names=WITHOUT_A_TOPIC))


@pytest.mark.nightly_except("1")
@pytest.mark.spark
@pytest.mark.parametrize("number", range(3))
def test_a_random_history_of_a_project_that_is_kept_running(lab: Lab, number: int) -> None:
    history = plan(SEED, number, LENGTH, WHILE_KEPT, names=("plain", "hourly", "current", "outer"))
    running = KeptRunning(lab)
    try:
        History(World(lab, history.models), history, tell=print, kept=running).run()
    finally:
        running.stop()
    assert running.processes


@pytest.mark.spark
def test_a_row_that_never_landed_is_a_difference(lab: Lab) -> None:
    history = Plan(("plain",), (Step("land", files=(("events", [ROW]),)), Step("land", files=(("events", [ROW]),))))
    world = World(lab, history.models)
    running = History(world, history)
    running.run()
    world.sql("insert into lake.<table> select * from lake.<table> limit 1", "plain")
    with pytest.raises(DifferenceError, match="plain: 1 rows too many, 0 missing of 2"):
        running.models["plain"].same()


@pytest.mark.slow
def test_a_seed_and_an_index_give_one_history() -> None:
    plans = [plan(1, number, 6) for number in range(60)]
    assert plans == [plan(1, number, 6) for number in range(60)]
    assert {step.operation for history in plans for step in history.steps} == set(OPERATIONS)
    assert {model for history in plans for model in history.models} == set(MODELS)


def test_columns_that_are_null_and_the_order_of_rows_do_not_count() -> None:
    assert content([{"a": 1, "b": None}, {"a": 2.5}]) == content([{"a": 2.5}, {"a": 1.0}])
