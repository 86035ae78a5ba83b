"""What is found in queries of a kind that the oracle has few of; whether Spark runs them was asked of 4.1.4."""

from __future__ import annotations

import pytest

from engine.compile.streaming.check_query import check_text
from tests.fuzz.relations import RELATIONS, relation

JOINED = "(select wa.id, wa.v from wa join wb on wa.id = wb.id) j"
BOUNDED = "select wa.id, wb.v from wa join wb on wa.id = wb.id"
OUTER = "select wa.id, wb.v from wa left join wb on wa.id = wb.id"
AFTER = "y.ts between x.ts and x.ts + interval 5 minutes"


def found(sql: str, mode: str = "append") -> list[str]:
    return [finding.code for finding in check_text(sql, RELATIONS, mode)]  # type: ignore[arg-type]


def errors(sql: str, mode: str = "append") -> list[str]:
    return [finding.code for finding in check_text(sql, RELATIONS, mode) if finding.is_error]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "grows"),
    [
        ("select window(ts, '10 minutes') w, collect_set(id) c from wa group by window(ts, '10 minutes')", False),
        (
            "select window(ts, '10 minutes') w, v, collect_list(id) c from wa group by window(ts, '10 minutes'), v",
            False,
        ),
        ("select ts, collect_set(id) c from wa group by ts", True),
        ("select ts, v + 1 x, collect_list(id) c from wa group by ts, v + 1", True),
    ],
)
def test_collected_values_grow_unless_a_window_ends_their_group(sql: str, grows: bool) -> None:
    assert found(sql) == (["unbounded-collection"] if grows else [])


@pytest.mark.parametrize(
    "bound",
    [
        "wa.ts <= wa.ts + interval 1 hour",
        "wb.ts <= wb.ts",
        "cast(wb.ts as long) <= cast(wa.ts as long) + wa.v",
        "cast(wb.ts as long) - cast(wb.ts as long) <= cast(wa.ts as long)",
    ],
)
def test_a_condition_that_compares_no_times_of_both_sides_is_no_bound(bound: str) -> None:
    assert set(found(f"{OUTER} and {bound}")) & {"join-outer-condition", "join-unmatched-rows"}


@pytest.mark.parametrize(
    ("bounds", "never"),
    [
        ("wb.ts >= wa.ts + interval 10 minutes and wb.ts <= wa.ts + interval 5 minutes", True),
        ("wb.ts >= wa.ts + interval 10 minutes and wb.ts >= wa.ts and wb.ts <= wa.ts + interval 5 minutes", True),
        ("wb.ts >= wa.ts and wb.ts >= wa.ts + interval 10 minutes and wb.ts <= wa.ts + interval 5 minutes", True),
        ("wb.ts >= wa.ts and wb.ts >= wa.ts + interval 5 minutes and wb.ts <= wa.ts + interval 10 minutes", False),
        ("wb.ts >= wa.ts and wb.ts <= wa.ts", False),
        ("wb.ts > wa.ts and wb.ts <= wa.ts", True),
    ],
)
def test_bounds_that_no_pair_of_rows_can_meet_are_told(bounds: str, never: bool) -> None:
    assert ("join-never-matches" in found(f"{BOUNDED} and {bounds}")) is never


@pytest.mark.parametrize(
    ("sql", "rejected"),
    [
        (f"select j.id from ba cross join {JOINED} limit 5", True),
        (f"select j.id from {JOINED} cross join ba limit 5", True),
        (f"select j.id from ba cross join {JOINED} where j.v > 1 limit 5", True),
        (f"select j.id from ba cross join {JOINED} where j.v > ba.v limit 5", False),
    ],
)
def test_a_limit_that_spark_moves_onto_a_join_of_streams_is_rejected(sql: str, rejected: bool) -> None:
    assert ("limit-over-state" in errors(sql)) is rejected


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        # A CTE that is read twice is two relations, with columns of their own.
        ("with a as (select id, ts from wa) select x.id from a x join a y on x.id = y.id", []),
        (f"with a as (select id, ts from wa) select x.id from a x left join a y on x.id = y.id and {AFTER}", []),
        ("with a as (select count(*) n, ts from wa group by ts) select x.ts from a x join a y on x.ts = y.ts", []),
        ("with a as (select id, ts from wa), b as (select * from a) select b.id from b join a on a.id = b.id", []),
        # Of the columns of USING that one is seen whose rows are kept.
        ("select ts, count(*) n from wa left join ba using (ts) group by ts", []),
        ("select ts, count(*) n from ba right join wa using (ts) group by ts", []),
        ("with a(k) as (select id from wa) select k from a", []),
        ("with a(k) as (select id from wa) select id from a", ["unknown-column"]),
        ("with a(k, t) as (select id, ts from wa) select t, count(*) n from a group by t", []),
        ("select q.ts from (select ts, v, s from wa) q pivot (max(s) a for v in (1 x))", []),
        ("select q.ts from (select ts, v, s from wa) q pivot (max(s) a for v in (1 x)) p", ["unknown-column"]),
        # Names behind LATERAL VIEW.
        ("select x from wa lateral view explode(array(1)) t as x", []),
        ("select nope from wa lateral view explode(array(1)) t as x", ["unknown-column"]),
        ("select t.nope from wa lateral view explode(array(1)) t as x", ["unknown-column"]),
        ("select nope from (select * from wa lateral view explode(array(1)) t as x)", ["unknown-column"]),
        ("select window(ts, '1 month 1 day') w, count(*) n from wa group by 1", ["window-months"]),
    ],
)
def test_streams_with_names_of_their_own(sql: str, codes: list[str]) -> None:
    assert errors(sql) == codes


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        ("select count(*) n from ba group by upper(s) having upper(s) = 'A'", []),
        ("select count(*) n from ba group by upper(s) order by upper(s)", []),
        ("select count(*) n from ba group by upper(s) having s = 'A'", ["agg-not-grouped"]),
        ("select upper(s) u, count(*) n from ba group by s having upper(s) = 'A'", []),
        # An alias may be part of a key, and not stand for a key that uses one.
        ("select id + 1 as x, count(*) n from ba group by x, x + 1", []),
        ("select id + 1 as x, x + 1 as y, count(*) n from ba group by id, x + 1", []),
        ("select id + 1 as x, x + 1 as y, count(*) n from ba group by x, y", ["agg-alias-key"]),
        ("select id + 1 as x, x + 1 as y, count(*) n from ba group by all", ["agg-alias-key"]),
    ],
)
def test_groups_of_a_table(sql: str, codes: list[str]) -> None:
    assert [code for code in errors(sql) if code != "not-streaming"] == codes


@pytest.mark.parametrize(
    ("gap", "codes"),
    [
        ("if(id > 1, '5 minutes', '10 minutes')", []),
        ("if(id > 1, interval 5 minutes, '10 minutes')", ["window-length"]),
        ("if(id > 1, '5 minutes', interval 10 minutes)", ["window-length"]),
        ("case when id > 1 then interval 5 minutes end", ["window-length"]),
        ("case when id > 1 then '5 minutes' end", []),
        (
            "case when id > 1 then '5 minutes' when id > 0 then (interval 5 minutes) else '1 minute' end",
            ["window-length"],
        ),
    ],
)
def test_the_gap_of_a_session_is_a_text(gap: str, codes: list[str]) -> None:
    assert errors(f"select session_window(ts, {gap}) w, id, count(*) n from wa group by 1, 2") == codes


def test_a_fix_names_only_what_is_missing() -> None:
    columns = {"id": "int", "at": "timestamp"}
    relations = {
        "marked": relation(columns, "at"),
        "unmarked": relation(columns),
        "timeless": relation({"id": "int"}),
    }
    hints = {}
    for name in relations:
        (error,) = (
            f for f in check_text(f"select id, count(*) n from {name} group by id", relations, "append") if f.is_error
        )
        hints[name] = error.hint
    assert hints["marked"].startswith('Set windows: {hour: "tumbling(at, 1 hour)"} in the header')
    assert hints["unmarked"].startswith("Set streams: {")
    assert "tumbling(at, 1 hour)" in hints["unmarked"]
    assert hints["timeless"].startswith("Set streams: {")
