"""Queries over tables that Spark accepts, and that it refuses: with the code that compile gives, or none.

They read `o(id string, ts timestamp, amount double, item struct<name, price>, tags array<string>)` and
`c(id string, at timestamp, url string)`. tests/compile/test_batch_queries.py asks both.
"""

from __future__ import annotations

ACCEPTED = """
select id, count(*) n from o group by id
select id, sum(amount) over (partition by id order by ts) s from o
select id, sum(sum(amount)) over (order by id) s from o group by id
select amount * 2 as d, d + row_number() over (order by ts) r, r + 1 q from o
select upper(id) as id, row_number() over (order by id) r from o
select amount * 2 as d, sum(x) over (order by ts) r from (select *, 1 as x from o) t
select amount * 2 as d, size(filter(collect_list(id) over (order by ts), d -> d > 'a')) n from o
select id, rank() over (order by count(*) desc) r from o group by id
select id, count(*) over () c, row_number() over (order by id) r from o group by id
select id, max(amount) m from o group by id having max(amount) > 1 and id <> 'x'
select id, max(amount) m from o group by id having m > 1
select max(amount) m from o having count(*) > 0
select id, amount from o order by ts
select id from o group by id order by max(ts)
select id as k, count(*) n from o group by k
select id as k, count(*) n from o group by 1 order by 2
select upper(id) u, count(*) n from o group by upper(id)
select upper(id) || 'x' u, count(*) n from o group by upper(id)
select upper(id) u, count(*) n from o group by u
select o.id, count(*) n from o group by id
select id, count(*) n from o group by o.id
select item.name, count(*) n from o group by item.name
select item.name, item.price, count(*) n from o group by item
select item, count(*) n from o group by all
select id, date_trunc('day', ts) d, count(*) n from o group by all
select id, 1 as one, 'a' b, current_timestamp() t, count(*) n from o group by id
select id, amount * 2 a2, count(*) n from o group by id, amount
select case when id = 'a' then 1 else 2 end c, count(*) n from o group by case when id = 'a' then 1 else 2 end
select case when id = 'a' then 1 else 2 end c, count(*) n from o group by 1
select id, grouping(id) g, count(*) n from o group by rollup(id)
select id, url, count(*) n from o join c using (id) group by grouping sets ((id), (url), ())
select id, first(amount) f, any_value(url) u from o left join c using (id) group by id
select id from o join c using (id)
select id, o.id a, c.id b from o join c using (id)
select id from o natural join c
select * from o natural join c
select o.*, c.url from o join c on o.id = c.id
select a.id from o a join o b on a.id = b.id
select id from o where exists (select 1 from c where c.id = o.id)
select id from o where exists (select 1 from c where id = o.id)
select id from o where id in (select id from c)
select id, (select max(at) from c where c.id = o.id) m from o
select id, (select max(at) from c) m, count(*) n from o group by id
select id from o where amount > (select avg(amount) from o)
select id, count(*) n from o where amount > (select avg(amount) from o) group by id
select t.id, t.n from (select id, count(*) n from o group by id) t join c on c.id = t.id
with a as (select id, count(*) n from o group by id) select a.id, n, url from a join c on a.id = c.id
select id, x from o lateral view explode(tags) t as x
select id, x, count(*) n from o lateral view explode(tags) t as x group by id, x
select id, explode(tags) as x from o
select id, t.x from o, lateral (select explode(tags) as x) t
select o.id, l.m from o, lateral (select max(at) m from c where c.id = o.id) l
select count(distinct id) n, count(distinct id, amount) m from o
select count(*) filter (where amount > 1) n from o
select id, collect_list(struct(ts, amount)) l from o group by id
select max_by(struct(id, amount), ts).id i from o
select id, max(struct(ts, amount)).amount a from o group by id
select id, percentile_cont(0.5) within group (order by amount) p from o group by id
select id, listagg(url, ',') within group (order by at) l from c group by id
select * from (select id, amount from o) pivot (sum(amount) for id in ('a', 'b'))
select * from (select id, amount, 1.0 as b from o) unpivot (v for k in (amount, b))
select id from o union all select id from c
select id, ts from o union select id, at from c order by 1
select id from o except select id from c
select id from o intersect select id from c
select distinct id from o order by id
select id, lag(amount) over w a, lead(amount) over w b from o window w as (partition by id order by ts)
select a.id, count(*) n from o a left semi join c on a.id = c.id group by a.id
select id, amount from o a left anti join c on a.id = c.id
select transform(tags, x -> x || id) t from o
select id, aggregate(tags, '', (acc, x) -> acc || x) s from o
select id, count(*) n from o group by id having count(*) > (select avg(n) from (select count(*) n from o group by id))
select window(ts, '1 hour') w, count(*) n from o group by 1
select window.start, count(*) n from o group by window(ts, '1 hour')
select session_window(ts, '5 minutes').start s, id, count(*) n from o group by session_window(ts, '5 minutes'), id
select id, sum(amount) / sum(sum(amount)) over () share from o group by id
select id, amount, avg(amount) over (partition by id rows between 3 preceding and current row) a from o
select coalesce(o.id, c.id) id, count(*) n from o full join c on o.id = c.id group by coalesce(o.id, c.id)
select coalesce(o.id, c.id) id, count(*) n from o full join c on o.id = c.id group by 1
select coalesce(o.id, c.id) as k, count(*) n from o full join c on o.id = c.id group by all
select id as ts, count(*) n from o group by id
select id as amount, sum(amount) s from o group by id
select count(*) n, id from o group by id order by n desc limit 5
select o.id, o.item.name nm from o order by o.item.price
select id from o sort by id
select id, amount a, a + 1 b from o
select id, count(*) n, n * 2 m from o group by id
select * from values (1, 'a'), (2, 'b') as t(x, y)
select x, count(*) from values (1, 'a'), (2, 'b') as t(x, y) group by x
select if(count(*) > 1, max(id), 'x') v from o
select o.id, sum(case when c.url is null then 1 else 0 end) n from o left join c on c.id = o.id group by o.id
select id, count(*) as `the count` from o group by id having `the count` > 1
select year(ts) y, month(ts) m, count(*) n from o group by year(ts), month(ts) order by y, m
select year(ts) + 1 y, count(*) n from o group by year(ts)
select to_date(ts) d, count(*) n from o group by to_date(ts) having to_date(ts) > date '2024-01-01'
select map_keys(m)[0] k, count(*) n from (select map('a', id) m from o) group by map_keys(m)[0]
select id, approx_count_distinct(url) n from c group by id
select id, mode(url) n, median(1) m from c group by id
select id, exists(tags, x -> x = id) e from o
with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select n from r
select id, count(*) n from o group by id, id
select t.n, count(*) c from (select count(*) n from o group by id) t group by t.n
select n, count(*) c from (select count(*) n from o group by id) group by n
select (select max(id) from o) as a, (select min(id) from o) b
select id, count(*) n from o tablesample (10 percent) group by id
select * except (amount) from o
select id, struct(count(*) as n, max(ts) as t) s from o group by id
select grouping__id g, id, count(*) n from o group by id with rollup
from o |> where id = 'a' |> aggregate count(*) as n group by id
table o |> where id = 'a' |> drop ts, tags |> drop item
from o |> set amount = amount + 1, id = upper(id) |> order by amount desc |> limit 5 |> offset 1
from o |> extend amount * 2 as twice |> set twice = twice + 1 |> select id, twice
from o |> limit 5 |> aggregate sum(amount) as total, count(*) as n group by id, date(ts) as day |> where n > 1
from o x |> where amount > 1 |> right join c on x.id = c.id |> where c.url is not null |> select x.id, c.url
from o |> select id |> union all select id from c |> except values ('a') |> as u |> select u.id
from o |> as o1 |> join o o2 on o1.id = o2.id |> where o1.amount > 1 or o2.amount > 1 |> where o1.ts > o2.ts
from o |> select id, amount, ts |> aggregate max(amount) as m group by 1, 3
from o |> select id, sum(amount) over w as s window w as (partition by id) order by id limit 3
from o |> tablesample (10 percent) |> select o.id
table c
values (1, 'a'), (2, 'b') |> where col1 > 1 |> select col1 as id
values (1, 'a'), (2, 'b')
with t as (select id, ts from o) table t |> drop ts
select id from o where id in (table c |> select id)
select id from o union all (table c |> select id) union select id from (values ('x') |> select col1 as id)
select count(table) n, max(table.a) m from (select struct(1 as a) as table)
select id, row_number() over (partition by id order by max(ts)) r from o group by id
select distinct id, count(*) over (partition by id) n from o
select day('2024-01-01') d, id || 1 x, amount * '2' y, 1 + '2' z from o
select id from o where ts > '2024-01-01' and amount in ('1', 2) and id = 1
select id from o where not id and (amount > 1 or id)
select case when amount > 1 then 1 when amount is null then '2' end c from o
select coalesce(amount, id) a, nvl(ts, '2024-01-01') t, if(amount > 1, ts, null) i from o
select ts - '2024-01-01' a, ts - ts b, ts + interval 1 day c, date(ts) + 1 d, interval 2 hours * 2 e from o
select sum(id) s, avg(id) a, max(tags) m, max(item) i from o
select tags || array('x') t, concat(tags, array(id)) u, tags[0] v, element_at(tags, 1) w, item['name'] x from o
select cast(ts as double) a, cast(tags as string) b, cast(item as string) c, amount::int d, cast(null as array<int>) e from o
select distinct id as k from o order by k
select distinct id, amount from o order by amount + 1
select distinct o.id from o order by o.id
select distinct item from o order by item.name
select distinct id from o order by rand()
with a as (select id from o), b as (select id from a) select 1 as x
select id, row_number() over w n from o window w as (order by ts)
select id from o where amount between '1' and 2 or ts between '2024-01-01' and current_timestamp()
select id from o where exists(tags, x -> x = 'a') and array_contains(tags, id)
select date_trunc('day', ts) a, year(id) b, datediff(ts, id) c, date_format(id, 'yyyy') d, unix_timestamp(ts) e from o
select /*+ broadcast(c) */ o.id from o join c on o.id = c.id
select /*+ BROADCASTJOIN(d), repartition(3) */ o.id from o join c d on o.id = d.id
select /*+ shuffle_hash(c), merge(o) */ o.id from o join c on o.id = c.id
select id from o where id like any ('a', 'b') or id like all ('a', 'b')
select from_utc_timestamp(ts, 'UTC') a, to_utc_timestamp(ts, 'UTC') b from o
with a as (select 1 x), A as (select 2 x) select x from a
select id, 'a\u200bb' as `x\u200b` from o
select c.id, o.id oid from c left join o on o.id = c.id and o.amount > 1 where o.id is null
""".strip().splitlines()

# The mark » stands where the fault is.
REFUSED = [
    ("agg-not-grouped", "select »id, count(*) n from o"),
    ("agg-not-grouped", "select id, »amount, count(*) n from o group by id"),
    ("agg-not-grouped", "select o.id, »c.url, count(*) n from o join c on o.id = c.id group by o.id"),
    ("agg-not-grouped", "select id, sum(»amount) over () s, count(*) n from o group by id"),
    ("agg-alias-key", "select id, count(*) n, »n * 2 m from o group by all"),
    ("ambiguous-column", "select »id from o join c on o.id = c.id"),
    ("ambiguous-column", "select a.id from o a join c b on »id = b.id"),
    ("ambiguous-column", "select »q.id from (select o.id, c.id from o join c on o.id = c.id) q"),
    ("ambiguous-column", "from o join c on o.id = c.id |> as q |> select »q.id"),
    ("ambiguous-column", "select * except (»id) from o join c on o.id = c.id"),
    ("ambiguous-column", "from o join c on o.id = c.id |> set »id = 1 |> select url"),
    ("sql-syntax", "select id, »ts + interval 1 day + 1 as t from o"),
    ("sql-syntax", "select id, ts + interval »'1' as t from o"),
    ("misplaced-expression", "select id from o where »count(*) > 1 group by id"),
    ("misplaced-expression", "select id from o where »row_number() over (order by ts) = 1"),
    ("misplaced-expression", "select amount * 2 as d, row_number() over (order by »d) r from o"),
    ("misplaced-expression", "select amount * 2 as d, 1 + sum(abs(»d)) over (partition by id) r from o"),
    ("misplaced-expression", "select amount * 2 as d, row_number() over w r from o window w as (order by »d)"),
    ("misplaced-expression", "select id k, sum(amount) s, rank() over (order by »s) r from o group by id"),
    ("misplaced-expression", "select named_struct('a', amount) as d, sum(»d.a) over (partition by id) r from o"),
    ("misplaced-expression", "select o.id from o join c on o.id = »max(c.id)"),
    ("misplaced-expression", "select id, count(*) n from o group by id, upper(»max(id))"),
    ("misplaced-expression", "select id from o group by id having »count(*) over () > 1"),
    ("misplaced-expression", "select sum(»count(*)) from o group by id"),
    ("unknown-function", "select »cont(*) n from o"),
    ("unknown-function", "select id from o where length(»lowr(id)) > 1"),
    ("union-columns", "select id from o union all select »id, url from c"),
    ("union-columns", "select id, ts from o except select »id from c"),
    ("sql-syntax", "select distinct on (»id) id from o"),
    ("unknown-column", "select id.»x from o"),
    ("unknown-column", "select tags.»x from o"),
    ("unknown-column", "select item.price.»x from o"),
    ("unknown-column", "select id from o where »a > 1"),
    ("unknown-column", "select amount a from o where »a > 1"),
    ("unknown-column", "select * except (»x) from o"),
    ("duplicate-name", "»select id, upper(id) as ID from o"),
    ("agg-not-grouped", "select id, (select »count(*) from c where c.id = o.id) m from o group by id"),
    ("subquery-place", "select o.id from o join c on o.id = c.id and (select »max(id) from c where c.id = o.id) > 'a'"),
    ("subquery-place", "select explode(array((select »max(id) from c where c.id = o.id))) as e from o"),
    ("subquery-place", "select transform(tags, t -> t || (select »max(id) from c)) as e from o"),
    ("type-mismatch", "select »amount + tags x from o"),
    ("type-mismatch", "select upper(»tags) x from o"),
    ("type-mismatch", "select id from o where »amount"),
    ("type-mismatch", "select id from o where »id"),
    ("type-mismatch", "select o.id from o join c on »o.tags"),
    ("type-mismatch", "select case when »amount then 1 end c from o"),
    ("type-mismatch", "select if(»id, 1, 2) c from o"),
    ("type-mismatch", "select count(*) filter (where »amount) n from o"),
    ("type-mismatch", "select id from o where amount > 1 and »amount"),
    ("type-mismatch", "select id from o where »ts > 1"),
    ("type-mismatch", "select id from o where »tags = 'x'"),
    ("type-mismatch", "select id from o where »ts in (1, 2)"),
    ("type-mismatch", "select id from o where »ts between 1 and 2"),
    ("type-mismatch", "select »ts + 1 x from o"),
    ("type-mismatch", "select »tags || id x from o"),
    ("type-mismatch", "select year(»amount) y from o"),
    ("type-mismatch", "select sum(»ts > '2024-01-01') s from o"),
    ("type-mismatch", "select coalesce(amount, »tags) x from o"),
    ("type-mismatch", "select case when amount > 1 then ts else »amount end x from o"),
    ("type-mismatch", "select »greatest(id, amount) x from o"),
    ("type-mismatch", "select cast(»tags as int) x from o"),
    ("type-mismatch", "select cast(»id as array<int>) x from o"),
    ("type-mismatch", "select id from o union all select »tags from o"),
    ("type-mismatch", "select tags[»id] x from o"),
    ("type-mismatch", "select array_contains(tags, »1) x from o"),
    ("type-mismatch", "select transform(tags, x -> »x + tags) x from o"),
    ("type-mismatch", "select distinct id, »map(id, 1) m from o"),
    ("type-mismatch", "select id from o order by »map(id, 1)"),
    ("misplaced-expression", "select distinct id from o order by »amount"),
    ("misplaced-expression", "select distinct upper(id) as u from o order by upper(»id)"),
    ("misplaced-expression", "select distinct id from o group by id order by »count(*)"),
    ("misplaced-expression", "select id from o order by »5"),
    ("misplaced-expression", "select count(*) n from o group by »3"),
    ("misplaced-expression", "select id from o limit »amount"),
    ("misplaced-expression", "select id, »row_number() over (partition by id) n from o"),
    ("unknown-column", "with a as (select »nope from o) select id from o"),
    ("unknown-column", "with a as (select id from o), b as (select »nope from a) select id from a"),
    ("unknown-function", "select * from »read_files('x')"),
    ("sql-syntax", "select »ts at time zone 'UTC' x from o"),
    ("sql-syntax", "select id from o where »id between symmetric 'a' and 'b'"),
    ("sql-syntax", "select id from o where id > all (select »id from c)"),
    ("sql-syntax", "select id from o where id = any (select »id from c)"),
    ("sql-syntax", "select »* replace (1 as id) from o"),
    ("sql-syntax", "with a as (select 1 x), »a as (select 2 x) select x from a"),
    ("sql-syntax", "select id»\u200b from o"),
    ("unknown-column", "select »main.o.id from o"),
    ("agg-not-grouped", "select »window_time(window) t, count(*) n from o group by window(ts, '1 hour')"),
    ("agg-not-grouped", "select id, count(*) from o group by id order by »amount"),
    # What compile does not find out; a build does, before it writes.
]

# What Spark takes and then fails at.
FAILING = [
    (
        "subquery-over-union",
        "select id, (select »count(*) from c where c.id = u.id) m from (select id from o union all select id from o) u",
    ),
]
