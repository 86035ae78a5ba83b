"""What changed between two sets of facts, as a build notes it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.compile.nodes.facts import Facts
from engine.plan.changed_values import identity_changes, input_changes, query_changes, table_changes
from tests.plan.facts_by_hand import facts

SOURCE = {"format": "json", "options": {"multiline": "true"}, "schema": [["id", "int"]]}
INPUT = {"name": "shop.events", "stream": True, "dedup": ["id"], "source": SOURCE}


def inputs(**keys: Any) -> Facts:
    """Facts of a query that reads shop.events, with other keys of its source."""
    return facts(inputs=[{**INPUT, "source": {**SOURCE, **keys}}])


CASES = [
    ({}, []),
    ({"format": "csv"}, ["format of 'shop.events' changed from json to csv"]),
    ({"options": {"multiline": "false"}}, ["multiline of 'shop.events' changed from true to false"]),
    ({"options": {"multiline": "true", "sep": ";"}}, ["sep of 'shop.events' changed from nothing to ;"]),
    ({"options": {}}, ["multiline of 'shop.events' changed from true to nothing"]),
    ({"options": None}, ["multiline of 'shop.events' changed from true to nothing"]),
]


@pytest.mark.parametrize(("now", "changes"), CASES)
def test_each_setting_of_a_source_is_named_with_both_values(now: dict[str, Any], changes: list[str]) -> None:
    assert [*input_changes(inputs(), inputs(**now))] == changes


def test_how_an_input_is_read_counts_and_new_inputs_are_no_change() -> None:
    static = facts(inputs=[{**INPUT, "stream": False, "dedup": ["id", "kind"]}, {**INPUT, "name": "shop.pays"}])
    found = [*input_changes(facts(inputs=[INPUT]), static)]
    assert len(found) == 2
    assert found[0].startswith("the dedup of 'shop.events' changed from ")
    assert found[1] == "'shop.events' is now a static input"


def test_what_makes_another_table() -> None:
    old = facts(write={"unique_key": ["id"]}, output_mode="update")
    assert [*identity_changes(old, old)] == []
    (found,) = identity_changes(old, facts(write={"unique_key": ["id"]}, output_mode="append"))
    assert found == "'output_mode' changed from update to append"
    (found,) = identity_changes(old, facts(output_mode="update"))
    assert found.startswith("'unique_key' changed from id to ")
    assert [*table_changes(old.table, old.table)] == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, {"descending": True}, "from id to id desc"),
        ({"descending": True}, {}, "from id desc to id"),
        ({}, {"nulls_first": True}, "from id to id nulls first"),
        ({"descending": True, "nulls_first": False}, {}, "from id desc nulls last to id"),
    ],
)
def test_another_order_of_a_table_is_shown_as_it_is_written(
    before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    old, new = ({"sort_by": [{"column": "id", **keys}]} for keys in (before, after))
    (found,) = [*table_changes(old, new)]
    assert words in found


def test_lines_of_a_query_name_inputs_as_the_user_does() -> None:
    old = facts(sql="select id from `@source shop.events` where kind = 'x'")
    new = facts(sql="select id from `@ref paid` where kind = 'x'", inlined={"e": {"sql": "select 1 as id"}})
    assert query_changes(old, new) == (
        "- from {{ source('shop', 'events') }}",
        "+ from {{ ref('paid') }}",
        "ephemeral model 'e':",
        "+ select 1 as id",
    )
