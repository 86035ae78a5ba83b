"""The settings of a model: what each key is read as, and which of several places wins."""

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
from engine.compile.nodes.model_settings import History
from engine.schema.model_keys import MODEL
from engine.sources import OnBadRecord
from tests.project.small_projects import (
    FROM,
    LATE,
    MERGE,
    ORDERS,
    PROJECT,
    SEQUENCE,
    SOURCES,
    STREAM,
    check,
    clean,
    findings,
    made,
    model,
)

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
    (SEQUENCE + "history: true", "history", History.VERSIONS),
    (STREAM + "history: false", "history", History.NONE),
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
    ("table_properties: {history.expire.max-snapshot-age-ms: 0, gc.enabled: 'FALSE'}", "table_properties",
     {"history.expire.max-snapshot-age-ms": "0", "gc.enabled": "FALSE"}),
    ("table_properties: {a.b: 1}", "table_properties", {"a.b": "1"}),
    ("sort_by: id", "sort_by", (SortColumn("id"),)),
    ("sort_by: [id, ts DESC nulls last, amount asc NULLS FIRST]", "sort_by",
     (SortColumn("id"), SortColumn("ts", descending=True, nulls_first=False), SortColumn("amount", nulls_first=True))),
    ("sort_by: id, ts desc", "sort_by", (SortColumn("id"), SortColumn("ts", descending=True))),
    ("partition_by: id", "partition_by", (Partition("identity", "id"),)),
    ("partition_by: days(ts)", "partition_by", (Partition("day", "ts"),)),
    ("partition_by: Bucket( 16, `id` )", "partition_by", (Partition("bucket", "id", 16),)),
    ("partition_by: truncate(4, id)", "partition_by", (Partition("truncate", "id", 4),)),
    ("partition_by: day(ts) as day", "partition_by", (Partition("day", "ts", name="day"),)),
    ("partition_by: day(ts) AS `day`, bucket(16, id) as part, amount", "partition_by",
     (Partition("day", "ts", name="day"), Partition("bucket", "id", 16, "part"), Partition("identity", "amount"))),
    ('partition_by: ["bucket(16, id) as part", hours(ts)]', "partition_by",
     (Partition("bucket", "id", 16, "part"), Partition("hour", "ts"))),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("header", "key", "value"), WRITES, ids=lambda value: str(value)[:40])
def test_how_rows_reach_the_table(header, key, value, tmp_path):
    assert getattr(made(tmp_path, header).write, key) == value


OPERATIONS = [
    (STREAM + "trigger: every 30 seconds", "trigger", Trigger(TriggerKind.EVERY, "30 seconds")),
    (STREAM + "trigger: Every  1 Minute", "trigger", Trigger(TriggerKind.EVERY, "1 minutes")),
    (STREAM + "trigger: as fast as it goes", "trigger", Trigger()),
    (STREAM + "trigger: every 0 seconds", "trigger", Trigger()),
    (STREAM, "trigger", Trigger()),
    (STREAM + "trigger: once", "trigger", Trigger(TriggerKind.ONCE)),
    ("schedule: 0 6 * * *", "schedule", "0 6 * * *"),
    ("schedule: 0-59/5  6,18 1-15 jan-mar mon", "schedule", "0-59/5 6,18 1-15 jan-mar mon"),
    ("schedule: '@daily'", "schedule", "@daily"),
    (STREAM + "stalled_after: 2 hours", "stalled_after", "2 hours"),
    (STREAM, "stalled_after", None),
    (STREAM + "keep_previous: 14 days", "keep_previous", "14 days"),
    (STREAM + "keep_previous: 0 days", "keep_previous", "0 days"),
    (STREAM, "keep_previous", "7 days"),
    ("renamed_from: old_orders", "renamed_from", "old_orders"),
    (STREAM + "renamed_from: main.old_orders", "renamed_from", "main.old_orders"),
    ("tags: []", "renamed_from", ""),
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


@pytest.mark.slow
def test_a_value_that_fails_makes_one_message(tmp_path):
    keys = [
        key
        for key in MODEL.names
        if key not in {"streams", "materialized", "enabled", "tests", "data_tests", "windows", "columns"}
    ]
    batch = {"overwrite", "refresh", "check", "deletes", "on_empty_extract"}
    header = STREAM + "".join(f"{key}: \"{{{{ var('x') }}}}\"\n" for key in keys if key not in batch)
    codes = {d.code for d in findings(tmp_path, model(header))}
    assert codes == {"var-missing"}


# where settings are set


@pytest.mark.slow
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


DEFAULTS = """
models:
  +unique_key: id
  +overwrite: table
  +output_mode: append
  +partition_by: day(ts)
  +sort_by: id
  +publish: on_tests_pass
  +trigger: every 1 minute
"""


def test_defaults_that_do_not_fit_a_kind_are_skipped(tmp_path):
    files = {
        "project.yml": PROJECT + DEFAULTS,
        **model(STREAM),
        "models/b.sql": ORDERS,
        **model("materialized: view", "select * from {{ ref('b') }}", "c"),
    }
    models = {m.name: m for m in clean(tmp_path, files).models}
    day, by_id = (Partition("day", "ts"),), (SortColumn("id"),)
    writes = {name: m.write for name, m in models.items()}
    assert {n: (w.output_mode, w.unique_key, w.partition_by, w.sort_by, w.publish) for n, w in writes.items()} == {
        "a": ("append", ("id",), day, by_id, Publish.ON_TESTS_PASS),
        "b": (None, (), day, by_id, Publish.ON_TESTS_PASS),
        "c": (None, (), (), (), Publish.IMMEDIATELY),
    }
    assert models["b"].operation.trigger == Trigger()


def test_the_types_of_a_source_are_those_of_its_schema(tmp_path):
    described = SOURCES + "        columns: {id: {type: string}, name: {type: int}}\n"
    finding = "setting-conflict sources/shop.yml:12:39 'name' is int here and string in the schema"
    check(tmp_path, {"sources/shop.yml": described}, finding, "Set it once")
