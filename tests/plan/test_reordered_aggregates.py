"""Aggregates whose order in a SELECT was edited: a state that holds them in the earlier order continues, or is kept from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.stateful.aggregate_order import reorderings
from engine.compile.stateful.stateful_steps import meaning_of_state
from engine.plan import Change
from tests.plan.edit_cases import E, compare, manifest

pytestmark = pytest.mark.slow

HEADER = "streams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n---\n"
FROM = f"from {E}"
GROUP = "group by hour, kind"


def moved(root: Path, sql: str, before: str = "count(*) as n, sum(amount) as s", after: str = "sum(amount) as s, count(*) as n") -> Change:  # fmt: skip
    """What becomes of a query in which two items of a SELECT change places."""
    return compare(root, HEADER + sql.replace("ITEMS", before), HEADER + sql.replace("ITEMS", after)).change


@pytest.mark.parametrize(
    "sql",
    [
        f"select hour.start as h, ITEMS {FROM} {GROUP}",
        f"select ITEMS, kind {FROM} {GROUP}",
        f"select hour.start as h, ITEMS, max(id) as top {FROM} {GROUP}",
        f"select kind, ITEMS {FROM} group by hour, 1",
        f"with counted as (select kind, ITEMS {FROM} {GROUP}) select n, s, kind from counted",
    ],
)
def test_items_that_nothing_names_by_their_place_may_move(tmp_path: Path, sql: str) -> None:
    assert moved(tmp_path, sql) is Change.UNCHANGED


@pytest.mark.parametrize(
    "sql",
    [
        f"select k, a, b from (select kind, ITEMS {FROM} {GROUP}) as counted(k, a, b)",
        f"with counted(k, a, b) as (select kind, ITEMS {FROM} {GROUP}) select k, a, b from counted",
        f"select kind, ITEMS, (select 1) as one {FROM} {GROUP}",
    ],
)
def test_items_that_something_may_name_by_their_place_stay(tmp_path: Path, sql: str) -> None:
    assert moved(tmp_path, sql) is not Change.UNCHANGED


def orders(root: Path, before: str, after: str) -> list[str]:
    """The texts to try over a state that began with another one; blanks count as one."""
    began, now = (manifest(root, HEADER + text).model("m") for text in (before, after))
    texts = reorderings(now.sql, meaning_of_state(began.facts.state), meaning_of_state(now.facts.state))
    return [" ".join(text.partition(" from (")[0].split()) for text in texts]


@pytest.mark.parametrize(
    ("items", "above"),
    [
        # The SELECT above may move or not: only Spark knows whether the group computes its items.
        ("{} as a, {} as b", ["select s as a, n as b", *["select n as b, s as a"] * 2]),
        ("*, {} as a, {} as b", ["select *, s as a, n as b"]),
    ],
)
def test_a_select_above_a_group_moves_as_well_unless_its_items_have_places(
    tmp_path: Path, items: str, above: list[str]
) -> None:
    def text(one: str, other: str) -> str:
        calls = {"n": "count(*) as n", "s": "sum(amount) as s"}
        inner = f"select kind, {calls[one]}, {calls[other]} {FROM} {GROUP}"
        return f"select {items.format(one, other)} from ({inner})"

    assert orders(tmp_path, text("n", "s"), text("s", "n")) == above
