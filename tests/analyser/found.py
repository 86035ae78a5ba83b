"""What random queries found, in its shortest form: each once differed between compile and Spark's analyser."""

from __future__ import annotations

ACCEPTED = """
select 5000000000 as x, count(*) as n from [[orders]] group by 5000000000
select first(kind) ignore nulls over (partition by id order by n) as x, id from [[events]]
select id from [[orders]] where (id, day) in (select id, day from [[events]])
select id from [[orders]] where struct(id, day) in (select id, day from [[events]])
select (select max(id) from [[events]]) as x, count(*) as n from [[orders]] group by 1
select sum(x) as s from (select rand() as x from [[orders]])
select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) for status in ('a', 'b' as x))
select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) s, max(amount) for status in ('a', 'b' as x))
select k, v, id from [[orders]] unpivot (v for k in (amount, price))
select * from [[orders]] o pivot (sum(o.amount) for status in (1, 2))
select customer, a from [[orders]] t pivot (count(*) for status in ('a'))
select distinct a.customer from [[orders]] a join [[events]] b on a.id = b.id order by customer
select (customer, status) = (1, 'a') as x from [[orders]]
select struct(customer as a) = struct(1 as b) as x from [[orders]]
select struct(customer as a) = struct(1L as a) as x from [[orders]]
select array(1) = array(1L) as x, array(1) = array() as y from [[orders]]
select coalesce(array(1), array('a')) as x from [[orders]]
select coalesce(item, struct(1 as name, 'a' as price)) as x from [[orders]]
select item from [[orders]] union all select struct('a' as nm, 1.0D as price) from [[orders]]
select tags from [[orders]] union all select nums from [[events]]
select tags in (nums) as x from [[orders]] join [[events]] on true
select customer, count(*) as n from [[orders]] group by (1)
select customer, count(*) as n from [[orders]] group by rollup(1)
select id, grouping_id() as g, grouping(id) as h, count(*) as n from [[orders]] group by cube(id, status)
select body, sum(count(*)) over (order by body) as c from [[events]] group by rollup(body) having c is not null
select sum(id) over (order by ts range between interval 1 hour preceding and current row) as x from [[orders]]
select sum(id) over (order by id range between interval 1 day preceding and current row) as x from [[orders]]
select sum(id) over (order by day range between 1 preceding and current row) as x from [[orders]]
select row_number() over (order by id rows between unbounded preceding and current row) as x from [[orders]]
select x, count(*) as n from values (1, 'a'), (2, 'b') as v(x, y) group by x
select explode(props) as (k, v) from [[customers]]
select item.* from [[orders]]
select array_contains(array('b'), - 3 :: string) as x from [[orders]]
select id from [[orders]] tablesample (10 percent) o
select id, count(*) as n from [[customers]] group by id having id
select 1 as one from [[orders]] group by rollup(customer) having customer + 1 > 1
select customer from [[orders]] group by rollup(customer) having abs(customer) > 1 and count(*) > 1
select 1 as one from [[orders]] group by rollup(customer) having abs(max(customer)) > 1
select id, lead(id) over (order by id) as next from [[orders]] sort by next + 1
select id, (select e.id + o.customer from [[events]] e where e.id = o.id) as x from [[orders]] o
select bit_or(null) as a, bit_and(null) as b, bit_xor(null) over () as c from [[orders]]
select histogram_numeric(null, 3) as a, histogram_numeric('a', 3) as b from [[orders]]
select transform(array(1), x -> max(customer) + x) as x, status from [[orders]] group by status
select transform(array(1), x -> upper(status)) as x from [[orders]] group by upper(status)
select transform(array(1), x -> x + customer) as x from [[orders]] group by transform(array(1), x -> x + customer)
select e from [[orders]] lateral view explode(array((select count(*) from [[events]]))) t as e
select 1 as one from [[orders]] group by rollup(ts) having ts > current_timestamp
select 1 as one from [[orders]] group by rollup(customer) having customer > 1 and interval 1 day + interval 2 day > interval 1 day
select ts from [[orders]] group by rollup(ts) having ts + interval 1 day > timestamp'2024-01-01 00:00:00'
select 1 as one from [[orders]] group by rollup(status) having trim(both 'x' from status) = 'a' and position('a' in status) = 1
select 1 as one from [[orders]] group by rollup(item) having struct(item) = struct(item)
select 1 as one from [[orders]] group by rollup(customer) having customer > 1 order by abs(customer)
select 1 as customer from [[orders]] group by rollup(customer) order by abs(customer)
select upper(status) as u from [[orders]] group by rollup(upper(status)) order by max(status)
select 1 as one from [[orders]] group by customer order by abs(customer)
select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) + 1 s, -count(*) as n, max(amount)::int is null for status in ('a', 'b'))
select * from (select customer, status, item from [[orders]]) pivot (max(item).name for status in ('a', 'b'))
select * from (select customer, status, amount, paid from [[orders]]) pivot (sum(amount) * 2 for (status, paid) in (('a', true), ('b', false)))
select id from [[orders]] o where exists (select lag(id, 1, o.id) over (order by name) from [[customers]])
select id from [[orders]] o where exists (select sum(o.id + id) over (order by o.id + 1) from [[customers]])
select id from [[orders]] o where exists (select explode(o.tags))
select transform(array(1), X -> x + 1) as x, transform(array(item), X -> x.name) as y from [[orders]]
select date'2024-01-01'::string as a, timestamp'2024-01-01 00:00:00'::date::string as b from [[orders]]
select /*+ a */ /*+ b */ id from [[orders]] o
""".strip().splitlines()

# The mark » stands where the fault is.
REFUSED = [
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(customer) having abs(»customer) > 1"),
    (
        "misplaced-expression",
        "select 1 as one from [[orders]] group by cube(customer) having »customer > 1 and count(*) > 1",
    ),
    ("misplaced-expression", "select id from [[orders]] sort by »lead(id) over (order by id)"),
    ("misplaced-expression", "select id from [[orders]] order by »lead(id) over (order by id)"),
    ("misplaced-expression", "select id from [[orders]] cluster by »lead(id) over (order by id)"),
    ("unknown-function", "select »iff(paid, item, item).price as x from [[orders]]"),
    ("sql-syntax", "select a from (select status, amount from [[orders]]) pivot (sum(amount) for status in ('a')) »p"),
    ("sql-syntax", "select id from [[orders]] »o tablesample (10 percent)"),
    (
        "subquery-place",
        "select id, (select max(e.id) + »o.customer from [[events]] e where e.id = o.id) as x from [[orders]] o",
    ),
    (
        "unknown-column",
        "select id from [[orders]] o where id > (select count(*) from [[events]] e where exists (select 1 from [[customers]] c where c.id = »o.amount))",
    ),
    ("type-mismatch", "select »posexplode(null) as (a, b) from [[orders]]"),
    ("type-mismatch", "select stack(2, 1, »day) as x from [[orders]]"),
    ("type-mismatch", "select aggregate(nums, 0.0, (acc, x) -> »acc + x) as x from [[events]]"),
    ("type-mismatch", "select aggregate(tags, 0, (acc, x) -> »acc + x) as x from [[orders]]"),
    ("type-mismatch", "select extract(year from interval »'1' month) as x from [[orders]]"),
    ("type-mismatch", "select a.id from [[customers]] a join [[customers]] b using (»props)"),
    ("misplaced-expression", "select day from [[orders]] sort by »max(customer)"),
    ("column-count", "with c(»a, b) as (select id from [[orders]]) select a from c"),
    ("column-count", "select * from (select id, day from [[orders]]) t(»a)"),
    ("column-count", "select e from [[orders]] lateral view explode(tags) t as »e, f"),
    ("column-count", "select id from [[orders]] where id in (select »id, day from [[orders]])"),
    ("column-count", "select (select »id, day from [[orders]]) as x from [[orders]]"),
    ("misplaced-expression", "select *, count(*) as n from [[orders]] group by »11"),
    ("misplaced-expression", "select collect_set(»uuid()) as x from [[orders]]"),
    ("misplaced-expression", "select count(*) filter (where »rand() > 0.5) as x from [[orders]]"),
    (
        "unknown-column",
        "select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) for »nope in ('a'))",
    ),
    ("misplaced-expression", "select e from [[orders]] lateral view explode(»array_agg(status)) t as e"),
    (
        "misplaced-expression",
        "select e from [[orders]] lateral view explode(array(»row_number() over (order by id))) t as e",
    ),
    ("misplaced-expression", "select e from [[orders]] lateral view explode(array(»explode(array(1)))) t as e"),
    ("misplaced-expression", "select e from [[orders]], lateral explode(»array_agg(status)) t(e)"),
    ("misplaced-expression", "select * from explode(array(»max(1))) t(e)"),
    ("misplaced-expression", "select * from values (»max(1)) t(e)"),
    ("misplaced-expression", "select * from values (»rand()) t(e)"),
    ("misplaced-expression", "select * from values ((select »max(id) from [[orders]])) t(e)"),
    ("agg-not-grouped", "select transform(array(), x -> »status) as x from [[orders]] group by id"),
    ("agg-not-grouped", "select transform(array_agg(status), x -> »status) as x from [[orders]]"),
    (
        "agg-not-grouped",
        "select transform(array(1), x -> transform(array(2), y -> x + y + »customer)) as x from [[orders]] group by id",
    ),
    ("agg-not-grouped", "select id from [[orders]] group by id having exists(array(1), x -> x = »customer)"),
    ("agg-not-grouped", "select id from [[orders]] group by id order by transform(array(1), x -> »customer)"),
    ("type-mismatch", "select »approx_top_k(null) as a from [[orders]]"),
    ("type-mismatch", "select »bitmap_or_agg(null) as a from [[orders]]"),
    ("misplaced-expression", "select »grouping(null) as a from [[orders]] group by rollup(id)"),
    (
        "misplaced-expression",
        "select 1 as one from [[orders]] group by rollup(ts) having »ts + interval 1 day > timestamp'2024-01-01 00:00:00'",
    ),
    (
        "misplaced-expression",
        "select 1 as one from [[orders]] group by rollup(customer) having »customer > 1 and 2 * interval 1 month > interval 2 month",
    ),
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(ts) having »ts > current_timestamp()"),
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(day) having »day > current_date"),
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(customer) having »customer = int('1')"),
    (
        "misplaced-expression",
        "select 1 as one from [[orders]] o group by rollup(o.customer) having »o.customer > 1 and abs(1) = 1",
    ),
    ("misplaced-expression", "select customer as c from [[orders]] group by rollup(c) having abs(»customer) > 1"),
    (
        "misplaced-expression",
        "select 1 as one from [[orders]] group by rollup(customer) having customer > 1 order by »count(*)",
    ),
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(customer) order by »customer"),
    ("misplaced-expression", "select customer as c from [[orders]] group by rollup(1) order by abs(»customer)"),
    ("misplaced-expression", "select 1 as one from [[orders]] group by rollup(customer) order by max(»customer)"),
    (
        "misplaced-expression",
        "select upper(status) as u from [[orders]] group by cube(upper(status)) sort by upper(»status)",
    ),
    (
        "misplaced-expression",
        "select item.name from [[orders]] group by grouping sets ((item.name), ()) order by »item.name",
    ),
    (
        "misplaced-expression",
        "select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) + »amount for status in ('a', 'b'))",
    ),
    (
        "misplaced-expression",
        "select * from (select customer, status, amount from [[orders]]) pivot (sum(»sum(amount)) for status in ('a', 'b'))",
    ),
    (
        "misplaced-expression",
        "select * from (select customer, status, amount from [[orders]]) pivot (»explode(array_agg(amount)) for status in ('a', 'b'))",
    ),
    (
        "subquery-place",
        "select id from [[orders]] o where exists (select 1 from [[customers]] lateral view explode(»o.tags) t as e)",
    ),
    ("subquery-place", "select id from [[orders]] o where exists (select explode(»o.tags) from [[customers]])"),
    (
        "subquery-place",
        "select id from [[orders]] o where exists (select row_number() over (order by »o.id) from [[customers]])",
    ),
    (
        "subquery-place",
        "select id, (select max(x) from (select sum(»o.customer) over () as x from [[customers]])) as m from [[orders]] o",
    ),
    (
        "unknown-column",
        "select id from [[orders]] o where exists (select 1 from [[customers]] c join lateral explode(»o.tags) t(e))",
    ),
    ("sql-syntax", "select »,id from [[orders]]"),
    ("sql-syntax", "select (»,id) from [[orders]]"),
    ("sql-syntax", "select coalesce(»,id) as x from [[orders]]"),
    ("sql-syntax", "select id from [[orders]] where id in (»,1)"),
    ("sql-syntax", "select id from [[orders]] group by »,id"),
    ("sql-syntax", "select id from [[orders]] order by »,id"),
    ("sql-syntax", "select distinct »,id from [[orders]]"),
    ("sql-syntax", "select struct(»,id) as x from [[orders]]"),
    ("sql-syntax", "select array(»,id) as x from [[orders]]"),
    ("sql-syntax", "select sum(id) over (partition by »,status) as x from [[orders]]"),
    ("sql-syntax", "select sum(id) over (order by »,status) as x from [[orders]]"),
    ("sql-syntax", "select * except (»,id) from [[orders]]"),
    ("sql-syntax", "select * »except () from [[orders]]"),
    ("sql-syntax", "select id from values »,(1) as t(id)"),
    ("sql-syntax", "select id from values (»,1) as t(id)"),
    ("unknown-column", "select »localtimestamp as x from [[orders]]"),
    ("unknown-column", "select »current_catalog as x from [[orders]]"),
    ("unknown-column", "select »current_database as x from [[orders]]"),
    ("unknown-column", "select »current_schema as x from [[orders]]"),
    ("unknown-column", "select »now as x from [[orders]]"),
    ("sql-syntax", "select dateadd(»DAYS, 1, day) as x from [[orders]]"),
    ("sql-syntax", "select dateadd(»HOURS, 1, ts) as x from [[orders]]"),
    ("sql-syntax", "select dateadd(»decade, 1, ts) as x from [[orders]]"),
    ("sql-syntax", "select dateadd(»nanosecond, 1, ts) as x from [[orders]]"),
    ("sql-syntax", "select timestampadd(»weeks, 1, ts) as x from [[orders]]"),
    ("sql-syntax", "select date_add(»days, 1, ts) as x from [[orders]]"),
    ("sql-syntax", "select datediff(»DAYS, ts, ts) as x from [[orders]]"),
    ("sql-syntax", "select datediff(»yy, ts, ts) as x from [[orders]]"),
    ("sql-syntax", "select timestampdiff(»months, ts, ts) as x from [[orders]]"),
    ("sql-syntax", "select date_diff(»hours, ts, ts) as x from [[orders]]"),
    ("sql-syntax", "select timediff(»minutes, ts, ts) as x from [[orders]]"),
    ("sql-syntax", "select interval 1 »decade as x from [[orders]]"),
    ("sql-syntax", "select interval 1 »quarter as x from [[orders]]"),
    ("sql-syntax", "select interval '1' nope »as x from [[orders]]"),
    ("sql-syntax", "select interval '1 day' »' 2 hours' as x from [[orders]]"),
    ("sql-syntax", "select »int '5' as x from [[orders]]"),
    ("sql-syntax", "select »decimal '1.5' as x from [[orders]]"),
    ("sql-syntax", "select »string 'a' as x from [[orders]]"),
    ("sql-syntax", "select »boolean 'true' as x from [[orders]]"),
    ("sql-syntax", "select »double '1' as x from [[orders]]"),
    ("sql-syntax", "select »binary 'a' as x from [[orders]]"),
    ("sql-syntax", "select 1 > »> 1 as x from [[orders]]"),
    ("sql-syntax", "select 1 < »< 1 as x from [[orders]]"),
    ("sql-syntax", "select array(1), 8 >»> 1 as x from [[orders]]"),
    ("sql-syntax", "select 8 >> 1 as x, 1 > 2 as z, array(8 >»> 1) as y from [[orders]]"),
    ("sql-syntax", "select »128y as x from [[orders]]"),
    ("sql-syntax", "select »99999999999999999999L as x from [[orders]]"),
    ("sql-syntax", "select »1e400 as x from [[orders]]"),
    ("sql-syntax", "select »1e400d as x from [[orders]]"),
    ("sql-syntax", "select »1e50f as x from [[orders]]"),
    ("sql-syntax", "select »123456789012345678901234567890123456789 as x from [[orders]]"),
    ("sql-syntax", "select »1e-50bd as x from [[orders]]"),
    ("sql-syntax", "select id as »2 from [[orders]]"),
    ("sql-syntax", "select /*+ »1 */ id from [[orders]] o"),
    ("sql-syntax", "select /*+ broadcast(») */ id from [[orders]] o"),
    ("sql-syntax", "select /*+ a».b(c) */ id from [[orders]] o"),
    (
        "misplaced-expression",
        "select »lag(id) over w as x from [[orders]] window w as (order by id rows between 1 preceding and current row)",
    ),
    ("misplaced-expression", "select »cume_dist() over (order by id rows unbounded preceding) as x from [[orders]]"),
    (
        "misplaced-expression",
        "select »row_number() over w as x from [[orders]] window w as (order by id rows between 1 preceding and current row)",
    ),
    (
        "misplaced-expression",
        "select »lag(id, 1) over (w) as x from [[orders]] window w as (order by id rows unbounded preceding)",
    ),
    (
        "misplaced-expression",
        "select sum(id) over w as x, »row_number() over w as y from [[orders]] window w as (order by id rows 2 preceding)",
    ),
    (
        "misplaced-expression",
        "select »sum(id) over (order by id rows between unbounded following and current row) as x from [[orders]]",
    ),
    (
        "misplaced-expression",
        "select sum(id) over (order by id rows between »1.5 preceding and current row) as x from [[orders]]",
    ),
    (
        "misplaced-expression",
        "select sum(id) over (order by id rows between »id preceding and current row) as x from [[orders]]",
    ),
    ("sql-syntax", "select sum(id) over w as x from [[orders]] window w as (order by id), »w as (order by status)"),
    ("sql-syntax", "select * from [[orders]] having »id > 1"),
    ("type-mismatch", "select stack(2, 1, »2L) as x from [[orders]]"),
    ("type-mismatch", "select stack(2, id, »customer) as (x) from [[orders]]"),
    ("type-mismatch", "select stack(»0, 1, 2) as x from [[orders]]"),
    ("type-mismatch", "select stack(-»1, 1, 2) as x from [[orders]]"),
    ("type-mismatch", "select stack(2, day, »ts) as x from [[orders]]"),
    ("sql-syntax", "select i.»* as x from [[orders]] i"),
    ("sql-syntax", "select »* as x from [[orders]]"),
    ("sql-syntax", "select i.item.»* as x from [[orders]] i"),
    ("sql-syntax", "select »* x from [[orders]]"),
    ("sql-syntax", "select i.»* x from [[orders]] i"),
    ("sql-syntax", "select (i.»*) as x from [[orders]] i"),
    ("sql-syntax", "select id from [[orders]] where »*"),
    ("sql-syntax", "select id from [[orders]] order by »*"),
    ("sql-syntax", "select »* + 1 as x from [[orders]]"),
    ("sql-syntax", "select -»* as x from [[orders]]"),
    ("type-mismatch", "select array_sort(tags, »'desc') as x from [[orders]]"),
    ("type-mismatch", "select »array_sort(tags, true) as x from [[orders]]"),
    ("sql-syntax", "select array_sort(tags, »a -> 1) as x from [[orders]]"),
    ("type-mismatch", "select array_sort(tags, (a, b) -> »'x') as x from [[orders]]"),
    ("type-mismatch", "select array_sort(tags, (a, b) -> »1L) as x from [[orders]]"),
    ("type-mismatch", "select sort_array(tags, »'desc') as x from [[orders]]"),
    ("sql-syntax", "select transform(tags, (»a, b, c) -> a) as x from [[orders]]"),
    ("sql-syntax", "select aggregate(tags, 0, »s -> s) as x from [[orders]]"),
    ("sql-syntax", "select map_filter(map('a', 1), »k -> true) as x from [[orders]]"),
    ("type-mismatch", "select map_filter(map('a', 1), (k, v) -> »1) as x from [[orders]]"),
    ("sql-syntax", "select transform_values(map('a', 1), »v -> v) as x from [[orders]]"),
    ("sql-syntax", "select map_zip_with(map('a', 1), map('a', 2), (»a, b) -> a) as x from [[orders]]"),
    ("sql-syntax", "select zip_with(tags, tags, »a -> a) as x from [[orders]]"),
    ("sql-syntax", "select upper(»a -> a) as x from [[orders]]"),
    ("sql-syntax", "select coalesce(»a -> a, 1) as x from [[orders]]"),
    ("sql-syntax", "select transform(»a -> a, tags) as x from [[orders]]"),
    ("sql-syntax", "select 1.»5l as x from [[orders]]"),
]
