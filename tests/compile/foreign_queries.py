"""What other databases write, and what Spark's grammar and analyser say of it (asked of 4.1).

The relations are those of tests/compile/batch_queries.py. The mark » stands where the fault is.
"""

from __future__ import annotations

ACCEPTED = r"""
select 1 as tags, count(*) n from o group by tags having tags[0] > 'a' order by tags[0]
select mask('AbCD123', upperChar => 'Q') x from o
select explode(collection => array(id)) x from o
select coalesce(*) x from (select id from o)
select array(*) x from (select id, amount from o)
select id in (*) x from (select id, amount from o)
select sum(*) x from (select amount from o)
select array(1) as id, count(*) n from o group by id order by id[0]
select listagg(id) over (order by ts) x from o
select id, max(amount) m from o group by id having max(amount) > 1 order by max(amount)
select id from o group by id having id > 'a' order by max(amount)
select count(*) n from o group by amount + 1, upper(id) having 1 + amount > 2
select count(*) n from o group by amount + 1 order by 1 + amount
select count(*) n, amount < 1 x from o group by 1 > amount
select max(amount) m, 3 as k from o group by amount % k
select o.id as ts, count(*) n from o join c on o.id = c.id group by o.id having ts > 'a'
select struct(1 as a) as id, count(*) n from o group by id having id.a > 0 order by id.a
select 3 as x from (select amount as x, ts as x from o) order by x
select id, count(*) n from o group by id having exists (select 1 from c where max(o.id) = c.id)
select mode() within group (order by amount) filter (where id > 'a') x from o
select first_value(amount, false) over (order by ts) x, last_value(id, false) over (order by ts) y from o
with recursive t(n) max recursion level 100 as (select 1 union all select n + 1 from t where n < 60) select n from t
with a as (select id from o), b as (select id from a) select * from b where id in (select id from a)
select date '2024-02-29' a, date '2024' b, timestamp '2024-01-01T10:00:00Z' c, timestamp '2024-01-01 1:2:3.5 Europe/Berlin' d from o
select datediff('2024-01-01', ts) a, timestampadd(month, 1, ts) b, date_add('2024-01-01', 3) c from o
select make_timestamp(date(ts)) x from o
select width_bucket(interval 1 day, interval 0 day, interval 10 day, 10) x, width_bucket(amount, 0, 10, 5) y from o
select median(amount) over (partition by id) x from o
select aggregate(tags, (0 as n, 'a' as s), (acc, x) -> (acc.n + 1, x), acc -> acc.n) x from o
select kll_sketch_get_n_double(kll_sketch_agg_double(amount)) x from o
select parse_json(id):a.b[0]::string x, parse_json(id):`c d` y, parse_json(id):['e']::int z from o
select all, id from (select id as all, id from o)
select * from o, lateral (select o.*) t(a, b, c, d, e)
select o.id, t.a from o, lateral (select c.id as a, o.amount as b from c) t
select * except (o.id) from o
from o |> order by id |> select id |> union all (select id from c)
select cast(id as dec) x from o
select cast(id as numeric) x from o
select cast(id as character(3)) x from o
select cast(id as interval) x from o
select cast(null as array<interval day to second>) x from o
select cast(null as struct<text: int, a string>) x from o
select cast(null as struct<text int not null>) x from o
select cast(null as array<string collate utf8_lcase>) x from o
select cast(null as map<string, array<int>>) x from o
select id::string || 'a' x from o
select id::timestamp from o
select count(*) n, ts::date d from o group by ts::date with rollup
select array[0] from (select array(1) as array)
select share from (select 1 as share)
select x.offset from (select 1 as offset) x limit 1
select `offset` from (select 1 as offset) union all select 2
select x.offset from (select 1 as offset) x order by x.offset desc limit 1
select format, text from (select 1 as format, 2 as text)
select id as text from o
select (select id as text from o limit 1) x
select id as format from o
select isnull(id) x, isnotnull(id) y from o
select id from (select id from o order by id limit 1) union all select id from c
select id from o where id in (select id from c order by id) union all select id from c
select id from o union all (select id from c order by id limit 1) order by id
select id, row_number() over (partition by id order by ts) n from o union all select id, 1 from c
select listagg(id, ',') within group (order by id) x from o union all select id from c
select id from o where exists (select 1 from c limit 1) union all select id from c
select id from o where id like ('a')
select id from o where id not like ('a')
select id from o where id in (('a'))
select * except (id), id from o
select first_value(amount, true) over (order by ts) x from o
select any_value(amount, true) x from o
select sum(amount) over w s, avg(amount) over w a from o window w as (partition by id), v as (order by ts)
select id, max(x.w) from (select id, row_number() over w as w from o window w as (order by ts)) x group by id
select count(*) n from o group by all
select id, count(*) n from o group by id having n > 1 and id = 'a' order by n, id
select id, count(*) n from o group by id having o.id = 'a'
select x.id, count(*) n from o x group by x.id order by x.id
select id i, count(*) n from o group by id order by upper(i)
select id i, count(*) n from o group by id having upper(i) = 'A'
select upper(id) u, count(*) n from o group by 1 order by upper(id)
select item.name, count(*) n from o group by item.name order by item.name
select item.name nm, count(*) n from o group by item.name having item.name = 'x'
select date(ts) d, count(*) n from o group by date(ts) order by date(ts), n desc
select date(ts) d, count(*) n from o group by d order by date(ts)
select date(ts) d, count(*) n from o group by d having date(ts) > '2024-01-01'
select o.id, c.url, count(*) n from o join c using (id) group by o.id, c.url order by id
select id, count(*) n from o join c using (id) group by id order by o.id
select id, count(*) n from o group by id order by count(distinct amount)
select id, count(*) n from o group by id order by sum(amount) / count(*)
select id, count(*) n from o group by id order by case when id = 'a' then 0 else max(amount) end
select id, count(*) n from o group by id order by -count(*), 'x', 1 + 1
select count(*) n from o order by n
select count(*) n from o order by current_date()
select id from o group by id order by id
select distinct id from o group by id order by id
select id, sum(amount) over (partition by id) s from o order by ts
select id, e from o lateral view explode(tags) as e group by id, e order by e
select id, e, count(*) n from o lateral view explode(tags) as e group by id, e having e = 'x'
select count(*) n, explode(array(1, 2)) e from o
select id, explode(collect_list(amount)) e from o group by id order by id
select explode(array(1,2)) as e, id from o order by e
select explode(array(1,2)), upper(id) u from o where exists(tags, x -> x = 'a')
select inline(array(struct(1 as a, 2 as b))) from o order by a
select t.* from o, lateral explode(tags) t
select x.* from (select item from o) x
select max(explode(tags)) over () x from o
select sum(x) s from (select rand() as x from o)
select sum(rand()) over () x from o
select count(current_timestamp()) x from o
select percentile(amount, 0.25 + 0.25) x from o
select lag(amount, cast(1 as int)) over (order by ts) x from o
select round(amount, length('ab')) x from o
select ntile(1 + 1) over (order by ts) x from o
select x from o join lateral (select id as x) t on x = 'a'
select x from o left join lateral (select max(url) as x from c where c.id = o.id) t
select x, y from o, lateral (select id as x) t, lateral (select t.x as y) u
select o.id from o join lateral explode(tags)
select e from o join lateral explode(o.tags) as t(e)
select e from o cross join explode(array(1)) as t(e)
select e from o, explode(array(1)) as t(e)
select date_part('year', ts) x from o
select extract(dow_iso from ts) x from o
select date_part('dow_iso', ts) x from o
select extract(qtr from ts) x from o
select date_part('qtr', ts) x from o
select extract(secs from ts) x from o
select date_part('secs', ts) x from o
select id from o limit 2 offset 1
select id from o where id regexp 'a'
select id from o where id rlike 'a'
select * except (id) from o
select try_cast(id as int) x from o
select id::int x from o
select id from o tablesample (10 percent)
select id from o tablesample (10 rows)
select id from o tablesample (10 percent) repeatable (1)
select x from o join lateral explode(tags) as t(x)
select x from o cross join lateral explode(tags) as t(x)
select id, row_number() over (w) n from o window w as (partition by id order by ts)
select id, sum(amount) over (order by ts range between interval 1 day preceding and current row) n from o
select id from o where id ilike 'a%'
select id from o where id not ilike 'a%'
select id from o where (id, amount) in (('a', 1.0D))
select id from o where (id, amount) = ('a', 1.0D)
select id from o where id is distinct from 'a'
select id from o where id is not distinct from 'a'
select id from o where id == 'a'
select id from o where id != 'a'
select id from o where id <=> 'a'
select id from o where not id = 'a'
select id from o where !(id = 'a')
select id || 'a' x from o
select 'a' 'b' x from o
select "a" x from o
select date '2024-01-01' x from o
select timestamp '2024-01-01' x from o
select time '10:00:00' x from o
select interval '1' day x from o
select interval '1 day' x from o
select interval 1 day x from o
select interval '1 day 2 hours' x from o
select now() x from o
select current_timestamp x from o
select current_time x from o
select array(1, 2)[0] x from o
select tags[-1] x from o
select x'1F' x from o
select r'a\n' x from o
select 1e3 x from o
select 1.5d x from o
select 10L x from o
select 1Y x from o
select 1.5BD x from o
select .5 x from o
select 5. x from o
select id from o where id between 'a' and 'b'
select case id when 'a' then 1 else 2 end x from o
select decode(id, 'a', 1, 2) x from o
select nvl2(id, 1, 2) x from o
select if(id = 'a', 1, 2) x from o
select count(distinct *) x from o
select count(distinct(id)) x from o
select count(all id) x from o
select count(id, amount) x from o
select sum(distinct amount) x from o
select listagg(id, ',') within group (order by id) x from o
select first(amount ignore nulls) x from o
select first(amount) ignore nulls x from o
select first_value(amount) ignore nulls over (order by ts) x from o
select lag(amount, 1) ignore nulls over (order by ts) x from o
select lag(amount, 1) respect nulls over (order by ts) x from o
select * from o natural left join c
select * from o left outer join c on o.id = c.id
select o.* from o left semi join c on o.id = c.id
select o.* from o semi join c on o.id = c.id
select o.* from o left anti join c on o.id = c.id
select o.* from o anti join c on o.id = c.id
select o.id from o cross join c
select o.id from o cross join c on o.id = c.id
select o.id from o join c
select o.id from o left join c
select o.id from o full join c
select o.id from o inner join c using (id)
select id from o group by id order by id nulls last
select id from o order by id asc nulls first
select id from o order by all
select id, count(*) n from o group by grouping sets (id, ())
select id from o union select id from c
select id from o union distinct select id from c
select id from o minus select id from c
select id from o except all select id from c
select id from o except distinct select id from c
select id from o intersect all select id from c
(select id from o) union all (select id from c)
(select id from o limit 1) union all (select id from c limit 1)
select id from o union all select id from c order by id limit 1
from o
from o select id
select * from (values (1, 2)) as t(a, b)
select * from values (1, 2) as t(a, b)
with t as (values (1)) select * from t
with t(a) as (select id from o) select a from t
with recursive t as (select 1 as n union all select n+1 from t where n < 3) select n from t
select a from o as x (a, b, c, d, e)
select all id from o
select id from o lateral view explode(tags) t
select id, e from o lateral view explode(tags) t as e
select id, e from o lateral view outer explode(tags) t as e
select id, e from o lateral view explode(tags) as e
select id, a, b from o lateral view posexplode(tags) t as a, b
select * from o unpivot include nulls (v for k in (amount))
select position('a' in id) x from o
select position('a', id) x from o
select substring(id from 1 for 2) x from o
select substring(id, 1, 2) x from o
select trim(both 'x' from id) x from o
select trim(leading from id) x from o
select ltrim('x', id) x from o
select ltrim(id, 'x') x from o
select overlay(id placing 'x' from 1 for 2) x from o
select extract(year from ts) x from o
select extract(dow from ts) x from o
select datediff(day, ts, ts) x from o
select dateadd(day, 1, ts) x from o
select date_add(day, 1, ts) x from o
select timestampadd(day, 1, ts) x from o
select timestampdiff(day, ts, ts) x from o
select cast(id as varchar(10)) x from o
select cast(id as integer) x from o
select cast(id as bigint) x from o
select cast(id as numeric(10,2)) x from o
select cast(id as real) x from o
select cast(id as timestamp without time zone) x from o
select cast(id as byte) x from o
select cast(id as long) x from o
select cast(id as short) x from o
select id collate utf8_lcase x from o
select * from range(10)
select * from explode(array(1,2))
select * from lateral explode(array(1,2))
select * from o, lateral (select 1 as x)
select * from o left join lateral (select 1 as x) on true
select * from o left join lateral (select 1 as x) t on t.x > 1
select * from o join lateral (select o.amount as x) t on t.x > 1
select * from o left join lateral (select o.amount as x) t on t.x > o.amount
select * from o left join lateral explode(tags) as t(x) on x > 'a'
select * from o join lateral explode(tags) as t(x) on x > 'a'
select * from o join lateral explode(tags)
select * from o join lateral explode(tags) t
select * from lateral (select 1 as x) t
select * from o, lateral explode_outer(tags) as t(x)
select * from o left join lateral posexplode(tags) as t(p, x) on true
select * from o inner join lateral (select c.url from c where c.id = o.id) t
select * from o left join lateral (select c.url from c where c.id = o.id limit 1) t
select * from o left join lateral (select c.url from c where c.at < o.ts) t
select * from o left join lateral (select c.url from c where c.at < o.ts order by c.at desc limit 1) t
select * from o left join lateral (select max(c.url) u from c where c.at < o.ts) t
select * from o, lateral (select x from explode(o.tags) as e(x))
select id from o where exists (select 1 from c where c.id = o.id and c.at > o.ts)
select id from o where id in ('a', null)
select id from o where id like 'a' escape '/'
select id from o where id like all ('a', 'b')
select id from o where id not like any ('a', 'b')
select id from o where contains(id, 'a')
select id, count(*) n from o group by id order by max(amount)
select id, count(*) n from o group by id order by n, upper(id)
select id as k, count(*) n from o group by k order by id
select id as k, count(*) n from o group by id order by k
select upper(id) u, count(*) n from o group by upper(id) order by upper(id)
select upper(id) u, count(*) n from o group by u having upper(id) = 'a'
select count(*) n from o order by max(id)
select id, item.name, count(*) n from o group by id, item order by item.price
select id, count(*) n from o group by id order by (select max(url) from c)
select id, count(*) n from o group by rollup(id) order by grouping(id)
select id, count(*) n from o group by rollup(id) having grouping(id) = 0
select id, count(*) n from o group by id order by first(amount)
select window.start, count(*) n from o group by window(ts, '1 hour') order by window.start
select window.start, count(*) n from o group by window(ts, '1 hour') order by window.end
select window(ts, '1 hour') w, count(*) n from o group by window(ts, '1 hour') order by window
select window(ts, '1 hour') w, count(*) n from o group by window(ts, '1 hour') having window.start > '2024-01-01'
select id, count(*) n from o group by id order by transform(array(1), x -> x + 1)
select id, count(*) as amount from o group by id order by amount
select id, count(*) as amount from o group by id having amount > 1
select id, sum(amount) as amount from o group by id having amount > 1
select id from o group by 1 having id = 'a' order by 1
select map(id, 1) m, count(*) n from o group by 1
select id from o -- c
select /* c */ id from o
select id from o;
select count(*) over () n from o
select count(*) over w n from o window w as ()
select id from o limit all
select id from o limit 1 + 1
select id from o tablesample (bucket 1 out of 5)
select id from o group by id having true
select id from o order by 1 + 1
select id as x, x || 'a' y from o
select id as x, count(*) n from o group by x having x = 'a'
select struct(*) s from o
select struct(o.*) s from o
select item.* from o
select explode(tags), explode(tags) from o
select explode(collect_list(id)) x from o
select id, explode(collect_list(amount)) x from o group by id
select explode(tags) x from o order by x
select explode(tags) x from o limit 1
select distinct explode(tags) x from o
select inline(array(struct(1 as a, 2 as b))) from o
select inline(array(struct(1 as a, 2 as b))) as (x, y) from o
select posexplode(tags) as (x, y) from o
select explode(map('a', 1)) as (x, y) from o
select stack(2, 1, 2) as x from o
select id from o where rand() > 0.5
select id, rand() r from o group by id
select id, count(*) n from o group by id, rand()
select row_number() over (order by rand()) x from o
select id from o order by rand()
""".strip().splitlines()

_REFUSED = r"""
misplaced-expression | select id from o group by id having max(amount) > 1 order by »max(amount)
misplaced-expression | select id, count(*) n from o group by id having max(ts) > '2024' order by n, »min(amount)
type-mismatch | select array(1) as id, count(*) n from o group by id having »id[0] > 1
undeclared-relation | select * from »identifier('s').tab
undeclared-relation | with a as (select * from »b), b as (select 1 as x) select * from a
undeclared-relation | with a as (select * from »a) select * from o
sql-syntax | select date »'2024-02-30' x from o
sql-syntax | select timestamp »'2024-01-01 25:00:00' x from o
sql-syntax | select date »'mar 11 2016' x from o
sql-syntax | select datediff(»'YEAR', ts, ts) x from o
sql-syntax | select timestampadd(»'MONTH', 1, ts) x from o
unknown-function | select hour(»make_time(1, 2, 3)) x from o
misplaced-expression | select »median(amount) over (partition by id order by ts) x from o
misplaced-expression | select »percentile_cont(0.5) within group (order by amount) over w x from o window w as (order by ts)
agg-not-grouped | select »amount + 2 x, count(*) n from o group by amount + 1
agg-not-grouped | select upper(»id) x, count(*) n from o group by lower(id)
type-mismatch | select get(»id, 0) x from o
type-mismatch | select make_timestamp(»ts, 1) x from o
type-mismatch | select »parse_json(id)['a'] x from o
type-mismatch | select »id:a x from o
sql-syntax | select cast(id as double »precision) x from o
sql-syntax | select id from o limit 2 offset 1 »rows
sql-syntax | select 3 mod »(2) x
sql-syntax | select »sum(amount) filter (where id = 'a') over (order by ts) x from o
sql-syntax | select id from o where id = any(select »id from c)
sql-syntax | select id, rank() over »w r from o window W as (order by ts)
sql-syntax | select id, (select count(*) over »w from c) x from o window w as (order by ts)
type-mismatch | select »m.* from (select map('a', 1) m)
misplaced-expression | select explode(»explode(array(array(1)))) x from o
misplaced-expression | select struct(»explode(tags)) x from o
agg-not-grouped | select »id from o group by explode(tags)
misplaced-expression | select first(»rand()) x from o
misplaced-expression | select count(»rand()) x from o
misplaced-expression | select sum(amount * »rand()) x from o
misplaced-expression | select count(»uuid()) x from o
misplaced-expression | select collect_list(»monotonically_increasing_id()) x from o
argument-constant | select sort_array(tags, »id = 'a') x from o
unknown-function | select * from o, »upper('a')
unknown-function | select * from »upper('a')
sql-syntax | select id from o where »ts between symmetric ts and ts
time-part | select extract(epoch from »ts) x from o
time-part | select extract(isodow from »ts) x from o
time-part | select date_part(»'epoch', ts) x from o
time-part | select extract(millisecond from »ts) x from o
time-part | select date_part(»'millisecond', ts) x from o
time-part | select extract(century from »ts) x from o
time-part | select date_part(»'century', ts) x from o
sql-syntax | select id from o »limit 1, 2
sql-syntax | select id from o offset 1 »limit 2
sql-syntax | select »[1, 2] x from o
sql-syntax | select »{'a': 1} x from o
sql-syntax | select »$$a$$ x from o
sql-syntax | select id from o where »id glob 'a*'
sql-syntax | select id from o where »id similar to 'a'
sql-syntax | select id from o where id »~ 'a'
sql-syntax | select id from o where id »!~ 'a'
sql-syntax | select id from o »for update
sql-syntax | select id from o order by id »fetch first 3 rows only
sql-syntax | select id from o »fetch first row only
sql-syntax | select id from o limit 3 »with ties
sql-syntax | select top »3 id from o
sql-syntax | select * »exclude (id) from o
sql-syntax | select * except »id from o
sql-syntax | select »safe_cast(id as int) x from o
sql-syntax | select convert(int, »id) x from o
sql-syntax | select id from o »tablesample bernoulli (10)
sql-syntax | select id from o »tablesample system (10)
sql-syntax | select x from o, unnest(»tags) as t(x)
sql-syntax | select x from o cross join unnest(»tags) as t(x)
sql-syntax | select »unnest(tags) x from o
sql-syntax | select id, row_number() over »nosuch n from o
sql-syntax | select id, row_number() over (»w order by ts) n from o window w as (partition by id)
sql-syntax | select id, sum(amount) over (order by ts groups between »1 preceding and current row) n from o
sql-syntax | select id, sum(amount) over (order by ts rows between »1 preceding and current row exclude ties) n from o
sql-syntax | select id from o where id = any(»'a', 'b')
sql-syntax | select id from o where id = some(select »'a')
sql-syntax | select id from o where amount »isnull
sql-syntax | select id from o where amount »notnull
sql-syntax | select amount ** »2 x from o
sql-syntax | select amount /»/ 2 x from o
sql-syntax | select amount mod »2 x from o
sql-syntax | select 'a' as »"x" from o
sql-syntax | select 1 as »'x' from o
sql-syntax | select id as »[x] from o
sql-syntax | select »array[1,2] x from o
sql-syntax | select tags[»0:1] x from o
type-mismatch | select »item:name x from o
sql-syntax | select »item->'name' x from o
sql-syntax | select item->»>'name' x from o
sql-syntax | select b»'101' x from o
sql-syntax | select e»'a\n' x from o
sql-syntax | select »n'abc' x from o
sql-syntax | select »0x1F x from o
sql-syntax | select »count(o.*) x from o
sql-syntax | select max(amount) keep »(dense_rank first order by ts) x from o
sql-syntax | select string_agg(id, ',' »order by id) x from o
sql-syntax | select array_agg(»id order by id) x from o
sql-syntax | select first_value(amount »ignore nulls) over (order by ts) x from o
sql-syntax | select nth_value(amount, 2) from first over (order by »ts) x from o
sql-syntax | select o.* from o »asof join c on o.id = c.id
sql-syntax | select o.id from o »cross apply (select 1) x
sql-syntax | select o.id from o »outer apply (select 1) x
sql-syntax | select id from o order by id »using <
sql-syntax | select id from o »group by ()
sql-syntax | select count(*) x from o »group by ()
sql-syntax | select id, count(*) n from o group by »distinct rollup(id)
sql-syntax | select id from o union »by name select id from c
sql-syntax | select id, ts from o union all »by name select at as ts, id from c
sql-syntax | select id from o »limit 1 union all select id from c
sql-syntax | select id from o »order by id union all select id from c
sql-syntax | with t as »materialized (select id from o) select id from t
sql-syntax | with t as not »materialized (select id from o) select id from t
sql-syntax | select id from o as of »timestamp '2024-01-01'
sql-syntax | select id from o at (timestamp => »'2024-01-01')
sql-syntax | select make_date(year => »2026, month => 1, day => 1) as x from o
sql-syntax | select upper(str => »'a') as x from o
sql-syntax | select sum(expr => »amount) as x from o
sql-syntax | select lpad(str => »'a', len => 2, pad => 'b') as x from o
sql-syntax | select id from o where round(expr => »amount) > 1
qualify-not-supported | select id from o qualify »row_number() over (order by id) = 1
sql-syntax | select id, amount», from o
sql-syntax | select * from o pivot (sum(amount) for »id in (any))
sql-syntax | select ts + 1 day »x from o
sql-syntax | select cast(id as »varchar) x from o
sql-syntax | select cast(id as »text) x from o
sql-syntax | select cast(id as »int8) x from o
sql-syntax | select cast(id as »number) x from o
sql-syntax | select cast(id as »datetime) x from o
sql-syntax | select cast(id as »json) x from o
sql-syntax | select cast(id as »uuid) x from o
sql-syntax | select cast(id as »timestamptz) x from o
sql-syntax | select cast(id as timestamp »with time zone) x from o
sql-syntax | select cast(id as »unsigned) x from o
sql-syntax | select cast(id as »bool) x from o
sql-syntax | select cast(id as »time) x from o
sql-syntax | select cast(tags as array<»text>) x from o
sql-syntax | select cast(id as string »format 'x') x from o
sql-syntax | select cast(id as int »default 0 on conversion error) x from o
sql-syntax | select id collate »'utf8_lcase' x from o
sql-syntax | select * from o right join lateral »explode(tags) as t(x)
sql-syntax | select * from o full join lateral »explode(tags) as t(x)
sql-syntax | select * from o left semi join lateral »explode(tags) as t(x)
sql-syntax | select * from o natural join lateral »explode(tags) as t(x)
sql-syntax | select * from o join lateral »explode(tags) as t(x) using (x)
sql-syntax | select * from o join c on o.id = c.id »for system_time as of '2024'
sql-syntax | select id from o where »id in ()
sql-syntax | select id from o where »id in 'a'
sql-syntax | select id from o where »id overlaps 'a'
sql-syntax | select id from o where (»ts, ts) overlaps (ts, ts)
sql-syntax | select id from o where id »starts with 'a'
sql-syntax | select id from o where tags »@> array('a')
sql-syntax | select id from o where tags &»& array('a')
sql-syntax | select id from o where 'a' »member of (tags)
sql-syntax | select id from o where id = »:p
sql-syntax | select id from o where id = »?
sql-syntax | select »@x from o
sql-syntax | select »$1 from o
sql-syntax | select id »# c from o
sql-syntax | select id from o where amount = 1 »and
sql-syntax | select »id from o limit null
sql-syntax | select id from o limit -»1
sql-syntax | select id from o limit »'a'
sql-syntax | select id from o limit »1.5
sql-syntax | select id from o limit (select »1)
sql-syntax | select id from o limit »rand()
sql-syntax | select id from o offset -»1
sql-syntax | select id from o tablesample (»110 percent)
sql-syntax | select id from o tablesample (5 »buckets)
misplaced-expression | select x from o, explode(»tags) as t(x)
misplaced-expression | select x from o cross join explode(»tags) as t(x)
misplaced-expression | select distinct id, count(*) n from o group by id order by »amount
misplaced-expression | select id, count(*) n from o group by id order by »3
misplaced-expression | select id, count(*) n from o group by id order by »rank() over (order by amount)
misplaced-expression | select id, count(*) n from o group by id order by »rank() over (order by count(*))
misplaced-expression | select id, count(*) n from o group by id union all select id, 1 from c order by »url
misplaced-expression | select id from o union all select id from c order by »amount
misplaced-expression | select »rank() over () n from o
misplaced-expression | select id from o offset »amount
misplaced-expression | select id from o order by 1, »2
misplaced-expression | select id from o order by -»1
misplaced-expression | select »explode(tags) + 1 from o
misplaced-expression | select upper(»explode(tags)) from o
misplaced-expression | select id from o where »explode(tags) = 'a'
misplaced-expression | select sum(»explode(tags)) x from o
misplaced-expression | select explode(tags) x from o order by »explode(tags)
misplaced-expression | select case when true then »explode(tags) end x from o
misplaced-expression | select »inline(array(struct(1 as a, 2 as b))) as x from o
misplaced-expression | select »posexplode(tags) as x from o
misplaced-expression | select »explode(map('a', 1)) as x from o
misplaced-expression | select sum(»rand()) x from o
type-mismatch | select »amount ^ 2 x from o
type-mismatch | select »amount div 2 x from o
type-mismatch | select »date_add(ts, interval 1 day) x from o
type-mismatch | select id from o where »id in (array('a'))
type-mismatch | select »tags.* from o
unknown-column | select »o."id" x from o
unknown-column | select »sysdate x from o
unknown-column | select »localtime x from o
unknown-column | select »u&'abc' x from o
unknown-column | select »1_000 x from o
unknown-column | select »id from o x (a)
unknown-column | select id from o where »rownum < 3
unknown-column | select »distinctrow id from o
unknown-column | select »sql_no_cache id from o
unknown-column | select id as x from o where »x = 'a'
unknown-column | select »o from o
unknown-function | select »getdate() x from o
unknown-function | select »iff(id = 'a', 1, 2) x from o
unknown-function | select »group_concat(id) x from o
unknown-function | select * from »generate_series(1, 10)
unknown-function | select * from »table(range(10))
unknown-function | select * from o, lateral »flatten(tags)
undeclared-relation | select o.id from o straight_join »c on o.id = c.id
undeclared-relation | select id from »only o
undeclared-relation | select id into »x from o
agg-not-grouped | select »id from o having amount > 1
agg-not-grouped | select id from o group by id having »amount > 1
agg-not-grouped | select id, count(*) n from o group by id having »amount > 1
agg-not-grouped | select id, count(*) n from o group by id order by »amount
agg-not-grouped | select id, count(*) n from o group by id order by id, »amount
agg-not-grouped | select id, count(*) n from o group by id order by upper(»amount)
agg-not-grouped | select id, count(*) n from o group by id having »amount > max(amount)
agg-not-grouped | select id, count(*) n from o group by id having max(amount) > 1 order by »amount
agg-not-grouped | select upper(id) u, count(*) n from o group by upper(id) order by »id
agg-not-grouped | select upper(id) u, count(*) n from o group by upper(id) having »id = 'a'
agg-not-grouped | select count(*) n from o order by »id
agg-not-grouped | select count(*) n from o having »id = 'a'
agg-not-grouped | select max(id) m from o having m = 'a' and »id = 'a'
agg-not-grouped | select id, count(*) n from o group by all order by »amount
agg-not-grouped | select id, count(*) n from o group by all having »amount > 1
agg-not-grouped | select id, count(*) n from o group by id order by »item.name
agg-not-grouped | select id, count(*) n from o group by id sort by »amount
agg-not-grouped | select id, count(*) n from o group by id distribute by »amount
agg-not-grouped | select id, count(*) n from o group by id cluster by »amount
agg-not-grouped | select id, count(*) n from o group by id order by »amount limit 5
agg-not-grouped | select o.id, count(*) n from o join c on o.id = c.id group by o.id having »c.url = 'a'
agg-not-grouped | select window(ts, '1 hour') w, count(*) n from o group by window(ts, '1 hour') order by »ts
agg-not-grouped | select id, sum(amount) as amount from o group by id order by »o.amount
agg-not-grouped | select id, sum(amount) as amount from o group by id having »o.amount > 1
agg-not-grouped | with a as (select id, count(*) n from o group by id order by »amount) select * from a
agg-not-grouped | select »id from o group by 1 + 1
agg-not-grouped | select »id from o group by -1
agg-not-grouped | select explode(»tags) x from o group by id
"""
REFUSED = [tuple(line.split(" | ", 1)) for line in _REFUSED.strip().splitlines()]
