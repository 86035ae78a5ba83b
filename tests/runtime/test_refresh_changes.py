"""Batch tables that are refreshed from the rows of their inputs that changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import pytest

from engine import kill_points
from engine.runtime.batch import changed_inputs
from tests.lab import Lab

pytestmark = pytest.mark.spark

DAYS = "select date_trunc('day', at) as day, kind, count(*) as n, sum(amount) as total from {{ ref('events') }} group by 1, kind"


def event(number: int, day: int, kind: str, amount: float, hour: int = 10) -> dict[str, Any]:
    return {"id": number, "at": f"2024-05-{day:02}T{hour:02}:00:00Z", "kind": kind, "amount": amount}


def shop(lab: Lab, version: int = 2) -> Lab:
    lab.model(
        "events",
        f"/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\nformat_version: {version}\n---*/\n"
        "select * from {{ source('shop', 'events') }}\n",
    )
    lab.model("days", f"/*---\npartition_by: [day(day)]\n---*/\n{DAYS}")
    lab.model(
        "kinds",
        "/*---\npartition_by: [kind]\n---*/\nselect kind, sum(amount) as total from {{ ref('events') }} group by kind",
    )
    lab.land("a", [event(i, 1 + i % 9, f"k{i % 5}", 1.0) for i in range(45)])
    return lab


def sorted_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


def same_as_full(lab: Lab, *names: str) -> None:
    refreshed = {name: sorted_rows(lab.rows(name)) for name in names}
    lab.build("-f", "-s", *names)
    assert refreshed == {name: sorted_rows(lab.rows(name)) for name in names}


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_affected_partitions_are_replaced_and_unread_columns_skip(lab: Lab, version: int) -> None:
    shop(lab, version).build()
    before = lab.snapshot("kinds")
    # Moves a row to another day and kind, and changes an amount.
    lab.land("b", [event(3, 7, "k9", 1.0, 11), event(5, 6, "k0", 4.0, 11)])
    shown = lab.run("plan", "-s", "days").text
    built = lab.build()
    assert built.model("days")["note"] == "refreshed 3 of 9 partitions"
    assert built.model("kinds")["note"] == "refreshed 3 of 6 partitions"
    assert lab.table("kinds").history[1].id == before  # type: ignore[union-attr]
    assert "engine.inputs" in lab.table("kinds").history[0].summary  # type: ignore[union-attr]
    assert "changed" in shown
    # Only the time changes, which kinds does not read; later nothing is left to compare.
    before = lab.snapshot("kinds")
    lab.land("c", [event(3, 7, "k9", 1.0, 12)])
    built = lab.build()
    assert built.model("kinds")["status"] == "unchanged"
    assert "no column that it reads changed" in built.model("kinds")["message"]
    assert lab.snapshot("kinds") == before
    assert lab.build().model("kinds")["message"] == "no new data"
    same_as_full(lab, "days", "kinds")


def test_columns_that_are_read_under_other_names_and_by_their_places(lab: Lab) -> None:
    shop(lab)
    lab.model("listed", "/*---\npartition_by: [p]\n---*/\nselect p, q from {{ ref('events') }} as x(n, q, p, r)\n")
    lab.model("named", "select identifier('ki' || 'nd') as a, count(*) as n from {{ ref('events') }} group by 1\n")
    lab.model(
        "pairs",
        "/*---\nstreams: [shop.events]\nunique_key: z\n---*/\n"
        "select id as z, cast(amount as int) as a, id % 3 as m from {{ source('shop', 'events') }}\n",
    )
    # The columns of * are in the order of the table: z, a, m.
    lab.model(
        "starred",
        "/*---\npartition_by: [a]\n---*/\nselect * from {{ ref('pairs') }}\nunion all\n"
        "select m, z, a from {{ ref('pairs') }}\n",
    )
    names = "listed", "named", "starred"
    lab.build("-s", *(f"+{name}" for name in names))
    lab.land("b", [event(3, 7, "k9", 7.0, 11)])
    built = lab.build("-s", *(f"+{name}" for name in names))
    reason = "computed in full: rows of 'events' changed, and a table with a list"
    assert built.model("listed")["note"].startswith(reason)
    assert built.model("named")["note"].startswith("computed in full: IDENTIFIER(..)")
    # 1 and 7, and 3 of the second branch.
    assert built.model("starred")["note"] == "refreshed 3 of 45 partitions"
    same_as_full(lab, *names)


def test_compaction_is_nothing_new_without_java(lab: Lab) -> None:
    shop(lab).build()
    lab.land("b", [event(100, 3, "k1", 1.0)])
    lab.build()
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(
        f"call lake.system.rewrite_data_files(table => '{lab.schema}.events', options => map('rewrite-all', 'true'))"
    )
    assert lab.table("events").history[0].operation == "replace"  # type: ignore[union-attr]
    planned = lab.run("plan", "-s", "days", "--output", "json").text
    assert "'events' changed" not in planned
    before = lab.model_json("days")["inputs"]
    built = lab.build("-s", "days")
    assert built.model("days")["status"] == "unchanged"
    assert lab.model_json("days")["inputs"] != before


@pytest.mark.nightly
@pytest.mark.parametrize("header", ["publish: on_tests_pass", "overwrite: partitions\npartition_by: [kind]"])
def test_compaction_of_an_input_is_nothing_new_however_the_table_is_written(lab: Lab, header: str) -> None:
    shop(lab)
    lab.model(
        "whole", f"/*---\n{header}\n---*/\nselect kind, count(*) as n from {{{{ ref('events') }}}} group by kind\n"
    )
    lab.build()
    lab.land("b", [event(100, 3, "k1", 1.0)])
    lab.build()
    before = lab.snapshot("whole")
    assert lab.run("maintain", "-s", "events").code == 0
    assert "unchanged  table" in lab.run("plan", "-s", "whole").text
    assert lab.build("-s", "whole").model("whole")["status"] == "unchanged"
    assert lab.snapshot("whole") == before
    lab.land("c", [event(101, 4, "k1", 1.0)])
    assert lab.build().model("whole")["status"] == "success"
    assert {row["kind"]: row["n"] for row in lab.rows("whole")}["k1"] == 11


@pytest.mark.nightly
@pytest.mark.parametrize("by", ["engine maintain", "somebody else"])
def test_compaction_of_a_batch_table_is_no_change_of_it(lab: Lab, by: str) -> None:
    shop(lab).build()
    lab.land("b", [event(100, 3, "k1", 1.0)])
    lab.build()
    spark, before = lab.session.spark, lab.snapshot("days")  # type: ignore[union-attr]
    if by == "engine maintain":
        assert lab.run("maintain", "-s", "days").code == 0
    else:
        options = "options => map('rewrite-all', 'true')"
        spark.sql(f"call lake.system.rewrite_data_files(table => '{lab.schema}.days', {options})")
    assert lab.snapshot("days") != before
    assert "unchanged  table" in lab.run("plan", "-s", "days").text
    assert lab.build("-s", "days").model("days")["status"] == "unchanged"
    lab.land("c", [event(101, 4, "k1", 1.0)])
    assert lab.build().model("days")["note"] == "refreshed 1 of 9 partitions"
    same_as_full(lab, "days")
    # Rows of another program are a change.
    spark.sql(f"delete from lake.{lab.schema}.days where kind = 'k1'")
    assert "its table is not as it was written" in lab.run("plan", "-s", "days").text


def test_what_is_not_proven_is_computed_in_full_and_said(lab: Lab) -> None:
    shop(lab)
    lab.model("whole", "select count(*) as n from {{ ref('events') }}")
    lab.build()
    lab.land("b", [event(100, 3, "k1", 1.0)])
    built = lab.build()
    assert built.model("whole")["note"] == "computed in full: rows of 'events' changed, and it has no 'partition_by'"
    # A start snapshot that somebody else expired.
    lab.land("c", [event(101, 3, "k1", 1.0)])
    lab.build("-s", "events")
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(
        f"call lake.system.expire_snapshots(table => '{lab.schema}.events', older_than => now(), retain_last => 1)"
    )
    built = lab.build()
    assert built.model("days")["note"].endswith("has expired")
    same_as_full(lab, "days", "whole")


def test_a_table_without_partitions_is_left_where_nothing_that_it_reads_changed(lab: Lab) -> None:
    shop(lab)
    lab.model("by_kind", "select kind, count(*) as n, sum(amount) as total from {{ ref('events') }} group by kind")
    lab.model("whole", "select count(*) as n, max(amount) as most from {{ ref('events') }}")
    names = "by_kind", "whole"
    lab.build()
    lab.land("read", [event(10, 7, "k9", 5.0, 11)])
    lab.build("-s", "events")
    assert "computed in full unless no row that it reads changed" in lab.run("plan", "-s", "by_kind").text
    built = lab.build()
    reason = "computed in full: rows of 'events' changed, and it has no 'partition_by'"
    assert [built.model(name)["note"] for name in names] == [reason] * 2
    before = [lab.snapshot(name) for name in names]
    lab.land("unread", [event(10, 7, "k9", 5.0, 12)])
    built = lab.build()
    assert all(built.model(name)["message"].startswith("no column that it reads changed") for name in names)
    assert [lab.snapshot(name) for name in names] == before
    # Many rows are compared only where they are few of all.
    with (
        patch.object(changed_inputs, "_FEW_ROWS", 0),
        patch.object(changed_inputs, "_MAX_READ_SHARE_WITHOUT_PARTITIONS", 0),
    ):
        lab.land("more", [event(10, 7, "k9", 5.0, 13)])
        built = lab.build("-s", "events", "by_kind")
    assert "rows are in files that changed, of" in built.model("by_kind")["note"]
    same_as_full(lab, *names)


def test_a_commit_of_others_during_a_build_makes_the_next_one_full(lab: Lab) -> None:
    shop(lab).build()
    lab.land("b", [event(100, 3, "k1", 1.0)])
    spark = lab.session.spark  # type: ignore[union-attr]
    done: list[str] = []

    def other(point: str, table: str, *_: object) -> None:
        if point == "replacing" and table == "days" and not done:
            done.append(point)
            spark.sql(f"insert into lake.{lab.schema}.events select 500, timestamp'2024-05-02 10:00:00', 'k1', 5.0D")

    end = kill_points.listen(other)
    lab.build("-f", "-s", "days")
    end()
    assert done
    assert lab.model_json("days")["pinned"] is False
    assert lab.build("-s", "days").model("days")["note"].startswith("computed in full: its last build")


def test_incremental_is_an_error_where_it_would_be_full(lab: Lab) -> None:
    shop(lab)
    lab.model("whole", "/*---\nrefresh: incremental\n---*/\nselect count(*) as n from {{ ref('events') }}")
    result = lab.run("build")
    assert result.code == 1
    assert "refresh-not-incremental" in result.codes()
    hints = [e["hint"] for e in result.events if e["event"] == "Diagnosed" and e["code"] == "refresh-not-incremental"]
    assert hints[0].startswith("Set partition_by to columns of its GROUP BY")
