"""Settings that belong together: output mode and key, settings and folder defaults, columns of the SELECT."""

from __future__ import annotations

import pytest

from engine.compile import OutputMode
from tests.project.small_projects import (
    FROM,
    HOUR,
    LATE,
    MERGE,
    ORDERS,
    PROJECT,
    STREAM,
    check,
    clean,
    compiled,
    findings,
    model,
    orders_with,
)

GAP = "windows: {gap: 'session(ts, 5 minutes)'}\n"


# output mode and key

HOURLY = f"select hour.start as s, id, count(*) as n {FROM} group by hour, id"
BY_ID = f"select id, count(*) as n {FROM} group by id"
UPDATE = "output_mode: update\n"
JOIN = f"select a.id, count(*) as n {FROM} a join {{{{ source('shop', 'customers') }}}} b using (id) group by a.id"
MODES = [
    (STREAM, ORDERS, "append", ()),
    (MERGE, ORDERS, "append", ("id",)),
    (LATE + HOUR, HOURLY, "append", ()),
    (LATE + HOUR + "unique_key: [s, id]", HOURLY, "update", ("s", "id")),
    (LATE + HOUR + "unique_key: [s, id]\noutput_mode: append", HOURLY, "append", ("s", "id")),
    (LATE + HOUR + "unique_key: id\noutput_mode: append", HOURLY, "append", ("id",)),
    (LATE + GAP + "unique_key: [s, id]", HOURLY.replace("hour", "gap"), "append", ("s", "id")),
    (MERGE, f"select distinct id {FROM}", "append", ("id",)),
    (MERGE, f"select id, count(*) as n from (select distinct id, ts {FROM}) group by id", "append", ("id",)),
    (MERGE, f"with h as ({BY_ID}) select id, n + 1 as n from h", "update", ("id",)),
    ("streams: [shop.orders, shop.customers]\nunique_key: id", JOIN, "append", ("id",)),
    (MERGE, JOIN, "update", ("id",)),
    (STREAM + "output_mode: complete", BY_ID, "complete", ()),
    # the key that update mode takes from the query
    (STREAM + UPDATE, BY_ID, "update", ("id",)),
    (STREAM + UPDATE + "unique_key: ID", BY_ID, "update", ("ID",)),
    (LATE + HOUR + UPDATE, HOURLY, "update", ("s", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("by hour, id", "by 1, 2"), "update", ("s", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("by hour, id", "by s, id"), "update", ("s", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("by hour, id", "by all"), "update", ("s", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("hour.start as s", "hour.end as e, hour.start"), "update", ("start", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("hour.start as s", "hour.end as e"), "update", ("e", "id")),
    (LATE + HOUR + UPDATE, HOURLY.replace("hour.start as s", "hour"), "update", ("hour", "id")),
    (LATE + HOUR + UPDATE + "unique_key: [id, e]", HOURLY.replace("as s", "as s, hour.end as e"), "update", ("id", "e")),
    (LATE + UPDATE, f"select window.start as s, count(*) as n {FROM} group by window(ts, '1 hour')", "update", ("s",)),
    (LATE + UPDATE, f"select window(ts, '1 hour') as w, count(*) as n {FROM} group by window(ts, '1 hour')", "update", ("w",)),
    (LATE + UPDATE, f"select upper(o.id) as u, o.ts, count(*) as n {FROM} o group by upper(o.id), ts", "update", ("u", "ts")),
    (STREAM + UPDATE + "unique_key: id", f"select id, ts, count(*) as n {FROM} group by rollup(id, ts)", "update", ("id",)),
]  # fmt: skip


MAPS = (
    "id string, m map<string, string>, s struct<a int, m map<string, int>>, l array<map<string, int>>, "
    "d struct<x struct<y struct<z struct<m map<string, int>>>>>"
)
KEYS_OF_MAPS = [
    ("m.A", "m.a"), ("s.m.A", "s.m.a"), ("o.s.m.A", "o.s.m.a"), ("l[0].A", "l[0].a"), ("d.x.y.z.m.A", "d.x.y.z.m.a"),
    ("upper(m.A)", "upper(m.a)"), ("m['A']", "m['a']"),
]  # fmt: skip
FIELDS = [
    ("s.A", "s.a"),
    ("o.S.a", "s.A"),
    ("d.X.y.Z", "D.x.Y.z"),
    ("d.X.y.Z.m.k", "D.x.Y.z.M.k"),
    ("l[0].k", "L[0].k"),
]


def by_each(pairs: list[tuple[str, str]], keys: str) -> dict[str, str | bytes]:
    files = orders_with(MAPS)
    for number, (one, other) in enumerate(pairs):
        query = f"select {one} as x, {other} as y, count(*) as n {FROM} o group by {keys.format(one, other)}"
        files |= model(STREAM + UPDATE + "unique_key: x", query, name=f"m{number}")
    return files


def test_two_keys_of_a_map_are_two_keys_of_the_table(tmp_path):
    found = findings(tmp_path, by_each(KEYS_OF_MAPS, "{0}, {1}"))
    expected = {f"m{n}" for n in range(len(KEYS_OF_MAPS))}
    assert {one.node for one in found if one.code == "update-needs-key"} == expected


def test_another_key_of_a_map_is_not_grouped_by(tmp_path):
    found = findings(tmp_path, by_each(KEYS_OF_MAPS, "{0}"))
    assert {one.node for one in found if one.code == "agg-not-grouped"} == {f"m{n}" for n in range(len(KEYS_OF_MAPS))}


def test_fields_of_structs_have_any_letter_case(tmp_path):
    clean(tmp_path, by_each(FIELDS, "{0}"))


@pytest.mark.slow
@pytest.mark.parametrize(("header", "sql", "mode", "key"), MODES, ids=lambda value: str(value)[-40:])
def test_output_mode_and_key(header, sql, mode, key, tmp_path):
    # Some of these queries would be refused by the rules of streaming; the mode is inferred all the same.
    write = compiled(tmp_path, model(header, sql)).manifest.model("a").write
    assert (write.output_mode, write.unique_key) == (OutputMode(mode), key)


# settings and the defaults of folders


def test_a_default_that_needs_another_key_is_reported_at_the_model(tmp_path):
    files = {
        "project.yml": PROJECT + "models:\n  +sequence_by: ts\n",
        "models/a.sql": f"/*---\n{STREAM}---*/\n{ORDERS}",
        "models/b.sql": f"/*---\n{MERGE}---*/\n{ORDERS}",
        "models/c.sql": ORDERS,
    }
    finding = (
        "setting-needs models/a.sql:1:1 'sequence_by' needs 'unique_key' ('sequence_by' comes from project.yml:7:3)"
    )
    check(tmp_path, files, finding)


def test_a_setting_and_a_default_that_exclude_each_other(tmp_path):
    files = {
        "project.yml": PROJECT + "models:\n  +output_mode: complete\n",
        **model(MERGE, BY_ID),
        "models/b.sql": ORDERS,
    }
    finding = "setting-conflict models/a.sql:3:1 'unique_key' cannot be combined with 'output_mode: complete' in project.yml:7:3"
    check(tmp_path, files, finding)


# columns that settings name


@pytest.mark.parametrize(
    "sql",
    [
        f"(select id, ts as x, amount as ATT {FROM})",
        f"select *, id as att {FROM}",
        f"select * from (select id as att, ts {FROM})",
        f"select id, 1 as att {FROM} union all select id, 2 {FROM}",
    ],
)
def test_columns_that_the_select_may_have(sql, tmp_path):
    clean(tmp_path, model(STREAM + "unique_key: att", sql))
