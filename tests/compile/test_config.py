"""The settings of a model: what each key is read as, what is refused where, and where they are said."""

from __future__ import annotations

import pytest

from engine.compile import (
    Expectation,
    OnFail,
    OnSchemaChange,
    OnUpstreamDelete,
    Overwrite,
    Partition,
    PersistDocs,
    Publish,
    SortColumn,
    StateProvider,
    Trigger,
    TriggerKind,
    Watermark,
)
from engine.errors import Level
from engine.schema.model_keys import MODEL
from engine.sources import OnBadRecord
from tests.project.small_projects import ORDERS, PROJECT, SOURCES, clean, compiled, findings, line, only

FROM = "from {{ source('shop', 'orders') }}"
STREAM = "streams: [shop.orders]\n"
LATE = "streams: {shop.orders: {watermark: ts delay 1 hour}}\n"
MERGE = STREAM + "unique_key: id\n"
SEQUENCE = MERGE + "sequence_by: ts\n"


def model(header: str, sql: str = ORDERS) -> dict[str, str | bytes]:
    return {"models/a.sql": f"/*---\n{header.rstrip()}\n---*/\n{sql}"}


def made(root, header: str, sql: str = ORDERS):
    return clean(root, model(header, sql)).model("a")


def check(root, files, finding: str, hint: str = "") -> None:
    """The one finding, and words of its hint; every fault here has a way out."""
    found = only(findings(root, files))
    assert line(found) == finding
    assert found.hint
    assert hint in found.hint


# what is read

WRITES = [
    (MERGE, "unique_key", ("id",)),
    (STREAM + "unique_key: [id, '`ts`']", "unique_key", ("id", "ts")),
    (SEQUENCE, "sequence_by", ("ts",)),
    (MERGE + "sequence_by: [ts, amount]", "sequence_by", ("ts", "amount")),
    (SEQUENCE + "delete_when: amount < 0 or id is null", "delete_when", "amount < 0 or id is null"),
    (SEQUENCE + "delete_when: item.price = 0", "delete_when", "item.price = 0"),
    (SEQUENCE + "delete_when: amount < 0\ndeletes_remembered: 1 day", "deletes_remembered", "1 days"),
    (SEQUENCE + "delete_when: amount < 0", "deletes_remembered", "7 days"),
    (SEQUENCE + "history: true", "history", True),
    (STREAM + "history: false", "history", False),
    (MERGE + "exclude: [amount, item]", "exclude", ("amount", "item")),
    ("overwrite: table", "overwrite", Overwrite.TABLE),
    ("overwrite: partitions\npartition_by: day(ts)", "overwrite", Overwrite.PARTITIONS),
    ("publish: on_tests_pass", "publish", Publish.ON_TESTS_PASS),
    ("publish: immediately", "publish", Publish.IMMEDIATELY),
    ("on_schema_change: append_columns", "on_schema_change", OnSchemaChange.APPEND_COLUMNS),
    ("tags: [a]", "on_schema_change", OnSchemaChange.FAIL),
    ("format_version: 3", "format_version", 3),
    ("format_version: '2'", "format_version", 2),
    ("write_options: {fanout-enabled: true, target-file-size-bytes: 1000}", "write_options",
     {"fanout-enabled": "true", "target-file-size-bytes": "1000"}),
    ("table_properties: {a.b: 1}", "table_properties", {"a.b": "1"}),
    ("sort_by: id", "sort_by", (SortColumn("id"),)),
    ("sort_by: [id, ts DESC nulls last, amount asc NULLS FIRST]", "sort_by",
     (SortColumn("id"), SortColumn("ts", descending=True, nulls_first=False), SortColumn("amount", nulls_first=True))),
    ("sort_by: id, ts desc", "sort_by", (SortColumn("id"), SortColumn("ts", descending=True))),
    ("partition_by: day(ts) as day", "partition_by", (Partition("day", "ts", name="day"),)),
    ("partition_by: day(ts) AS `day`, bucket(16, id) as part, amount", "partition_by",
     (Partition("day", "ts", name="day"), Partition("bucket", "id", 16, "part"), Partition("identity", "amount"))),
    ('partition_by: ["bucket(16, id) as part", hours(ts)]', "partition_by",
     (Partition("bucket", "id", 16, "part"), Partition("hour", "ts"))),
]  # fmt: skip


@pytest.mark.parametrize(("header", "key", "value"), WRITES, ids=lambda value: str(value)[:40])
def test_how_rows_reach_the_table(header, key, value, tmp_path):
    assert getattr(made(tmp_path, header).write, key) == value


OPERATIONS = [
    (STREAM + "trigger: every 30 seconds", "trigger", Trigger(TriggerKind.EVERY, "30 seconds")),
    (STREAM + "trigger: Every  1 Minute", "trigger", Trigger(TriggerKind.EVERY, "1 minutes")),
    (STREAM + "trigger: as fast as it goes", "trigger", Trigger()),
    (STREAM + "trigger: every 0 seconds", "trigger", Trigger()),
    (STREAM, "trigger", Trigger()),
    ("schedule: 0 6 * * *", "schedule", "0 6 * * *"),
    ("schedule: 0-59/5  6,18 1-15 jan-mar mon", "schedule", "0-59/5 6,18 1-15 jan-mar mon"),
    ("schedule: '@daily'", "schedule", "@daily"),
    ("full_refresh: false", "full_refresh", False),
    ("tags: []", "full_refresh", None),
    ("pre_hook: grant select on t to u;", "pre_hook", ("grant select on t to u",)),
    ('post_hook: [call x.y(), "optimize t"]', "post_hook", ("call x.y()", "optimize t")),
    ("explain: true", "explain", True),
    ("persist_docs: {relation: true}", "persist_docs", PersistDocs(relation=True, columns=False)),
    ("persist_docs: false", "persist_docs", PersistDocs(relation=False, columns=False)),
    (STREAM + "state_store: {provider: hdfs}", "state_provider", StateProvider.HDFS),
]  # fmt: skip


@pytest.mark.parametrize(("header", "key", "value"), OPERATIONS, ids=lambda value: str(value)[:40])
def test_how_it_is_run(header, key, value, tmp_path):
    assert getattr(made(tmp_path, header).operation, key) == value


def test_expectations(tmp_path):
    header = """expectations:
  - name: paid
    check: amount > 0 and item.price is not null
  - {name: known, check: "exists(array(1), x -> x > 0) or id rlike '^[a-z]'", on_fail: quarantine}
"""
    assert made(tmp_path, header).expectations == (
        Expectation("paid", "amount > 0 and item.price is not null", OnFail.WARN),
        Expectation("known", "exists(array(1), x -> x > 0) or id rlike '^[a-z]'", OnFail.QUARANTINE),
    )


@pytest.mark.parametrize("key", ["type", "data_type"])
@pytest.mark.parametrize("contract", ["true", "{enforced: true}"])
def test_a_contract_and_its_types(key, contract, tmp_path):
    header = f"contract: {contract}\ncolumns: {{id: {{{key}: STRING}}, ts: {{{key}: timestamp_ltz}}}}"
    a = made(tmp_path, header, "select id, ts from {{ source('shop', 'orders') }}")
    assert (a.contract, [(c.name, c.type) for c in a.columns][:2]) == (True, [("id", "string"), ("ts", "timestamp")])


def test_a_contract_that_is_off(tmp_path):
    assert not made(tmp_path, "contract: {enforced: false}").contract


def test_a_title(tmp_path):
    assert made(tmp_path, "title: All orders").title == "All orders"


def test_a_bound_for_the_future(tmp_path):
    header = "streams: {shop.orders: {watermark: {column: ts, delay: 1 hour, max_future: 2 days}}}"
    assert made(tmp_path, header).inputs[0].watermark == Watermark("ts", "1 hours", max_future="2 days")


def test_what_a_stream_does_at_a_delete(tmp_path):
    files = {
        **model("streams: {b: {on_upstream_delete: ignore}}", "select * from {{ ref('b') }}"),
        "models/b.sql": f"/*---\n{STREAM}---*/\n{ORDERS}",
    }
    assert clean(tmp_path, files).model("a").inputs[0].on_upstream_delete is OnUpstreamDelete.IGNORE


def test_what_becomes_of_records_that_a_stream_cannot_take(tmp_path):
    a = made(tmp_path, "streams: {shop.orders: {on_bad_record: quarantine}}")
    assert a.inputs[0].on_bad_record is OnBadRecord.QUARANTINE
    assert made(tmp_path, "streams: [shop.orders]").inputs[0].on_bad_record is None


def test_a_session_whose_gap_is_an_expression(tmp_path):
    header = LATE + "windows: {gap: \"session(ts, case when id = 'x' then '5 minutes' else '1 hour' end)\"}"
    a = made(tmp_path, header, f"select gap.start as s, id, count(*) as n {FROM} group by gap, id")
    assert a.windows["gap"].sql == "session_window(ts, case when id = 'x' then '5 minutes' else '1 hour' end)"
    assert "session_window(ts, case when" in a.sql


# values that cannot be read

VALUES = [
    (STREAM + "unique_key: []", "bad-value models/a.sql:3:13 'unique_key' names no column", ""),
    (STREAM + "unique_key: id, ts", "bad-value models/a.sql:3:13 'id, ts' is not a column", "unique_key: [id, ts]"),
    (STREAM + "unique_key: upper(id)", "bad-value models/a.sql:3:13 'upper(id)' is not a column", "SELECT"),
    (STREAM + "unique_key: [id, ID]", "duplicate-name models/a.sql:3:18 'unique_key' names 'ID' twice", ""),
    (STREAM + "output_mode: updat", "bad-value models/a.sql:3:14 'output_mode' cannot be 'updat'", "update"),
    (SEQUENCE + "delete_when: op =", "condition-syntax models/a.sql:5:14 'op =' is not an SQL expression", "amount > 0"),
    (SEQUENCE + "delete_when: amount < 0\ndeletes_remembered: 7",
     "bad-duration models/a.sql:6:21 '7' is not a duration", "7 days"),
    (SEQUENCE + "delete_when: amount < 0\ndeletes_remembered: 0 days",
     "bad-value models/a.sql:6:21 'deletes_remembered' must be greater than zero", "7 days"),
    ("overwrite: partition", "bad-value models/a.sql:2:12 'overwrite' cannot be 'partition'", "'partitions'"),
    ("publish: on_test_pass", "bad-value models/a.sql:2:10 'publish' cannot be 'on_test_pass'", "'on_tests_pass'"),
    ("on_schema_change: append_new_columns",
     "bad-value models/a.sql:2:19 'on_schema_change' cannot be 'append_new_columns'", "'append_columns'"),
    ("on_schema_change: sync_all_columns",
     "bad-value models/a.sql:2:19 'on_schema_change' cannot be 'sync_all_columns'", ""),
    ("format_version: 1", "bad-value models/a.sql:2:17 'format_version' cannot be '1'", "2, 3"),
    ("write_options: {overwrite-mode: dynamic}",
     "bad-value models/a.sql:2:17 the option 'overwrite-mode' is set by the engine", ""),
    ("write_options: {snapshot-property.engine.model: b}",
     "bad-value models/a.sql:2:17 the option 'snapshot-property.engine.model' is set by the engine", ""),
    ("sort_by: id descending", "bad-value models/a.sql:2:10 'id descending' is not a column to sort by", "desc"),
    ("sort_by: [id, id desc]", "duplicate-name models/a.sql:2:15 'sort_by' names 'id' twice", ""),
    ("partition_by: day(ts) as Day", "bad-name models/a.sql:2:15 'Day' is not a name", ""),
    ("partition_by: day(ts) day", "bad-value models/a.sql:2:15 'day(ts) day' is not a partition field", "day"),
    (STREAM + "trigger: 30 seconds", "bad-value models/a.sql:3:10 '30 seconds' is not a trigger", "every 30 seconds"),
    (STREAM + "trigger: every 30", "bad-duration models/a.sql:3:10 '30' is not a duration", "every 30 seconds"),
    (STREAM + "trigger: available_now", "bad-value models/a.sql:3:10 'available_now' is not a trigger", "Remove it"),
    (STREAM + "trigger: hourly", "bad-value models/a.sql:3:10 'hourly' is not a trigger", "every 30 seconds"),
    (STREAM + "trigger: continuous 1 second",
     "trigger-continuous models/a.sql:3:10 the trigger 'continuous 1 second' cannot be run", "exactly-once"),
    ("schedule: 0 6 * *", "schedule-syntax models/a.sql:2:11 '0 6 * *' is not a schedule: it has 4 fields and not 5", "0 6 * * mon-fri"),
    ("schedule: 61 6 * * *", "schedule-syntax models/a.sql:2:11 '61 6 * * *' is not a schedule: '61' is not a minute (0 to 59)", ""),
    ("schedule: 0 9-6 * * *", "schedule-syntax models/a.sql:2:11 '0 9-6 * * *' is not a schedule: '9-6' is not an hour (0 to 23)", ""),
    ("schedule: 0 0 * * moon",
     "schedule-syntax models/a.sql:2:11 '0 0 * * moon' is not a schedule: 'moon' is not a day of the week (0 to 7)", ""),
    ("pre_hook: \"select 'a\"", "sql-syntax models/a.sql:2:11 'select 'a' cannot be read", "one SQL statement"),
    ("post_hook: [call a(); call b()]", "sql-syntax models/a.sql:2:13 'call a(); call b()' cannot be read", ""),
    ("persist_docs: {relations: true}", "unknown-key models/a.sql:2:16 persist_docs has no key 'relations'", "'relation'"),
    (STREAM + "state_store: {provider: rocks}", "bad-value models/a.sql:3:25 'provider' cannot be 'rocks'", "rocksdb"),
    ("contract: {enforce: true}", "unknown-key models/a.sql:2:12 a contract has no key 'enforce'", "enforced"),
    ("columns: {id: {type: strin}}",
     "bad-schema models/a.sql:2:22 the column 'id' has the type 'strin', which Spark does not know", "'string'"),
    ("columns: {id: {type: 5}}", "bad-schema models/a.sql:2:22 the column 'id' has the type '5', which Spark does not know", ""),
    ("columns: {id: {type: string not null}}", "bad-schema models/a.sql:2:22 the type of the column 'id' has 'not' after its end", ""),
    ("streams: {shop.orders: {on_upstream_delete: ignor}}", "bad-value models/a.sql:2:45 'on_upstream_delete' cannot be 'ignor'", "'ignore'"),
    ("streams: {shop.orders: {on_bad_record: skip}}", "bad-value models/a.sql:2:40 'on_bad_record' cannot be 'skip'", "Known: drop"),
    ("streams: {shop.orders: {on_upstream_delete: ignore}}",
     "bad-value models/a.sql:2:25 on_upstream_delete does not apply to the source 'shop.orders'", "Remove it"),
    ("streams: {shop.orders: {watermark: {column: ts, delay: 1 hour, max_future: soon}}}",
     "bad-duration models/a.sql:2:76 'soon' is not a duration", "1 hour"),
    ("streams: {shop.orders: {watermark: ts delay -5 minutes}}", "bad-duration models/a.sql:2:36 '-5 minutes' is not a duration", ""),
    ("windows: {w: 'sliding(ts, 10 minutes, 1 hour)'}", "window-syntax models/a.sql:2:14 the slide is longer than the window", ""),
    ("windows: {w: 'session(ts, 60)'}", "bad-duration models/a.sql:2:14 '60' is not a duration", "10 minutes"),
    ("windows: {w: 'session(ts, 60 * 2)'}", "bad-duration models/a.sql:2:14 '60 * 2' is not a duration", ""),
    ("windows: {w: 'session(ts, five minutes)'}", "bad-duration models/a.sql:2:14 'five minutes' is not a duration", ""),
]  # fmt: skip


@pytest.mark.parametrize(("header", "finding", "hint"), VALUES, ids=lambda value: str(value)[-50:])
def test_values_that_cannot_be_read(header, finding, hint, tmp_path):
    check(tmp_path, model(header), finding, hint)


@pytest.mark.parametrize(
    ("setting", "finding"),
    [
        ("history: maybe", "'history' must be true or false, not 'maybe'"),
        ("unique_key: {a: b}", "'unique_key' must be a list, not a mapping"),
        ("delete_when: 5", None),
        ("expectations: {a: b}", "'expectations' must be a list, not a mapping"),
        ("write_options: x", "'write_options' must be a mapping (key: value), not 'x'"),
        ("trigger: {every: 1 minute}", "'trigger' must be text, not a mapping"),
        ("pre_hook: [[a]]", "item 1 must be text, not a list"),
        ("explain: 1", "'explain' must be true or false, not the number 1"),
        ("full_refresh: no", "'full_refresh' must be true or false, not 'no'"),
        ("contract: x", "'contract' must be true or false, not 'x'"),
        ("sort_by: {a: b}", "'sort_by' must be a list, not a mapping"),
    ],
)
def test_types(setting, finding, tmp_path):
    wrong = [d for d in findings(tmp_path, model(STREAM + setting)) if d.code == "wrong-type"]
    assert [d.message for d in wrong] == ([finding] if finding else [])


EXPECTATIONS = [
    ("{check: amount > 0}", "missing-key models/a.sql:2:16 an expectation needs 'name' and 'check'", "name:"),
    ("{name: a}", "missing-key models/a.sql:2:16 an expectation needs 'name' and 'check'", "check:"),
    ("{name: Big One, check: amount > 0}", "bad-name models/a.sql:2:23 'Big One' is not a name", ""),
    ("{name: a, check: amount > 0, on_failure: drop}",
     "unknown-key models/a.sql:2:45 an expectation has no key 'on_failure'", "'on_fail'"),
    ("{name: a, check: amount > 0, on_fail: reject}", "bad-value models/a.sql:2:54 'on_fail' cannot be 'reject'", "quarantine"),
    ("{name: a, check: amount >}", "condition-syntax models/a.sql:2:33 'amount >' is not an SQL expression", ""),
    ("{name: a, check: amount as b}", "condition-syntax models/a.sql:2:33 'amount as b' is not an SQL expression", ""),
    ("{name: a, check: amount > 0 -- big}", "condition-syntax models/a.sql:2:33 'amount > 0 -- big' is not an SQL expression", ""),
    ("{name: a, check: sum(amount) > 0}",
     "condition-syntax models/a.sql:2:33 'sum(amount) > 0' needs several rows, but a condition is evaluated row by row", ""),
    ("{name: a, check: lag(id) over (order by ts) > 0}",
     "condition-syntax models/a.sql:2:33 'lag(id) over (order by ts) > 0' needs several rows, but a condition is evaluated row by row", ""),
    ("{name: a, check: id in (select id from t)}",
     "condition-syntax models/a.sql:2:33 'id in (select id from t)' reads a table, but a condition is evaluated on one row", ""),
    ("{name: a, check: amount + 1}", "condition-syntax models/a.sql:2:33 'amount + 1' is not true or false", ""),
    ("{name: a, check: 1}", "condition-syntax models/a.sql:2:33 '1' is not true or false", ""),
    ("{name: a, check: amount > 0}, {name: a, check: id > 0}",
     "duplicate-name models/a.sql:2:53 two expectations have the name 'a'", "another name"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "finding", "hint"), EXPECTATIONS)
def test_expectations_that_cannot_be_read(text, finding, hint, tmp_path):
    check(tmp_path, model(f"expectations: [{text}]"), finding, hint)


def test_once_is_a_warning(tmp_path):
    manifest = compiled(tmp_path, model(STREAM + "trigger: once")).manifest
    found = only(manifest.diagnostics)
    assert (found.level, line(found)) == (
        Level.WARNING,
        "trigger-once models/a.sql:3:10 trigger 'once' reads all unread data in one micro-batch, which changes which rows are late",
    )
    assert manifest.model("a").operation.trigger == Trigger(TriggerKind.ONCE)
    assert not manifest.model("a").broken


HABITS = [
    ("incremental_strategy: merge", "'unique_key' makes the write a MERGE"),
    ("merge_update_columns: [a]", "'exclude'"),
    ("on_configuration_change: apply", "on_schema_change"),
    ("pre-hook: select 1", "Write 'pre_hook'"),
    ("file_format: delta", "Iceberg"),
    ("updated_at: ts", "sequence_by: updated_at"),
    ("watermark: ts delay 1 hour", "streams: {flights: {watermark: ...}}"),
    ("checkpoint_location: /x", "Checkpoints are managed for you"),
    ("uniqe_key: id", "Did you mean 'unique_key'?"),
    ("output_modes: append", "Did you mean 'output_mode'?"),
]


@pytest.mark.parametrize(("setting", "hint"), HABITS)
@pytest.mark.parametrize("where", ["header", "folder"])
def test_habits_of_other_tools_have_named_answers(where, setting, hint, tmp_path):
    key = setting.partition(":")[0]
    if where == "header":
        check(tmp_path, model(setting), f"unknown-key models/a.sql:2:1 a model has no key '{key}'", hint)
        return
    files = {"project.yml": f"{PROJECT}models:\n  +{setting}\n", "models/a.sql": ORDERS}
    check(tmp_path, files, f"unknown-key project.yml:7:3 a model has no key '{key}'", hint)


def test_a_value_that_fails_makes_one_message(tmp_path):
    keys = [
        key
        for key in MODEL.names
        if key not in {"streams", "materialized", "enabled", "tests", "data_tests", "windows", "columns"}
    ]
    batch = {"overwrite"}
    header = STREAM + "".join(f"{key}: \"{{{{ var('x') }}}}\"\n" for key in keys if key not in batch)
    codes = {d.code for d in findings(tmp_path, model(header))}
    assert codes == {"var-missing"}


# where settings are said


def test_config_says_every_key_that_a_header_says(tmp_path):
    call = (
        "{{ config(streams=['shop.orders'], unique_key=['id'], sequence_by='ts', delete_when='amount < 0', "
        "deletes_remembered='2 days', partition_by=['day(ts) as day'], sort_by='id desc', format_version=2, "
        "trigger='every 1 minute', expectations=[{'name': 'a', 'check': 'amount > 0', 'on_fail': 'drop'}], "
        "pre_hook='call x()', full_refresh=false, persist_docs={'relation': true}) }}\n"
    )
    header = (
        SEQUENCE.replace("id\n", "[id]\n")
        + "delete_when: amount < 0\ndeletes_remembered: 2 days\npartition_by: [day(ts) as day]\n"
        "sort_by: id desc\nformat_version: 2\ntrigger: every 1 minute\npre_hook: call x()\nfull_refresh: false\n"
        "persist_docs: {relation: true}\nexpectations: [{name: a, check: amount > 0, on_fail: drop}]\n"
    )
    one = clean(tmp_path / "1", {"models/a.sql": call + ORDERS}).model("a")
    two = clean(tmp_path / "2", model(header)).model("a")
    assert (one.write, one.operation, one.expectations) == (two.write, two.operation, two.expectations)
    assert one.fingerprint == two.fingerprint


def test_the_place_of_a_key_in_config(tmp_path):
    text = "{{ config(\n  streams=['shop.orders'],\n  sequence_by='ts') }}\n" + ORDERS
    finding = "setting-needs models/a.sql:3:3 'sequence_by' needs 'unique_key'"
    check(tmp_path, {"models/a.sql": text}, finding)


def test_a_key_said_twice_differently(tmp_path):
    files = model(MERGE, "{{ config(unique_key=['id', 'ts']) }}" + ORDERS)
    finding = "config-conflict models/a.sql:5:11 'unique_key' is set twice to different values (also in line 3)"
    check(tmp_path, files, finding, "not in both")


PRECEDENCE = """
models:
  +unique_key: id
  +format_version: 2
  +on_schema_change: ignore
  +trigger: every 1 minute
  shop:
    +format_version: 3
  marts:
    +on_schema_change: append_columns
    daily:
      +trigger: every 1 hour
      +unique_key: [id, ts]
"""


@pytest.mark.parametrize(
    ("path", "header", "expected"),
    [
        ("a", "", (("id",), 3, "ignore", "1 minutes")),
        ("marts/a", "", (("id",), 3, "append_columns", "1 minutes")),
        ("marts/daily/a", "", (("id", "ts"), 3, "append_columns", "1 hours")),
        ("marts/daily/a", "unique_key: ts\n", (("ts",), 3, "append_columns", "1 hours")),
        ("marts/daily/a", "trigger: as fast as it goes\nformat_version: 2\n", (("id", "ts"), 2, "append_columns", None)),
        ("marts/daily/a", "{{ config(on_schema_change='fail') }}", (("id", "ts"), 3, "fail", "1 hours")),
    ],
)  # fmt: skip
def test_the_deeper_folder_wins_and_header_and_config_over_all(path, header, expected, tmp_path):
    call, header = (header, "") if header.startswith("{{") else ("", header)
    text = f"/*---\n{STREAM}{header}---*/\n{call}{ORDERS}"
    folders = {"project.yml": PROJECT + PRECEDENCE, "models/marts/daily/z.sql": ORDERS}
    a = clean(tmp_path, {**folders, f"models/{path}.sql": text}).model("a")
    write = a.write
    assert (write.unique_key, write.format_version, write.on_schema_change, a.operation.trigger.interval) == expected


def test_defaults_that_do_not_fit_a_kind_are_passed_over(tmp_path):
    defaults = "models:\n  +unique_key: id\n  +overwrite: table\n  +sort_by: id\n  +publish: on_tests_pass\n  +trigger: every 1 minute\n"
    files = {
        "project.yml": PROJECT + defaults,
        "models/a.sql": f"/*---\n{STREAM}---*/\n{ORDERS}",
        "models/b.sql": ORDERS,
        "models/c.sql": "/*---\nmaterialized: view\n---*/\nselect * from {{ ref('b') }}",
    }
    models = {m.name: m for m in clean(tmp_path, files).models}
    assert {name: (m.write.unique_key, m.write.sort_by, m.write.publish.value) for name, m in models.items()} == {
        "a": (("id",), (SortColumn("id"),), "on_tests_pass"),
        "b": ((), (SortColumn("id"),), "on_tests_pass"),
        "c": ((), (), "immediately"),
    }
    assert models["b"].operation.trigger == Trigger()


def test_the_types_of_a_source_are_those_of_its_schema(tmp_path):
    described = SOURCES + "        columns: {id: {type: string}, name: {type: int}}\n"
    finding = "setting-conflict sources/shop.yml:12:39 'name' is int here and string in the schema"
    check(tmp_path, {"sources/shop.yml": described}, finding, "Set it once")
