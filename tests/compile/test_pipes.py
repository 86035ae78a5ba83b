"""Spark's pipes (`FROM t |> ..`): what compile finds of them is what it finds of the same query with SELECT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlglot.errors import ParseError

from engine.compile import Model
from engine.compile.sql.dialect import parse_text
from tests.project.small_projects import clean, model

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: events, format: json, path: events, schema: "id bigint, at timestamp, kind string, amount double"}
"""
STREAM = "streams: {shop.events: {watermark: at delay 10 minutes}}"
HOUR = f"{STREAM}\nwindows: {{hour: 'tumbling(at, 1 hour)'}}"
SAME = [
    (HOUR, "select hour.start as h, kind, count(*) as n from T where amount > 1 group by hour, kind",
     "from T |> where amount > 1 |> aggregate count(*) as n group by hour, kind |> select hour.start as h, kind, n"),
    (STREAM, "select window.start as h, count(*) as n from T group by window(at, '1 hour')",
     "from T |> aggregate count(*) as n group by window(at, '1 hour') as w |> select w.start as h, n"),
    (f"{HOUR}\noutput_mode: update", "select hour.start as h, kind, count(*) as n from T group by hour, kind having n > 1",
     "from T |> aggregate count(*) as n group by hour, kind |> where n > 1 |> select hour.start as h, kind, n"),
    (f"{HOUR}\noutput_mode: update\nunique_key: [hour, kind]",
     "select hour, kind, count(*) + 1 as n from T group by hour, kind",
     "from T |> aggregate count(*) as n, max(id) as m group by hour, kind |> drop m |> set n = n + 1"),
    (f"{HOUR}\noutput_mode: update", "select hour as h, count(*) as n from T group by hour",
     "from T |> aggregate count(*) as n group by hour |> where n > 0 |> as g |> select g.hour as h, n"),
    (f"{STREAM[:-2]}, dedup: [id]}}}}", "select id, kind from T", "from T |> select id, kind"),
    ("", "select kind, sum(amount) as total from T group by kind having sum(amount) > 1",
     "table T |> aggregate sum(amount) as total group by kind |> where total > 1"),
    ("", "select upper(kind) as k, max(id) as m from T group by upper(kind)",
     "from T |> aggregate max(id) as m group by upper(kind) as k"),
    ("", "select e.id, x.kind as k from T e left join T x on e.id = x.id where x.amount is null",
     "from T |> as e |> left join T x on e.id = x.id |> where x.amount is null |> select e.id, x.kind as k"),
    ("", "select id, kind from T union all select id, kind from T",
     "from T |> select id, kind |> union all (table T |> select id, kind)"),
    ("", "select id, row_number() over (partition by kind order by at) as n from T",
     "from T |> select id, row_number() over (partition by kind order by at) as n"),
    ("", "select *, amount * 2 as twice from T", "from T |> extend amount * 2 as twice"),
    ("", "select * except (kind, at) from T", "from T |> drop kind |> drop at"),
    ("", "select id, at, upper(kind) as kind, amount + id as amount from T",
     "from T |> set kind = upper(kind), amount = amount + id"),
    (STREAM, "select id, at, upper(kind) as kind, amount from T where id > 1 and amount > 1",
     "from T |> set kind = upper(kind) |> where id > 1 |> where amount > 1"),
    ("", "select * from T where id in (select id from T)", "table T |> where id in (table T |> select id)"),
    ("", "select a + 1 as b from (select col1 as a from values (1), (2))",
     "values (1), (2) |> as v |> select v.col1 as a |> select a + 1 as b"),
    ("", "with t as (select id from T) select * from t", "with t as (from T |> select id) table t"),
    ("", "select kind, a, b from (select kind, id, amount from T) pivot (sum(amount) for id in (1 as a, 2 as b))",
     "from T |> select kind, id, amount |> pivot (sum(amount) for id in (1 as a, 2 as b))"),
]  # fmt: skip
# A pipe, and the query that its tree is of.
WRITTEN_OUT = [
    ("from t |> limit 5 |> where a > 1", "select * from (select * from t limit 5) t where a > 1"),
    ("from t |> where a > 1 |> limit 5", "select * from t where a > 1 limit 5"),
    ("from t |> where a |> where b", "select * from t where a and b"),
    ("from t |> where a or b |> where c", "select * from t where (a or b) and c"),
    ("from t |> limit 5 |> aggregate count(*) as n", "select count(*) as n from (select * from t limit 5) t"),
    ("from t |> limit 5 |> order by a", "select * from (select * from t limit 5) t order by a"),
    ("from t |> order by a |> limit 5", "select * from t order by a limit 5"),
    ("from t |> limit 5 |> limit 3", "select * from (select * from t limit 5) t limit 3"),
    ("from t |> where a |> right join u on t.i = u.i",
     "select * from (select * from t where a) t right join u on t.i = u.i"),
    ("from t |> right join u on t.i = u.i |> where a", "select * from t right join u on t.i = u.i where a"),
    ("from t x |> where x.a |> join u on x.i = u.i |> where x.b |> join v on v.i = u.i",
     "select * from (select * from t x where x.a) x join u on x.i = u.i join v on v.i = u.i where x.b"),
    ("from t |> join u using (i) |> where a |> full join v using (i)",
     "select * from (select * from t join u using (i) where a) full join v using (i)"),
    ("from t |> select a, b as c |> as q |> where q.c", "select * from (select a, b as c from t) q where q.c"),
    ("from t |> aggregate sum(a) as s group by b, upper(c) as d |> where s > 1",
     "select * from (select b, upper(c) as d, sum(a) as s from t group by b, upper(c)) t where s > 1"),
    ("select a, b as c from t |> aggregate count(*) as n group by 2",
     "select c, count(*) as n from (select a, b as c from t) group by c"),
    ("select a from t union select a from u |> intersect values (1)",
     "(select a from t union select a from u) intersect (values (1))"),
    ("from t |> select a union all select b from u |> where a",
     "select * from ((select a from t) union all (select b from u)) where a"),
    ("from t |> pivot (sum(a) for b in (1, 2)) |> limit 1",
     "select * from (select * from t pivot (sum(a) for b in (1, 2))) t limit 1"),
    ("with u as (from t |> drop a) from u |> extend b + 1 as c",
     "with u as (select * except (a) from t) select *, b + 1 as c from u"),
    ("select * from t where a in (from u |> select a |> offset 3)",
     "select * from t where a in (select * from (select a from u) u offset 3)"),
    ("from `@source shop.orders` |> where a |> join `@ref items` on orders.i = items.i",
     "select * from (select * from `@source shop.orders` where a) orders join `@ref items` on orders.i = items.i"),
    ("from t |> where a |> distribute by b", "select * from t where a distribute by b"),
    ("from t |> order by a |> offset 3", "select * from t order by a offset 3"),
    ("from t |> limit 5 offset 2 |> order by a offset 1",
     "select * from (select * from t limit 5 offset 2) t order by a offset 1"),
    ("from t |> order by (select max(b) from u limit 1) |> limit 3",
     "select * from t order by (select max(b) from u limit 1) limit 3"),
    ("from t |> select a as limit, offset, t.window |> drop offset",
     "select * except (offset) from (select a as limit, offset, t.window from t) t"),
    ("from t |> select window.start, b[0] |> select start", "select start from (select window.start, b[0] from t) t"),
    ("from t |> select sum(a) over w as s window w as (order by b)",
     "select sum(a) over w as s from t window w as (order by b)"),
    ("from (select 1) q(a) |> limit 5 |> where a", "select * from (select * from (select 1) q(a) limit 5) where a"),
    ("select a, b from t |> aggregate count(*) as n group by 1, b",
     "select a, b, count(*) as n from (select a, b from t) group by a, b"),
    ("select 1 as a union select 2 as b |> aggregate group by 1",
     "select a from (select 1 as a union select 2 as b) group by a"),
    ("from t |> where a |> pivot (sum(a) for b in (1))",
     "select * from (select * from t where a) t pivot (sum(a) for b in (1))"),
    ("from t join u using (i) |> pivot (sum(a) for b in (1))",
     "select * from (select * from t join u using (i)) pivot (sum(a) for b in (1))"),
    ("from t |>", "select * from t"),
]  # fmt: skip


@pytest.mark.parametrize(("pipe", "select"), WRITTEN_OUT)
def test_steps_are_applied_in_their_order(pipe: str, select: str) -> None:
    piped, written = (parse_text(text).sql("spark", identify=True) for text in (pipe, select))
    assert piped == written


@pytest.mark.parametrize(
    ("pipe", "word"),
    [
        ("from t |> keep a", "keep"),
        ("from t |> set a", "a"),
        ("from t |> as u, v", "as"),
        ("from t |> drop b.c", "."),
        ("from t |> aggregate", "aggregate"),
        ("from t |> aggregate group by all", "aggregate"),
        ("from t |> aggregate group by 1", "1"),
        ("(select a from t) |> aggregate group by 1", "1"),
        ("select a + 1 from t |> aggregate group by 1", "1"),
        ("select a from t |> aggregate group by 2", "2"),
    ],
)
def test_what_is_no_step_of_spark(pipe: str, word: str) -> None:
    with pytest.raises(ParseError, match=f"invalid step of a pipe: {word}"):
        parse_text(pipe)


@pytest.mark.parametrize(("header", "select", "pipe"), SAME)
def test_columns_lineage_and_state_of_a_pipe(tmp_path: Path, header: str, select: str, pipe: str) -> None:
    files: dict[str, Any] = {"project.yml": "name: lab\n", "sources/shop.yml": SOURCES}
    for name, sql in (("classic", select), ("piped", pipe)):
        files |= model(header, sql.replace("T", "{{ source('shop', 'events') }}"), name)
    manifest = clean(tmp_path, files)
    assert _found(manifest.model("piped")) == _found(manifest.model("classic"))


def _found(one: Model) -> tuple[Any, ...]:
    columns = [(column.name, column.type, set(column.origins)) for column in one.columns]
    rows = {(origin.node, origin.column) for origin in one.indirect}
    return columns, rows, one.stateful, one.write.output_mode, one.write.unique_key
