"""A slice of the kills; `python -m tests.kills` makes as many as one likes."""

from __future__ import annotations

import pytest

from tests.kills.check import differences
from tests.kills.loop import kill_again_and_again
from tests.kills.project import make
from tests.lab import Lab

pytestmark = pytest.mark.nightly

KILLS = 2


@pytest.mark.spark
def test_builds_that_are_killed_give_the_tables_of_an_undisturbed_one(lab: Lab) -> None:
    # The builds that are killed are processes of their own, the others run in the shared session.
    other = Lab(lab.root / "undisturbed", lab.session, lab.capsys)
    example = make(lab, days=2)
    example.land(6)
    assert kill_again_and_again(example, KILLS, seed=3, tell=print).kills == KILLS
    assert differences(example, other, Lab.build) == []
