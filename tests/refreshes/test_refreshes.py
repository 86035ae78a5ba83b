"""The rules by which changed keys are found: random ones, those that are known to be needed, and what is not followed."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from unittest.mock import patch

import pytest

from engine.compile.refresh import changed_keys
from engine.compile.refresh.changed_keys import InputState, follow
from engine.compile.refresh.query_block import NotFollowedError
from engine.compile.refresh.read_names import read_names
from engine.compile.refresh.truncated_times import TruncatedTime, truncated
from tests.refreshes.cases import TABLES, cases


def test_random_refreshes_leave_what_a_full_computation_gives() -> None:
    results = list(cases(seed=3, count=250))
    assert [one.fault for one in results if one.fault] == []
    assert sum(bool(one.kept) for one in results) > 50


def test_removed_rows_must_meet_the_other_inputs_as_they_were() -> None:
    careless = ((InputState.AFTER, InputState.REMOVED), (InputState.AFTER, InputState.ADDED))
    with patch.object(changed_keys, "_SIDES", careless):
        assert any(one.fault for one in cases(seed=3, count=2000))


def test_a_changed_outer_side_is_joined_as_an_inner_one_without_its_conditions() -> None:
    sql = "select a.k as k from orders as a left join items as b on a.k = b.k where b.v is null and a.g > 1"
    search = follow(sql, TABLES).search(["k"], ["items"], lambda view, state: f"{view}_{state.value}")
    assert "INNER JOIN items_removed" in search
    assert "b.v" not in search
    assert "a.g > 1" in search


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select count(*) as n from orders", "an aggregate over all rows"),
        ("select k from orders group by rollup(k)", "ROLLUP"),
        ("select k, count(*) n from orders group by k with rollup", "ROLLUP"),
        ("select k, count(*) n from orders group by grouping sets ((k), ())", "GROUPING SETS"),
        ("select k from orders limit 3", "LIMIT"),
        ("select a.k from orders a full join items b on a.k = b.k", "FULL JOIN"),
        ("select a.k from orders a right join items b on a.k = b.k", "RIGHT JOIN"),
        ("select a.k from orders a left semi join items b on a.k = b.k", "JOIN"),
        ("select k from orders join items using (k)", "USING"),
        ("select k from orders union select k from items", "UNION"),
        ("select k from orders except select k from items", "EXCEPT"),
        ("select k from orders where k in (select k from items)", "subquery"),
        ("select k, (select max(v) from items) as m from orders", "subquery"),
        ("select k, explode(array(1, 2)) as e from orders", "several rows"),
        ("select k, sum(v) over (order by v) as s from orders", "PARTITION BY"),
        ("select k, sum(v) over (partition by k) s, sum(v) over (partition by g) u from orders", "PARTITION BY"),
        ("select k, sum(sum(v)) over (partition by k) as s from orders group by k", "window over an aggregate"),
        ("select k from (select k, count(*) as n from orders group by k) as c", "inside a CTE or subquery"),
        ("select * from (select k, count(*) as n from orders group by k) where n > 1 limit 3", "LIMIT"),
        ("select *, n + 1 as m from (select k, count(*) as n from orders group by k)", "inside a CTE or subquery"),
        ("select * from (select k, count(*) as n from orders group by k) where n > (select 1)", "subquery in an expression"),
        ("with recursive c as (select k from orders) select k from c", "recursive"),
        ("select a.k from orders a left join items b on a.k = b.k join kinds c on c.k = b.k", "inner joins first|inner join by"),
        ("select k from elsewhere", "not known"),
        ("select k from orders a, items b", "not known"),
    ],
)  # fmt: skip
def test_what_is_not_followed(sql: str, reason: str) -> None:
    with pytest.raises(NotFollowedError, match=reason):
        follow(sql, TABLES)


def test_columns_of_an_outer_side_and_aggregates_are_no_keys() -> None:
    sql = "select a.k as k, b.g as g, count(*) as n from orders a left join items b on a.k = b.k group by 1, 2"
    assert follow(sql, TABLES).keys == ("k",)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select K, count(*) from t group by k", {"k"}),
        ("select t.`odd name`.f from t", {"odd name", "f"}),
        ("select * from t", None),
        ("select struct(t.*) from t", None),
        ("select a from t natural join u", None),
        ("select count(distinct *) from t", None),
    ],
)
def test_names_that_are_read(sql: str, names: set[str] | None) -> None:
    found = read_names(sql)
    assert found is None if names is None else found is not None and names <= found


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
    (block,) = follow(f"select {value} as part, count(*) as n from {relation} group by {value}", TIMES).branches
    assert truncated(block, "part") == found


def test_the_keys_of_a_pipe_are_followed() -> None:
    classic = "select date_trunc('day', at) as day, k, count(*) as n from t where k > 1 group by 1, k"
    pipe = "from t |> where k > 1 |> aggregate count(*) as n group by date_trunc('day', at) as day, k"
    found = [follow(sql, TIMES).branches[0] for sql in (classic, pipe)]
    assert found[0].keys.keys() == found[1].keys.keys() == {"day", "k"}
    assert [truncated(block, "day") for block in found] == [TruncatedTime("t", "at", "DAY")] * 2


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
    assert follow(sql, TABLES).keys == ("k",)


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
