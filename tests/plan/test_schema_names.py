"""Which tables are beside another one, found by looking at each name once."""

from __future__ import annotations

import re

import pytest

from engine.plan.deployed.read_deployed import schema_names

NAMES = (
    "orders", "orders__g2", "orders__seed1_lake_main_a", "orders__quarantine", "orders__deleted", "orders__g2x",
    "orders_eu", "orders__eu", "orders__eu__g3", "a__g1__seed2_b__g4", "__g1", "x__", "_", "orders___g7",
)  # fmt: skip
OWNERS = ("orders", "orders_eu", "orders__eu", "orders_", "a", "a__g1", "a__g1__seed2_b", "", "x", "nothing")


@pytest.mark.parametrize("owner", OWNERS)
def test_what_is_beside_a_table_is_what_its_own_pattern_finds(owner: str) -> None:
    pattern = re.compile(rf"{re.escape(owner)}__(g\d+|seed\d+_\w+)")
    expected = sorted(found[1] for name in NAMES if (found := pattern.fullmatch(name)))
    assert sorted(schema_names(NAMES).beside(owner)) == expected


def test_something_is_found() -> None:
    found = schema_names(NAMES)
    assert found.beside("orders") == ("g2", "seed1_lake_main_a")
    assert found.beside("a__g1__seed2_b") == ("g4",)
    assert found.tables == frozenset(NAMES)
