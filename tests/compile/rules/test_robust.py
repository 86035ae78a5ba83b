"""SQL of every shape is lowered: what the checker does not know is no fault, and never a crash."""

from __future__ import annotations

import pytest

from engine.compile.streaming import MODES, check_text
from tests.fuzz.relations import RELATIONS

STATEMENTS = [
    "select 1",
    "select * from values (1, 2), (3, 4) as t(a, b) join wa on wa.id = a",
    "select id from wa join range(10) r on r.id = wa.v",
    "select wa.id, col1 from wa, (values (1), (2)) x",
    "from wa select id, v where id > 1",
    "(select id from wa)",
    "((select id from wa) union all (select id from wb)) limit 3",
    "with a as (select * from wa), b as (with c as (select * from a) select * from c) select * from b",
    "with a as (with a as (select * from wa) select * from a) select * from a",
    "select * from wa w1, wa w2 where w1.id = w2.id and w1.ts = w2.ts",
    "select * from (wa join ba on wa.id = ba.id)",
    "select * from (select * from wa) join (select * from ba) using (id)",
    "select t.* from wa t where t.ts > current_timestamp() - interval 1 day",
    "select * except (v), v as w from wa",
    "select count(*), sum(v) filter (where id > 1) from wa group by ts, grouping sets ((ts), ())",
    "select ts, id, count(*) from wa group by ts, cube (id, s)",
    "select ts, id, count(*) from wa group by rollup (ts, (id, s))",
    "select transform(array(1, 2), x -> x + id), filter(array(id), (x, i) -> x > i) from wa",
    "select aggregate(array(1, 2), 0, (acc, x) -> acc + x) from wa",
    "select map('a', id)['a'], array(id)[0], named_struct('a', id).a, struct(id, v).v from wa",
    "select s::int, cast(s as decimal(10, 2)), try_cast(s as date), date '2020-01-01' from wa",
    "select case when id > 1 then 'a' else 'b' end, if(id > 1, 1, 2), nvl(id, 0), id is distinct from v from wa",
    "select * from wa where (id, v) in (select id, v from ba) and s rlike 'a.*' and s not like 'b%'",
    "select * from wa where id between 1 and 2 or not exists (select 1 from ba where ba.id = wa.id)",
    "select extract(day from ts), timestampadd(MINUTE, 5, ts), date_add(ts, 1), datediff(DAY, ts, ts) from wa",
    "select s, k, x from wa lateral view outer json_tuple(s, 'a', 'b') j as k, x lateral view posexplode(array(1)) p as i, y",
    "select inline(array(struct(1, 2))) from wa",
    "select stack(2, id, v) as (n) from wa",
    "select * from wa tablesample (bucket 1 out of 4 on id) t",
    "select * from wa tablesample (10 percent) repeatable (3)",
    "select * from ba timestamp as of '2020-01-01' b join wa on b.id = wa.id",
    "select * from ba version as of 3 join wa using (id)",
    "select /*+ repartition(3), broadcast(ba) */ wa.id from wa join ba on wa.id = ba.id",
    "select sum(v) over w from wa window w as (partition by id order by ts rows between 1 preceding and current row)",
    "select percentile_cont(0.5) within group (order by v), listagg(s, ',') within group (order by s) from wa group by ts",
    "select window(ts, '5 minutes', '1 minute').start, count(*) from wa group by window(ts, '5 minutes', '1 minute')",
    "select `ts`, `s` as `a b` from `wa`",
    "select id as `a.b` from wa order by `a.b`",
    "select max(struct(v, id)).id from wa group by window(ts, '1 hour')",
    "select to_json(struct(*)) from wa",
    "select hash(*), count(*) from wa group by ts, hash(id)",
    "select id from wa where ts = (select max(ts) from ba) having id > 1",
    "select distinct on_id from (select id as on_id, ts from wa)",
    "select all id from wa union distinct select id from wb",
    "select * from wa pivot (sum(v) as a, max(v) as b for (id, s) in ((1, 'a') as x, (2, 'b') as y))",
    "select * from wa unpivot include nulls ((a, b) for n in ((id, v) as x))",
    "select unknown_function(id, ts) as u, count(*) from wa group by all",
    "select raise_error('x'), session_user(), current_catalog(), current_date, user from wa",
    "select wa.ts, nested.a.b.c from wa join unknown_table nested on nested.id = wa.id",
    "select transform(id, ts) using 'cat' from wa",
    "select * from wa, lateral explode(array(1, 2)) as e(x)",
    "select * from wa left join lateral (select max(v) as m from ba where ba.id = wa.id) on true",
    "select * from wa cross join ba tablesample (5 rows)",
    "select * from wa semi join ba using (id)",
    "select * from wa anti join wb on wa.id = wb.id",
    "select * from a.b.c.wa",
    "select * from wa where ts >= timestamp'2020-01-01' and ts < '2021-01-01' and v % 2 = 0",
    "select -id, +v, ~id, id | v, id & v, id || s, not (id > 1), id <> v, id div 2 from wa",
    "table wa",
    "describe wa",
    "merge into ba using wa on ba.id = wa.id when matched then delete",
    "explain select * from wa",
    "select * from wa;",
    "select * from wa; select * from wb",
    "select",
    "select * from wa where",
    "select ( from wa",
    "select 'open from wa",
    "select * from wa watermark",
    "select * from stream",
    "select * from stream (",
    "select * from wa watermark delay of interval 5 minutes",
    "select * from wa watermark ts delay of 5 minutes",
    "select * from wa watermark ts delay of interval",
    "select * from wa join wb watermark ts.a delay of interval 1 hour on wa.id = wb.id",
    "",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_breaks_the_checker(statement: str) -> None:
    for mode in MODES:
        for finding in check_text(statement, RELATIONS, mode):
            assert finding.message
            assert 0 <= finding.offset <= len(statement)


def test_deep_nesting_is_a_finding() -> None:
    sql = "select " + "(" * 500 + "id" + ")" * 500 + " from wa"
    assert [f.code for f in check_text(sql, RELATIONS, "append")] == ["sql-too-deep"]


@pytest.mark.slow
def test_long_chains_of_operators_and_joins_are_no_fault() -> None:
    sums = " + ".join(["id"] * 500)
    assert not [f for f in check_text(f"select {sums} as n from sa", RELATIONS, "append") if f.is_error]
    ands = " and ".join(f"v > {n}" for n in range(500))
    assert not [f for f in check_text(f"select id from sa where {ands}", RELATIONS, "append") if f.is_error]
