"""Facts of a model that later stages need: its windows, what its columns are made of, where its SQL names inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.nodes.facts import Facts
from engine.compile.nodes.model_settings import TimeWindow
from engine.plan.comparable_facts import comparable
from engine.plan.edits.present_names import with_inputs_of_now
from tests.plan.facts_by_hand import facts
from tests.project.small_projects import FROM, clean, made

HEADER = "/*---\nstreams: {shop.orders: {watermark: ts delay 1 hour}}\nwindows: {hour: 'tumbling(ts, 1 hour)'}\n---*/\n"


def test_columns_that_hold_the_start_or_end_of_a_window(tmp_path: Path) -> None:
    query = (
        f"with h as (select hour.start as s, `hour`.`end`, count(*) as n, max(hour.end) as m {FROM} group by hour)\n"
        "select *, s + interval 1 day as day from h"
    )
    model = clean(tmp_path, {"models/a.sql": HEADER + query}).model("a")
    assert {c.name: c.window for c in model.columns} == {
        "s": "hour.start", "end": "hour.end", "n": "", "m": "", "day": "",
    }  # fmt: skip
    assert model.windows == {"hour": TimeWindow("tumbling", "ts", "1 hours")}


def test_how_values_come_about(tmp_path: Path) -> None:
    query = (
        f"select id, upper(id) as big, max(id) || 'x' as most, sum(amount) over () as sums {FROM} group by id, amount"
    )
    model = clean(tmp_path, {"models/a.sql": query}).model("a")
    assert {c.name: c.derivation.value for c in model.columns} == {
        "id": "copy", "big": "expression", "most": "aggregate", "sums": "expression",
    }  # fmt: skip


def test_where_the_sql_names_its_inputs(tmp_path: Path) -> None:
    files = {
        "models/e.sql": f"/*---\nmaterialized: ephemeral\n---*/\nselect id, '`__shop__orders`' as text {FROM} o",
        "models/t.sql": f"select id {FROM}",
        "models/a.sql": "select e.id from {{ ref('e') }} join {{ ref('t') }} b on e.id = b.id where b.id = '`lake`'",
    }
    model = clean(tmp_path, files).model("a")
    assert [model.sql[slot.start : slot.end] for slot in model.slots] == [slot.view for slot in model.slots]
    table = next(item.view for item in model.inputs if item.node == "model.t")
    changed = model.sql_with({slot.view: "`x`" for slot in model.slots})
    assert changed.count("`x`") == len(model.slots) == 2
    assert table not in changed
    assert "'`__shop__orders`'" in changed


def test_a_renamed_source_is_renamed_where_it_qualifies_columns() -> None:
    before = facts(sql="select orders . id , a . orders . x from `@source shop.orders` where orders . n > 1")
    now = {"shop.orders": "shop.sales"}
    assert with_inputs_of_now(before, now).sql == (
        "select sales . id , a . orders . x from `@source shop.sales` where sales . n > 1"
    )
    given = facts(sql="select orders . id from `@source shop.orders` as orders")
    assert with_inputs_of_now(given, now).sql == "select orders . id from `@source shop.sales` as orders"


@pytest.mark.parametrize(
    ("mark", "columns"),
    [
        ("cast(id as timestamp) as seen", {"id": "string", "seen": "timestamp"}),
        # A computed time may take the place of a column, in any letter case.
        ("cast(id as timestamp) as ID", {"id": "timestamp"}),
    ],
)
def test_a_computed_event_time_is_a_column_of_its_input(tmp_path: Path, mark: str, columns: dict[str, str]) -> None:
    name = mark.rpartition(" ")[2]
    header = f"streams: {{shop.orders: {{watermark: {mark} delay 10 minutes}}}}\nwindows: {{hour: 'tumbling({name}, 1 hour)'}}"
    read = made(tmp_path, header, f"select hour.start as h, max(id) as top {FROM} group by hour")
    (item,) = read.facts.state.inputs
    assert dict(item.columns) == columns


def facts_of(sql: str = "select id from `@source shop.orders`", **source: object) -> Facts:
    given = {
        "format": "json",
        "path": "landing",
        "options": {},
        "schema": [["id", "int"], ["kind", "string"]],
        **source,
    }
    return facts(sql=sql, inputs=[{"name": "shop.orders", "stream": True, "source": given}])


@pytest.mark.parametrize(
    ("source", "same"),
    [
        # How fast a source is read is no part of what is read.
        ({"options": {"minPartitions": "4", "maxBytesPerTrigger": "1g"}}, True),
        ({"options": {"multiLine": "true"}}, False),
        ({"options": {"multiLine": "true", "minPartitions": "4"}}, False),
        ({"path": "landing/"}, True),
        ({"path": "other"}, False),
        # Columns that are not read do not count, nor does the order of those of JSON.
        ({"schema": [["kind", "string"], ["id", "int"], ["more", "int"]]}, True),
        ({"schema": [["id", "bigint"]]}, False),
        ({"format": "csv"}, False),
    ],
)
def test_what_no_row_depends_on_is_left_out_of_a_comparison(source: dict[str, object], same: bool) -> None:
    old, new = facts_of(), facts_of(**source)
    assert (comparable(old, new) == comparable(new, old)) is same


def test_a_join_counts_the_order_of_the_columns_that_it_keeps() -> None:
    join = "select a.id, a.kind from `@source shop.orders` a join b on a.id = b.id"
    kind_first = [["kind", "string"], ["id", "int"]]
    old, moved = facts_of(join), facts_of(join, schema=kind_first)
    more = facts_of(join, schema=[["id", "int"], ["other", "int"], ["kind", "string"]])
    assert comparable(old, moved) != comparable(moved, old)
    assert comparable(old, more) == comparable(more, old)
    listed = "select a.id, a.kind from `@source shop.orders` as a, `@source shop.orders` as b where a.id = b.id"
    old, moved = facts_of(listed), facts_of(listed, schema=kind_first)
    assert comparable(old, moved) != comparable(moved, old)
