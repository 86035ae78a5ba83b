"""A slice of the random histories of clones; `python -m tests.clones` runs as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clones.__main__ import run
from tests.clones.world import World
from tests.lab import Lab

pytestmark = pytest.mark.nightly


@pytest.mark.spark
@pytest.mark.parametrize("number", range(3))
def test_a_random_history_of_a_clone_leaves_the_rows_of_a_batch_computation(
    lab: Lab, tmp_path: Path, number: int
) -> None:
    run(2, number, 6, World.made(tmp_path / "world", lab.session, lab.capsys), print)
