"""The rules by which changed keys are found: random ones, those that are known to be needed, and what is not followed."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pytest

from engine.compile.refresh import changed_keys
from engine.compile.refresh.changed_keys import InputState, follow_changes
from engine.compile.refresh.query_block import NotFollowedError, TruncatedTime
from engine.compile.sql.read_names import names_by_strings, read_names, reads_places
from tests.fixtures import read_rows
from tests.refreshes.cases import cases
from tests.refreshes.queries import TABLES

FIXTURE = Path(__file__).with_name("queries.txt")


@pytest.mark.slow
def test_random_refreshes_leave_what_a_full_computation_gives() -> None:
    results = list(cases(seed=3, count=250))
    assert [one.fault for one in results if one.fault] == []
    assert sum(bool(one.kept) for one in results) > 50
    assert sum(one.unread for one in results) > 10


@pytest.mark.slow
def test_removed_rows_must_meet_the_other_inputs_as_they_were() -> None:
    careless = ((InputState.AFTER, InputState.REMOVED), (InputState.AFTER, InputState.ADDED))
    with patch.object(changed_keys, "_SIDES", careless):
        assert any(one.fault for one in cases(seed=3, count=2000))


def test_a_changed_outer_side_is_joined_as_an_inner_one_without_its_conditions() -> None:
    sql = "select a.k as k from orders as a left join items as b on a.k = b.k where b.v is null and a.g > 1"
    search = follow_changes(sql, TABLES).search(["k"], ["items"], lambda view, state: f"{view}_{state.value}")
    assert "INNER JOIN items_removed" in search
    assert "b.v" not in search
    assert "a.g > 1" in search


@pytest.mark.parametrize(("sql", "reason"), read_rows(FIXTURE, "not_followed", 2))
def test_what_is_not_followed(sql: str, reason: str) -> None:
    with pytest.raises(NotFollowedError, match=reason):
        follow_changes(sql, TABLES)


def test_columns_of_an_outer_side_and_aggregates_are_no_keys() -> None:
    sql = "select a.k as k, b.g as g, count(*) as n from orders a left join items b on a.k = b.k group by 1, 2"
    assert follow_changes(sql, TABLES).keys == ("k",)


@pytest.mark.parametrize(("sql", "names"), read_rows(FIXTURE, "names", 2))
def test_names_that_are_read(sql: str, names: str) -> None:
    found = read_names(sql)
    assert (found is not None and set(names.split(", ")) <= {*found}) if names else found is None


def test_what_may_be_the_place_of_a_row() -> None:
    assert reads_places("select _file from t")
    assert not reads_places("select k from t")
    assert names_by_strings("select IDENTIFIER ('_fi' || 'le') as f from t")
    assert not names_by_strings("select identifier, `identifier` from t")


def test_the_columns_of_a_star_are_in_the_order_of_the_table() -> None:
    tables = {"a": ("id", "k", "g", "v"), "b": ("id", "k", "g", "v")}
    query = follow_changes("select * from a union all select id, v, k, g from b", tables)
    assert query.branches[0].names == ("id", "k", "g", "v")
    assert query.search(["g"], ["b"], lambda view, state: f"{view}_{state.value}").startswith("SELECT k AS `g` FROM b_")


def test_the_columns_of_a_later_branch_have_places_and_no_names() -> None:
    query = follow_changes(
        "select k as a, v as b from orders union all select g as x, coalesce(k, 0) as x from items", TABLES
    )
    assert [query.search([key], ["items"], lambda view, _: view).split(" AS ")[0] for key in ("a", "b")] == [
        "SELECT g", "SELECT coalesce(k, 0)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    ["select s.*, k, a.* from a union all select k, v, k, v from b", "select s.* from a", "select elsewhere.* from a"],
)
def test_a_star_whose_columns_are_not_known_is_not_followed(sql: str) -> None:
    with pytest.raises(NotFollowedError, match="not known"):
        follow_changes(sql, {"a": ("s", "k"), "b": ("k", "v")})


@pytest.mark.parametrize(("sql", "keys"), read_rows(FIXTURE, "keys", 2))
def test_the_keys_of_a_query_however_it_is_written(sql: str, keys: str) -> None:
    assert set(follow_changes(sql, TABLES).keys) == set(keys.split(", "))


def test_a_part_is_the_text_of_its_own_place() -> None:
    """Units of times have no letter case, and texts have."""
    query = follow_changes("select if(k = 'Day', 1, 2) as a, if(k = 'day', 1, 2) as b from orders", TABLES)
    assert {name: key.text for name, key in query.branches[0].keys.items()} == {
        "a": "if(k = 'Day', 1, 2)",
        "b": "if(k = 'day', 1, 2)",
    }


TIMES = {"t": ("at", "made", "k"), "u": ("at", "made", "k")}


@pytest.mark.parametrize(
    ("value", "relation", "found"),
    [
        ("date_trunc('day', at)", "t", TruncatedTime("t", "at", "DAY")),
        ("date_trunc('MONTH', t.at)", "t", TruncatedTime("t", "at", "MONTH")),
        ("cast(a.at as date)", "t as a join u as b on a.k = b.k", TruncatedTime("t", "at", "DAY")),
        ("to_date(at)", "t", TruncatedTime("t", "at", "DAY")),
        ("at", "t", None),
        ("date_trunc('day', coalesce(at, made))", "t", None),
        ("to_date(at, 'yyyy')", "t", None),
        ("cast(at as string)", "t", None),
        # What the other side reads of the input must not be narrowed.
        ("date_trunc('day', a.at)", "t as a join t as b on a.k = b.k", None),
        ("date_trunc('day', a.at)", "t as a join (select * from t) as b on a.k = b.k", None),
        ("date_trunc('day', a.at)", "(select * from t) as a", None),
        ("date_trunc('day', b.at)", "t as a left join u as b on a.k = b.k", None),
    ],
)
def test_columns_that_are_a_time_cut_to_a_unit(value: str, relation: str, found: TruncatedTime | None) -> None:
    (block,) = follow_changes(f"select {value} as part, count(*) as n from {relation} group by {value}", TIMES).branches
    assert (block.keys["part"].cut if "part" in block.keys else None) == found


def test_the_keys_of_a_pipe_are_followed() -> None:
    classic = "select date_trunc('day', at) as day, k, count(*) as n from t where k > 1 group by 1, k"
    pipe = "from t |> where k > 1 |> aggregate count(*) as n group by date_trunc('day', at) as day, k"
    found = [follow_changes(sql, TIMES).branches[0] for sql in (classic, pipe)]
    assert found[0].keys.keys() == found[1].keys.keys() == {"day", "k"}
    assert [block.keys["day"].cut for block in found] == [TruncatedTime("t", "at", "DAY")] * 2


@pytest.mark.parametrize(
    "sql",
    [
        "select * from (select k, count(*) as n from orders group by k) as c where n > 1",
        "select * from (select k, sum(v) over (partition by k) as s from orders) where s > 1 order by k",
        "from orders |> aggregate count(*) as n group by k |> where n > 1",
        "from orders |> select distinct k |> where k is not null",
    ],
)
def test_a_filter_of_groups_is_followed(sql: str) -> None:
    assert follow_changes(sql, TABLES).keys == ("k",)


@pytest.mark.slow
def test_a_cut_is_in_the_partition_of_its_value_where_that_is_said() -> None:
    """Inputs are read only where the partitions lie that are computed again: a cut in another one would be lost."""
    cuts: dict[str, Callable[[datetime], datetime]] = {
        "SECOND": lambda at: at.replace(microsecond=0),
        "MINUTE": lambda at: at.replace(second=0, microsecond=0),
        "HOUR": lambda at: at.replace(minute=0, second=0, microsecond=0),
        "DAY": lambda at: at.replace(hour=0, minute=0, second=0, microsecond=0),
        "WEEK": lambda at: cuts["DAY"](at) - timedelta(days=at.weekday()),
        "MONTH": lambda at: cuts["DAY"](at).replace(day=1),
        "QUARTER": lambda at: cuts["MONTH"](at).replace(month=(at.month - 1) // 3 * 3 + 1),
        "YEAR": lambda at: cuts["MONTH"](at).replace(month=1),
    }
    length = {"hour": 13, "day": 10, "month": 7, "year": 4}
    chance = random.Random(5)
    times = [datetime(1960, 1, 1) + timedelta(seconds=chance.randrange(4_000_000_000)) for _ in range(20_000)]  # noqa: DTZ001 - UTC
    for (unit, cut), (transform, part) in product(cuts.items(), length.items()):
        together = all(cut(at).isoformat()[:part] == at.isoformat()[:part] for at in times)
        assert TruncatedTime("t", "at", unit).cut_within(transform) == together, (unit, transform)
    assert not TruncatedTime("t", "at", "DAY").cut_within("bucket")
