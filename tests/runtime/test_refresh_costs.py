"""When the inputs of a batch table are compared, by what it took before."""

from __future__ import annotations

import pytest

from engine.runtime.batch.comparison_costs import after_comparison, after_full, why_not_compared


@pytest.mark.parametrize(
    ("full", "compared", "tries"),
    [
        (10.0, 1.0, [0, 1, 2, 3, 4]),
        (10.0, 1.1, [0, 3, 8, 17, 26]),
        (0.5, 0.4, [0, 3, 8, 17, 26]),
    ],
    ids=["cheap", "dear", "small"],
)
def test_comparisons_in_vain_become_rare(full: float, compared: float, tries: list[int]) -> None:
    costs: dict[str, float] = after_full({}, full, None)
    found = []
    for build in range(27):
        tried = not why_not_compared(costs)
        found += [build] if tried else []
        costs = after_full(costs, full, compared if tried else None)
    assert found[:5] == tries


def test_a_comparison_that_helped_makes_the_next_one_worth_it() -> None:
    costs = after_full(after_full({}, 1.0, None), 1.0, 0.8)
    assert why_not_compared(costs) == (
        "the last comparison took 0.8 s, computing all 1.0 s, and rows had changed; 2 builds do without one"
    )
    assert why_not_compared({**costs, "since": 1.0}).endswith("; this build does without one")
    costs = after_comparison(costs)
    assert (costs, why_not_compared(costs)) == ({"full": 1.0}, "")
