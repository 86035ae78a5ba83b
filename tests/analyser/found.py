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
""".strip().splitlines()

# The mark » stands where the fault is.
REFUSED = [
    ("clause", "select 1 as one from [[orders]] group by rollup(customer) having abs(»customer) > 1"),
    ("clause", "select 1 as one from [[orders]] group by cube(customer) having »customer > 1 and count(*) > 1"),
    ("clause", "select id from [[orders]] sort by »lead(id) over (order by id)"),
    ("clause", "select id from [[orders]] order by »lead(id) over (order by id)"),
    ("clause", "select id from [[orders]] cluster by »lead(id) over (order by id)"),
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
    ("clause", "select day from [[orders]] sort by »max(customer)"),
    ("column-count", "with c(»a, b) as (select id from [[orders]]) select a from c"),
    ("column-count", "select * from (select id, day from [[orders]]) t(»a)"),
    ("column-count", "select e from [[orders]] lateral view explode(tags) t as »e, f"),
    ("column-count", "select id from [[orders]] where id in (select »id, day from [[orders]])"),
    ("column-count", "select (select »id, day from [[orders]]) as x from [[orders]]"),
    ("clause", "select *, count(*) as n from [[orders]] group by »11"),
    ("clause", "select collect_set(»uuid()) as x from [[orders]]"),
    ("clause", "select count(*) filter (where »rand() > 0.5) as x from [[orders]]"),
    (
        "unknown-column",
        "select * from (select customer, status, amount from [[orders]]) pivot (sum(amount) for »nope in ('a'))",
    ),
]
