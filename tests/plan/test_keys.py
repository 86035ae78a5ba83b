"""Edits of how a table that rows are merged into gets its keys and its sequence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from tests.lab import EVENTS
from tests.plan.test_plan import compare, manifest

FROM = "from {{ source('shop', 'events') }}"
KEYED = "/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\n---*/\n"
PLAIN = f"{KEYED}select id, at, kind {FROM}"
CTE = f"{KEYED}with e as (select id, at, kind {FROM}) select id, at, kind from e"
GROUPED = "/*---\nstreams: [shop.events]\noutput_mode: update\nunique_key: kind\n---*/\nselect kind, count(*) as n {} group by {}"

CHANGED = [
    (PLAIN, PLAIN.replace("select id", "select id + 1 as id"), "the key column 'id' changed from events.id to events.id + 1"),
    (PLAIN, PLAIN.replace("at,", "cast(at as date) as at,"), "the column of sequence_by 'at' changed from events.at to "),
    (PLAIN, PLAIN.replace("id, at", "id, coalesce(at, now()) as at"), "the column of sequence_by 'at' changed from events.at to "),
    (CTE, CTE.replace("(select id", "(select abs(id) as id"), "the key column 'id' changed from events.id to abs(events.id)"),
    (CTE, PLAIN.replace("select id", "select -id as id"), "the key column 'id' changed from events.id to "),
    # What is not proved is compared as it is written.
    (PLAIN.replace("kind ", "explode(array(kind)) as kind "), PLAIN.replace("select id", "select id * 2 as id").replace("kind ", "explode(array(kind)) as kind "),
     "the key column 'id' changed from id to id * 2"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "words"), CHANGED)
def test_another_key_or_sequence_makes_another_table(tmp_path: Path, before: str, after: str, words: str) -> None:
    action = compare(tmp_path, before, after)
    assert action.change is Change.KEY_CHANGED, action
    assert action.refusal is not None
    assert words in action.refusal.message
    assert "engine build -f -s m" in action.refusal.hint


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "words"), CHANGED)
def test_tables_of_before_are_compared_as_they_are_written(tmp_path: Path, before: str, after: str, words: str) -> None:
    old = manifest(tmp_path, before).model("m")
    facts = structs.replace(old.facts, keyed=None)
    new = manifest(tmp_path, after)
    action = compare_model(new, new.model("m"), LastWriter("older", facts))
    assert action.change is Change.KEY_CHANGED, action
    same = compare_model(replace(new, nodes={"model.m": old}), old, LastWriter("older", facts))
    assert same.change is Change.UNCHANGED


def test_keys_of_a_query_that_cannot_be_read_any_more_are_not_taken_for_the_same(tmp_path: Path) -> None:
    old = manifest(tmp_path, PLAIN).model("m")
    facts = structs.replace(old.facts, keyed=None, sql="select (id from")
    new = manifest(tmp_path, PLAIN.replace("select id", "select -id as id"))
    action = compare_model(new, new.model("m"), LastWriter("older", facts))
    assert action.change is Change.KEY_CHANGED, action
    assert action.refusal is not None
    assert "cannot be read any more" in action.refusal.message


UNTOUCHED = [
    (PLAIN, f"{PLAIN} where kind <> 'x'"),
    (PLAIN, PLAIN.replace("kind ", "upper(kind) as kind ")),
    (PLAIN, PLAIN.replace("select id", "select e.id as id").replace("') }}", "') }} e")),
    (PLAIN, CTE),
    (CTE, PLAIN.replace("kind ", "kind, amount ")),
]


@pytest.mark.parametrize(("before", "after"), UNTOUCHED)
def test_other_edits_of_a_keyed_table_build(tmp_path: Path, before: str, after: str) -> None:
    action = compare(tmp_path, before, after)
    assert action.refusal is None
    assert action.change is Change.FORWARD


def test_an_aggregate_whose_key_is_made_in_another_way_has_another_state(tmp_path: Path) -> None:
    before, after = (
        GROUPED.format(FROM, "kind"),
        GROUPED.format(FROM, "upper(kind)").replace("select kind", "select upper(kind) as kind"),
    )
    action = compare(tmp_path, before, after)
    assert (action.change, action.refusal is not None) == (Change.STATE_BREAKING, True)


BERLIN = EVENTS.replace("        schema:", "        timezone: Europe/Berlin\n        schema:")


@pytest.mark.slow
def test_another_time_zone_of_a_source_makes_another_keyed_table_and_is_noted_elsewhere(tmp_path: Path) -> None:
    keyed = compare(tmp_path, PLAIN, PLAIN, sources=BERLIN)
    assert keyed.change is Change.KEY_CHANGED
    assert keyed.refusal is not None
    assert "the time zone of 'shop.events' changed from UTC to Europe/Berlin" in keyed.refusal.message
    plain = f"/*---\nstreams: [shop.events]\n---*/\nselect id, at {FROM}"
    appended = compare(tmp_path, plain, plain, sources=BERLIN)
    assert appended.change is Change.FORWARD
    assert appended.reasons == (
        "the time zone of 'shop.events' changed from UTC to Europe/Berlin; this applies to new rows",
    )
