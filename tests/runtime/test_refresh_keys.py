"""Batch tables of which the rows of affected keys are computed again."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from engine.runtime.batch import affected_keys, comparison_costs, refresh_table
from tests.lab import Lab
from tests.runtime.test_refresh_changes import event, same_as_full, shop

pytestmark = pytest.mark.spark

KINDS = "select kind, count(*) as n, sum(amount) as total from {{ ref('events') }} group by kind"
RANKED = "select id, kind, row_number() over (partition by kind order by id) as place from {{ ref('events') }}"
FORCED = "/*---\nrefresh: incremental\n---*/\n"


def test_rows_of_affected_keys_are_replaced_and_others_kept(lab: Lab) -> None:
    shop(lab)
    lab.model("by_kind", FORCED + KINDS)
    lab.model("ranked", FORCED + RANKED)
    lab.build()
    lab.land("b", [event(3, 7, "k9", 1.0, 11), event(5, 6, "k0", 4.0, 11), {**event(6, 8, "", 1.0, 11), "kind": None}])
    built = lab.build()
    # k3 and k0 lose or change a row, k1 loses one, k9 and NULL are new.
    assert built.model("by_kind")["note"].startswith("refreshed the rows of 5 keys, in ")
    assert built.model("ranked")["note"].startswith("refreshed the rows of ")
    same_as_full(lab, "by_kind", "ranked")


def test_rows_that_are_kept_come_from_the_files_and_are_not_computed(lab: Lab) -> None:
    """A value that the query would not give stays, as its key is not affected."""
    shop(lab)
    lab.model("by_kind", FORCED + KINDS)
    lab.build()
    real = affected_keys._kept

    def marked(*given: Any) -> Any:
        return real(*given).selectExpr("kind", "n", "total + 1000 as total")

    lab.land("b", [event(3, 7, "k9", 1.0, 11)])
    with patch.object(affected_keys, "_kept", marked):
        lab.build()
    totals = {row["kind"]: row["total"] for row in lab.rows("by_kind")}
    assert {kind: total > 999 for kind, total in totals.items()} == {
        "k0": True, "k1": True, "k2": True, "k3": False, "k4": True, "k9": False,
    }  # fmt: skip


@pytest.mark.nightly
def test_small_tables_are_computed_in_full_under_auto(lab: Lab) -> None:
    shop(lab)
    lab.model("by_kind", KINDS)
    lab.build()
    lab.land("b", [event(3, 7, "k9", 1.0, 11)])
    lab.build("-s", "events")
    assert "or all where that reads less" in lab.run("plan", "-s", "by_kind").text
    note = lab.build().model("by_kind")["note"]
    assert note == "computed in full: rows of 'events' changed, and it is small (56 rows with those that it reads)"
    with (
        patch.object(affected_keys, "_FEW_ROWS", 0),
        patch.object(affected_keys, "_MOST_READ", 10.0),
        patch.object(comparison_costs, "_PART", 1e9),
    ):
        lab.land("c", [event(4, 7, "k9", 1.0, 11)])
        assert lab.build().model("by_kind")["note"].startswith("refreshed the rows of 2 keys")
    same_as_full(lab, "by_kind")


@pytest.mark.nightly
def test_many_rows_that_were_compared_in_vain_are_not_compared_in_some_builds(lab: Lab) -> None:
    shop(lab)
    lab.model("by_kind", KINDS)
    lab.build()
    in_vain, since, notes = [], [], []
    with (
        patch.object(comparison_costs, "_PART", 0.0),
        patch.object(refresh_table, "_FEW_ROWS", 0),
        patch.object(refresh_table, "_MOST_READ", 10.0),
    ):
        for number in range(5):
            lab.land(f"more{number}", [event(10 + number, 7, "k9", 1.0, 11)])
            notes.append(lab.build().model("by_kind")["note"])
            costs = lab.model_json("by_kind")["costs"]
            in_vain.append(costs["in_vain"])
            since.append(costs["since"])
    assert (in_vain, since) == ([1, 1, 1, 2, 2], [0, 1, 2, 0, 1])
    assert ["do without one" in note or "does without one" in note for note in notes] == [
        False,
        True,
        True,
        False,
        True,
    ]
    same_as_full(lab, "by_kind")


def test_few_rows_are_compared_however_often_that_was_in_vain(lab: Lab) -> None:
    """A table is left as it is where no column that it reads changed, whatever the builds before took."""
    shop(lab)
    lab.model("by_kind", KINDS)
    lab.model("whole", "select count(*) as n, max(amount) as most from {{ ref('events') }}")
    lab.build()
    with patch.object(comparison_costs, "_PART", 0.0):
        for number in range(3):
            lab.land(f"more{number}", [event(10 + number, 7, "k9", 5.0, 11)])
            built = lab.build()
            assert "rows of 'events' changed, and it is small" in built.model("by_kind")["note"]
            reason = "computed in full: rows of 'events' changed, and an aggregate over all rows is not followed"
            assert built.model("whole")["note"] == reason
        before = lab.snapshot("by_kind"), lab.snapshot("whole")
        lab.land("unread", [event(10, 7, "k9", 5.0, 12)])
        built = lab.build()
    for name in ("by_kind", "whole"):
        assert built.model(name)["message"].startswith("no column that it reads changed")
    assert (lab.snapshot("by_kind"), lab.snapshot("whole")) == before
    same_as_full(lab, "by_kind", "whole")


@pytest.mark.nightly
def test_keys_that_are_spread_over_all_files_are_not_followed_under_auto(lab: Lab) -> None:
    shop(lab)
    lab.model("ranked", RANKED)
    lab.build()
    lab.land("b", [event(3, 7, "k9", 1.0, 11)])
    with patch.object(affected_keys, "_FEW_ROWS", 0):
        assert "by keys" in lab.build().model("ranked")["note"]
