"""Spark's pipes (`FROM t |> ..`): what compile finds of them is what it finds of the same query with SELECT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.compile import Model
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
    ("", "select * from T where id in (select id from T)", "table T |> where id in (table T |> select id)"),
    ("", "select a + 1 as b from (select col1 as a from values (1), (2))",
     "values (1), (2) |> as v |> select v.col1 as a |> select a + 1 as b"),
    ("", "with t as (select id from T) select * from t", "with t as (from T |> select id) table t"),
    ("", "select kind, a, b from (select kind, id, amount from T) pivot (sum(amount) for id in (1 as a, 2 as b))",
     "from T |> select kind, id, amount |> pivot (sum(amount) for id in (1 as a, 2 as b))"),
]  # fmt: skip


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
    return columns, rows, one.stateful, one.write.output_mode
