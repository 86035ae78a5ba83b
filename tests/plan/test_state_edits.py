"""Which edits of a query that keeps state build without asking, and which are rejected: the table, edit by edit.

What is accepted here was run with Spark in tests/runtime/test_state_edits.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import structs

from engine.compile.nodes.fingerprint import definition_hash
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from tests.plan import edit_rules
from tests.plan.edit_cases import (
    ADDITIVE,
    BREAKING,
    CHAIN,
    COUNTED,
    DEDUP,
    EVENTS,
    FORWARD,
    HELD,
    JOIN,
    SAME,
    SESSIONS,
    STATIC,
    UPDATED,
    E,
    P,
    compare,
    edited,
    manifest,
)
from tests.plan.edits_page import PAGE, page

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SAME)
def test_the_same_meaning_is_unchanged(tmp_path: Path, name: str) -> None:
    before, pairs = SAME[name]
    action = compare(tmp_path, before, edited(before, *pairs))
    assert (action.change, action.reasons, action.refusal) == (Change.UNCHANGED, (), None)


@pytest.mark.parametrize("name", FORWARD)
def test_what_leaves_the_state_as_it_is_builds_with_a_note(tmp_path: Path, name: str) -> None:
    before, pairs, words = FORWARD[name]
    action = compare(tmp_path, before, edited(before, *pairs))
    assert action.refusal is None, action.refusal
    assert words in " ".join(action.reasons)
    assert action.change is (Change.ADDITIVE if "no longer returns" in words else Change.FORWARD)


@pytest.mark.parametrize("name", ADDITIVE)
def test_new_columns_from_the_same_state_are_additive(tmp_path: Path, name: str) -> None:
    before, pairs, words = ADDITIVE[name]
    action = compare(tmp_path, before, edited(before, *pairs))
    assert (action.change, action.refusal) == (Change.ADDITIVE, None)
    assert words in " ".join(action.reasons)


@pytest.mark.parametrize("name", BREAKING)
def test_what_changes_the_state_is_rejected_with_before_and_after(tmp_path: Path, name: str) -> None:
    before, pairs, words = BREAKING[name]
    action = compare(tmp_path, before, edited(before, *pairs))
    assert action.change is Change.STATE_BREAKING
    assert action.refusal is not None
    assert action.refusal.code == "model-changed"
    assert words in action.refusal.message


def test_blanks_comments_and_letter_case_are_no_edit(tmp_path: Path) -> None:
    other = edited(
        COUNTED, ("count(*) as n, sum(amount)", "COUNT( * ) AS n, -- rows\n  SUM(`Amount`)"), ("group by", "GROUP  BY")
    )
    assert manifest(tmp_path, COUNTED).model("m").facts == manifest(tmp_path, other).model("m").facts


@pytest.mark.parametrize("text", [COUNTED, SESSIONS, DEDUP, CHAIN, UPDATED, JOIN, HELD])
def test_a_column_that_a_source_gains_is_no_part_of_a_query_that_does_not_read_it(tmp_path: Path, text: str) -> None:
    old, new = manifest(tmp_path, text).model("m"), manifest(tmp_path, text, EVENTS + ", more string").model("m")
    assert (old.fingerprint, definition_hash(old.facts)) == (new.fingerprint, definition_hash(new.facts))


@pytest.mark.parametrize("text", [COUNTED, SESSIONS, DEDUP, CHAIN, UPDATED, JOIN, HELD])
def test_columns_of_a_source_in_another_order_leave_a_reader_unchanged(tmp_path: Path, text: str) -> None:
    schema = "other timestamp, data struct<v:double>, kind string, amount double, id int, at timestamp"
    action = compare(tmp_path, text, text, schema=schema)
    # A join buffers the columns in the order in which its side has them.
    assert action.change is (Change.STATE_BREAKING if text == JOIN else Change.UNCHANGED)


def test_another_type_of_a_used_column_is_rejected(tmp_path: Path) -> None:
    action = compare(tmp_path, COUNTED, COUNTED, schema=EVENTS.replace("amount double", "amount float"))
    assert action.refusal is not None
    assert "column 'amount' of 'shop.events' changed from double to float" in action.refusal.message


def test_another_type_of_a_dedup_key_is_rejected(tmp_path: Path) -> None:
    other = edited(DEDUP, ("id, kind", "kind"))
    action = compare(tmp_path, other, other, schema=EVENTS.replace("id int", "id bigint"))
    assert action.refusal is not None
    assert "column 'id' of 'shop.events' changed from int to bigint" in action.refusal.message


def test_a_star_that_gains_a_column_is_rejected_where_a_join_buffers_it_and_additive_behind_a_dedup(
    tmp_path: Path,
) -> None:
    star = edited(JOIN, ("e.id, e.kind, p.sum", "e.*, p.sum"))
    action = compare(tmp_path, star, star, schema=EVENTS + ", more string")
    assert action.refusal is not None
    assert (
        "events.data to events.id, events.at, events.kind, events.amount, events.other, events.data, events.more"
        in (action.refusal.message)
    )
    named = edited(star, ("e.*", "e.id, e.at, e.kind, e.amount, e.other, e.data"))
    assert compare(tmp_path, star, named, schema=EVENTS + ", more string").change is Change.UNCHANGED
    dedup = edited(DEDUP, ("id, kind", "*"))
    assert compare(tmp_path, dedup, dedup, schema=EVENTS + ", more string").change is Change.ADDITIVE


def test_a_stream_joined_with_a_static_subquery_that_groups_keeps_no_state(tmp_path: Path) -> None:
    assert not manifest(tmp_path, STATIC).model("m").stateful
    assert compare(tmp_path, STATIC, edited(STATIC, ("max(rank)", "min(rank)"))).change is Change.FORWARD


def test_a_stream_joined_with_itself_keeps_state(tmp_path: Path) -> None:
    own = edited(JOIN, (f"join {P} p", f"join {E} p"), ("paid_at", "at"), ("p.sum", "p.amount"))
    own = own.replace(", shop.pays: {watermark: at delay 10 minutes}", "")
    assert manifest(tmp_path, own).model("m").stateful


def test_facts_of_an_earlier_version_are_compared_as_text(tmp_path: Path) -> None:
    old, new = manifest(tmp_path, COUNTED).model("m"), manifest(tmp_path, edited(COUNTED, ("n,", "n , ")))
    facts = structs.replace(old.facts, state=None)
    other = structs.replace(facts, sql="select 1")
    for facts_of, change in ((facts, Change.UNCHANGED), (other, Change.STATE_BREAKING)):
        found = compare_model(new, new.model("m"), LastWriter("before", facts_of))
        assert found.change is change


def test_earlier_facts_that_called_a_static_grouping_state_are_no_rejection(tmp_path: Path) -> None:
    old = manifest(tmp_path, STATIC).model("m").facts
    new = manifest(tmp_path, edited(STATIC, ("max(rank)", "min(rank)")))
    found = compare_model(new, new.model("m"), LastWriter("before", structs.replace(old, stateful=True)))
    assert found.change is Change.FORWARD


def test_the_page_of_edits_is_made_from_the_cases(tmp_path: Path) -> None:
    """ENGINE_WRITE_PAGES=1 writes it."""
    text = page(tmp_path)
    if os.environ.get("ENGINE_WRITE_PAGES"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


def test_the_table_of_edits_is_made_from_the_cases() -> None:
    """ENGINE_WRITE_PAGES=1 writes it."""
    text = edit_rules.PAGE.read_text()
    if os.environ.get("ENGINE_WRITE_PAGES"):
        edit_rules.PAGE.write_text(edit_rules.with_table(text))
        text = edit_rules.PAGE.read_text()
    assert edit_rules.with_table(text) == text


def test_each_case_belongs_to_one_row_of_the_table() -> None:
    named = [name for rule in edit_rules.RULES for name in rule.cases]
    assert sorted(named) == sorted([*SAME, *FORWARD, *ADDITIVE, *BREAKING])


def test_a_name_in_having_means_the_column_of_the_select_before_that_of_the_input(tmp_path: Path) -> None:
    before = edited(COUNTED, ("max(amount) as top", "max(amount) as amount"), ("count(*) > 1", "max(amount) > 1"))
    action = compare(tmp_path, before, edited(before, ("having max(amount) > 1", "having amount > 1")))
    assert (action.change, action.reasons, action.refusal) == (Change.UNCHANGED, (), None)
