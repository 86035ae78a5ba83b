"""Unit tests that drive event time: a model's own query and writer over given rows, step by step."""

from engine.unit_tests.run_unit_test import UnitTests
from engine.unit_tests.temporary_lake import ThrowAway, throw_away

__all__ = ["ThrowAway", "UnitTests", "throw_away"]
