"""A short seed of `python -m tests.sinks`, and a kill at each point of a delivery."""

from __future__ import annotations

import pytest

from tests.sinks.random_history import POINTS, killed, run


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_target_of_a_random_history_is_the_table(seed, tmp_path, database):
    run(tmp_path, database, seed, 14, kills=False)


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_delivery_loses_and_doubles_nothing(point, delivery):
    for number in range(4):
        delivery.append((number, f"n{number}"), (number + 10, None))
    assert killed(delivery, point, 2, 1)
    assert len(delivery.delivered()) < 8
    delivery.deliver()
    assert delivery.delivered() == delivery.stored()
