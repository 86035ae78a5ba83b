"""The random queries: one number makes one, always the same.

About two in three are correct; the others hold a deliberate mistake. One of eight is a pipe.
"""

from __future__ import annotations

import random

from tests.analyser.expressions import Chance
from tests.analyser.grammar import statement
from tests.analyser.piped import piped

_PIPES = 8


def query(seed: int, number: int) -> str:
    """The query of a number."""
    chance = Chance(random.Random(f"{seed}/{number}"))
    roll = chance.random.random()
    chance.faults = 0 if roll < 0.45 else 1 if roll < 0.9 else 2
    return piped(chance) if number % _PIPES == _PIPES - 1 else statement(chance)
