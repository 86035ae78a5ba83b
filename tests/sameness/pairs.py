"""Random pairs: a query, and the same after some edits."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.sameness.edits import edited
from tests.sameness.engine_says import Pair
from tests.sameness.queries import query

# Pairs of one query, so that Spark is asked about it once.
_EDITS = 5


def pairs(seed: int, first: int = 0) -> Iterator[Pair]:
    """Random pairs, always the same for a seed."""
    number = first
    while True:
        made = query(seed, number)
        for edit in range(_EDITS):
            chance = random.Random(f"edit {seed}/{number}/{edit}")
            yield Pair(made.sql, edited(chance, made.sql), made.streams)
        number += 1
