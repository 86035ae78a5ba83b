"""A slice of the random histories of a topic, and of rows that wait for their tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.histories.history import History
from tests.histories.points import Points
from tests.histories.steps import plan
from tests.histories.world import World
from tests.lab import Lab
from tests.services.kafka import Broker


@pytest.fixture(autouse=True)
def _no_points_are_left() -> Iterator[None]:
    """Other tests share the process."""
    yield
    Points.removed()


@pytest.mark.nightly
@pytest.mark.spark
def test_a_random_history_of_a_topic_and_of_rows_that_wait_for_their_tests(lab: Lab, broker: Broker) -> None:
    history = plan(5, 2, 3, ("land", "bad", "accept", "kill"), names=("vetted", "shown", "fed", "polled"))
    assert history.models == ("vetted", "shown", "fed")
    History(World(lab, history.models, broker=broker.start()), history, tell=print).run()
