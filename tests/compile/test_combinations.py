"""Settings that belong together: output mode and key, what needs or excludes what, columns of the SELECT."""

from __future__ import annotations

import pytest

from engine.compile import OutputMode
from tests.project.small_projects import ORDERS, PROJECT, clean, compiled, findings, line, only

FROM = "from {{ source('shop', 'orders') }}"
STREAM = "streams: [shop.orders]\n"
LATE = "streams: {shop.orders: {watermark: ts delay 1 hour}}\n"
HOUR = "windows: {hour: 'tumbling(ts, 1 hour)'}\n"
GAP = "windows: {gap: 'session(ts, 5 minutes)'}\n"
MERGE = STREAM + "unique_key: id\n"
SEQUENCE = MERGE + "sequence_by: ts\n"


def model(header: str, sql: str = ORDERS) -> dict[str, str | bytes]:
    return {"models/a.sql": f"/*---\n{header.rstrip()}\n---*/\n{sql}"}


def made(root, header: str, sql: str = ORDERS):
    return clean(root, model(header, sql)).model("a")


def check(root, files, finding: str, hint: str = "") -> None:
    """The one finding, and words of its hint; every fault here has a way out."""
    found = only([d for d in findings(root, files) if not d.code.startswith("unbounded-")])
    assert line(found) == finding
    assert found.hint
    assert hint in found.hint


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


@pytest.mark.parametrize(("header", "sql", "mode", "key"), MODES, ids=lambda value: str(value)[-40:])
def test_output_mode_and_key(header, sql, mode, key, tmp_path):
    # Some of these queries would be refused by the rules of streaming; the mode is inferred all the same.
    write = compiled(tmp_path, model(header, sql)).manifest.model("a").write
    assert (write.output_mode, write.unique_key) == (OutputMode(mode), key)


BAD_KEYS = [
    (STREAM + UPDATE, ORDERS, "update-needs-key models/a.sql:3:1 output_mode 'update' needs a 'unique_key'", "merged by its key"),
    (STREAM + UPDATE, f"select count(*) as n {FROM}", "update-needs-key models/a.sql:3:1 output_mode 'update' needs a 'unique_key'", ""),
    (STREAM + UPDATE, f"select count(*) as n {FROM} group by id",
     "update-needs-key models/a.sql:3:1 the query groups by 'id', and the SELECT has no column of it", "Add the grouping column"),
    (LATE + HOUR + UPDATE, f"select id, count(*) as n {FROM} group by hour, id",
     "update-needs-key models/a.sql:4:1 the query groups by 'hour', and the SELECT has no column of it", "its start"),
    (LATE + HOUR + UPDATE + "unique_key: id", HOURLY,
     "update-needs-key models/a.sql:5:1 'unique_key' is not what the query groups by (s, id), and output_mode is 'update'",
     "unique_key: [s, id]"),
    (LATE + HOUR + "unique_key: id", HOURLY,
     "update-needs-key models/a.sql:4:1 'unique_key' is not what the query groups by (s, id), and output_mode is 'update'",
     "output_mode: append"),
    (MERGE + UPDATE, f"select id, count(*) as n {FROM} group by id, ts",
     "update-needs-key models/a.sql:4:1 the query groups by 'ts', and the SELECT has no column of it", ""),
    (LATE + GAP + UPDATE, HOURLY.replace("hour", "gap"),
     "session-mode models/a.sql:3:16 the session window 'gap' does not run in update mode (output_mode in line 4)", "append"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "sql", "finding", "hint"), BAD_KEYS, ids=lambda value: str(value)[:40])
def test_keys_that_do_not_fit_update_mode(header, sql, finding, hint, tmp_path):
    check(tmp_path, model(header, sql), finding, hint)


@pytest.mark.parametrize(
    ("header", "sql", "why"),
    [
        ("unique_key: id", ORDERS, "its rows are replaced by newer ones (it has a unique_key)"),
        ("output_mode: update", BY_ID, "its rows are replaced by newer ones (it has a unique_key)"),
        ("output_mode: complete", BY_ID, "it is rewritten in each micro-batch (output_mode: complete)"),
    ],
)
def test_a_table_whose_rows_change_is_no_stream(header, sql, why, tmp_path):
    files = {
        "models/b.sql": f"/*---\n{STREAM}{header}\n---*/\n{sql}",
        **model("streams: [b]", "select * from {{ ref('b') }}"),
    }
    finding = f"stream-not-streamable models/a.sql:2:11 'b' cannot be read as a stream: {why}"
    check(tmp_path, files, finding, "read in full")


# settings that need or exclude each other

TOGETHER = [
    (STREAM + "sequence_by: ts", "setting-needs models/a.sql:3:1 'sequence_by' needs 'unique_key'", "unique_key: id"),
    (MERGE + "delete_when: amount < 0", "setting-needs models/a.sql:4:1 'delete_when' needs 'sequence_by'", "sequence_by"),
    (MERGE + "history: true", "setting-needs models/a.sql:4:1 'history' needs 'sequence_by'", "sequence_by"),
    (STREAM + "exclude: id", "setting-needs models/a.sql:3:1 'exclude' needs 'unique_key'", "out of the SELECT"),
    (SEQUENCE + "deletes_remembered: 1 day", "setting-needs models/a.sql:5:1 'deletes_remembered' needs 'delete_when'", ""),
    ("overwrite: partitions", "setting-needs models/a.sql:2:1 'overwrite: partitions' needs 'partition_by'", "partition_by: day(ts)"),
    ("contract: true", "setting-needs models/a.sql:2:1 'contract' needs 'columns' with their types", "columns:"),
    ("contract: true\ncolumns: {id: {type: string}, ts: {description: x}}",
     "setting-needs models/a.sql:3:31 the column 'ts' has no 'type', and 'contract' in line 2 needs it", "type: string"),
    (MERGE + "output_mode: complete",
     "setting-conflict models/a.sql:3:1 'unique_key' cannot be combined with 'output_mode: complete' in line 4", "update"),
    (STREAM + "output_mode: complete\npublish: on_tests_pass",
     "setting-conflict models/a.sql:4:1 'publish: on_tests_pass' cannot be combined with 'output_mode: complete' in line 3", "immediately"),
    (SEQUENCE + "history: true\npublish: on_tests_pass",
     "setting-conflict models/a.sql:6:1 'publish: on_tests_pass' cannot be combined with 'history: true' in line 5", "immediately"),
    ("format_version: 2\ntable_properties: {format-version: 3}",
     "setting-conflict models/a.sql:2:1 'format_version' is not the 'format-version' of 'table_properties' in line 3", "alone"),
    (MERGE + "exclude: [amount, id]",
     "setting-conflict models/a.sql:4:19 'exclude' drops 'id', which 'unique_key' in line 3 needs", ""),
    (SEQUENCE + "exclude: TS", "setting-conflict models/a.sql:5:10 'exclude' drops 'TS', which 'sequence_by' in line 4 needs", ""),
    (MERGE + "partition_by: day(ts)\nexclude: ts",
     "setting-conflict models/a.sql:5:10 'exclude' drops 'ts', which 'partition_by' in line 4 needs", ""),
    (MERGE + "exclude: ts\nsort_by: ts desc",
     "setting-conflict models/a.sql:4:10 'exclude' drops 'ts', which 'sort_by' in line 5 needs", ""),
    ("partition_by: [ts, ts]", "partition-clash models/a.sql:2:20 'ts' is partitioned by twice, in the same way", ""),
    ("partition_by: [day(ts), hour(ts)]", "partition-clash models/a.sql:2:25 'ts' is partitioned by twice, by two units of time", "finer"),
    ('partition_by: ["bucket(8, id)", "bucket(16, id)"]',
     "partition-clash models/a.sql:2:33 two partition fields are called 'id_bucket'", "as id_part"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "finding", "hint"), TOGETHER, ids=lambda value: str(value)[-50:])
def test_settings_that_need_or_exclude_each_other(header, finding, hint, tmp_path):
    check(tmp_path, model(header), finding, hint)


KINDS = [
    *[(f"{key}: {value}", f"'{key}' is for streaming tables")
      for key, value in {"unique_key": "id", "sequence_by": "ts", "delete_when": "amount < 0", "history": "true",
                         "exclude": "id", "deletes_remembered": "1 day", "trigger": "every 1 minute",
                         "state_store": "{partitions: 2}", "output_mode": "update"}.items()],
    (STREAM + "overwrite: table", "'overwrite' is for batch tables"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "message"), KINDS)
def test_keys_that_fit_one_kind_of_model(header, message, tmp_path):
    at = header.count("\n") + 2
    check(tmp_path, model(header), f"bad-value models/a.sql:{at}:1 {message}", "Remove it")


@pytest.mark.parametrize(
    "setting",
    ["partition_by: id", "sort_by: id", "write_options: {fanout-enabled: true}", "format_version: 2", "on_schema_change: fail",
     "publish: on_tests_pass", "expectations: []", "full_refresh: false", "schedule: '@daily'"],
)  # fmt: skip
def test_keys_that_mean_nothing_for_a_view(setting, tmp_path):
    files = {"models/b.sql": ORDERS, **model(f"materialized: view\n{setting}", "select * from {{ ref('b') }}")}
    key = setting.partition(":")[0]
    check(tmp_path, files, f"bad-value models/a.sql:3:1 '{key}' does not apply to a view", "Remove it")


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

SELECT = f"select id, ts as at, amount {FROM}"
NAMED = [
    (STREAM + "unique_key: [id, att]", "3:18 'unique_key' names 'att', which the SELECT does not have"),
    (MERGE + "sequence_by: ts", "4:14 'sequence_by' names 'ts', which the SELECT does not have"),
    (MERGE + "sequence_by: at\ndelete_when: amout < 0", "5:14 'delete_when' names 'amout', which the SELECT does not have"),
    (MERGE + "exclude: op", "4:10 'exclude' names 'op', which the SELECT does not have"),
    ("partition_by: day(ts)", "2:15 'partition_by' names 'ts', which the SELECT does not have"),
    ("sort_by: [id, ts desc]", "2:15 'sort_by' names 'ts', which the SELECT does not have"),
    ("expectations: [{name: a, check: data.x > 0}]", "2:33 'expectations' names 'data', which the SELECT does not have"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "finding"), NAMED)
def test_columns_that_the_select_does_not_have(header, finding, tmp_path):
    check(tmp_path, model(header, SELECT), f"unknown-column models/a.sql:{finding}")


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


@pytest.mark.parametrize("sql", [ORDERS, f"select id, item.* {FROM}", f"select id, amount + 1 {FROM}"])
def test_columns_that_no_input_of_a_star_has(sql, tmp_path):
    finding = "unknown-column models/a.sql:2:33 'expectations' names 'amout', which the SELECT does not have"
    check(tmp_path, model("expectations: [{name: a, check: amout > 0}]", sql), finding)


def test_the_columns_of_a_history_are_not_those_of_the_select(tmp_path):
    files = model(SEQUENCE + "history: true", f"select id, ts, amount as valid_to {FROM}")
    finding = "setting-conflict models/a.sql:5:1 'history' adds the column 'valid_to', which is already in the SELECT"
    check(tmp_path, files, finding)


@pytest.mark.parametrize("text", ["day(ts) as amount", "bucket(2, id) as ID"])
def test_a_partition_field_is_not_called_like_a_column(text, tmp_path):
    found = findings(tmp_path, model(f'partition_by: "{text}"', f"select id, ts, amount {FROM}"))
    assert only(found).code == ("bad-name" if "ID" in text else "partition-clash")
