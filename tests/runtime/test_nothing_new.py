"""In a build where some models have work, only they cost something: the others are not given to Spark."""

from __future__ import annotations

import pytest

from tests.fault_injection.points import reached
from tests.lab import Lab, event

pytestmark = pytest.mark.spark

FROM_FILES = "/*---\nstreams: [shop.events]\n---*/\nselect id, amount from {{ source('shop', 'events') }}"
FROM_TABLE = "/*---\nstreams: [passed_on]\n---*/\nselect id, amount as price from {{ ref('passed_on') }}"


ALL = ("below", "edited", "passed_on")


def built(lab: Lab) -> tuple[dict[str, tuple[str, int]], list[str]]:
    """Status and rows of each model, and the models whose streams were begun."""
    with reached("resuming", lambda *_: None) as begun:
        result = lab.build()
    models = {name: result.model(name) for name in ALL}
    return {name: (model["status"], model["rows_in"]) for name, model in models.items()}, sorted(begun)


def test_a_model_without_work_is_not_started_beside_one_that_was_edited(lab: Lab) -> None:
    lab.model("passed_on", FROM_FILES)
    lab.model("below", FROM_TABLE)
    lab.model("edited", FROM_FILES)
    lab.land("a", [event(1), event(2)])
    assert built(lab) == (dict.fromkeys(ALL, ("success", 2)), [*ALL])
    snapshots = lab.snapshots()

    lab.model("edited", f"{FROM_FILES} where amount > 0")
    assert built(lab) == (dict.fromkeys(ALL, ("unchanged", 0)), ["edited"])
    assert lab.snapshots() == snapshots

    # News for all, then for the model below only: it was left out of the build before.
    lab.land("b", [event(3)])
    assert built(lab) == (dict.fromkeys(ALL, ("success", 1)), [*ALL])
    lab.land("c", [event(4), event(5)])
    lab.build("-s", "passed_on")
    expected = {"passed_on": ("unchanged", 0), "edited": ("success", 2), "below": ("success", 2)}
    assert built(lab) == (expected, ["below", "edited"])
    assert sorted(lab.ids("below")) == [1, 2, 3, 4, 5]
