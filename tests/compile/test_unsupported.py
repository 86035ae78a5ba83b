"""What settings mean for a table that stands, and what this version compiles and cannot run."""

from __future__ import annotations

import pytest

from engine.compile.nodes.facts import plain
from engine.compile.pipeline.unsupported import unsupported_settings
from tests.project.small_projects import FROM, HOUR, LATE, MERGE, ORDERS, PROJECT, STREAM, clean, lines, made, model

SEQUENCE = MERGE + "sequence_by: ts\n"


BY_ID = f"select id, count(*) as n {FROM} group by id"
UPDATE = "output_mode: update\n"
HOURLY = f"select hour.start as s, id, count(*) as n {FROM} group by hour, id"


# fingerprints

BASE = (
    SEQUENCE
    + "delete_when: amount < 0\npartition_by: day(ts)\nexpectations: [{name: a, check: amount > 0, on_fail: drop}]\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("unique_key: id", "unique_key: [id, item]"),
        ("sequence_by: ts", "sequence_by: amount"),
        ("amount < 0", "amount <= 0"),
        ("partition_by: day(ts)", "partition_by: day(ts) as day"),
        ("partition_by: day(ts)", "partition_by: hour(ts)"),
        ("on_fail: drop", "on_fail: warn"),
        ("on_fail: drop", "on_fail: quarantine"),
        ("amount > 0", "amount > 1"),
        ("partition_by", "history: true\npartition_by"),
        ("partition_by", "exclude: item\npartition_by"),
        ("shop.orders", "{shop.orders: {watermark: {column: ts, delay: 1 hour, max_future: 1 hour}}}"),
    ],
)
def test_settings_that_change_what_a_model_means(before, after, tmp_path):
    one = made(tmp_path / "1", BASE)
    text = BASE.replace(before, after, 1) if before != "shop.orders" else BASE.replace("[shop.orders]", after)
    assert one.fingerprint != made(tmp_path / "2", text).fingerprint


@pytest.mark.parametrize(
    "more",
    [
        "title: x\ndescription: y\ntags: [a]\nmeta: {a: b}",
        "trigger: every 1 minute\nschedule: 0 6 * * *",
        "pre_hook: call x()\npost_hook: call y()\nexplain: true",
        "table_properties: {a: b}\nwrite_options: {fanout-enabled: true}\nformat_version: 2\nsort_by: id",
        "publish: on_tests_pass\non_schema_change: ignore\nfull_refresh: false\npersist_docs: true",
        "deletes_remembered: 1 day",
        "columns: {id: {type: string}}",
    ],
)
def test_settings_that_do_not_change_what_a_model_means(more, tmp_path):
    assert made(tmp_path / "1", BASE).fingerprint == made(tmp_path / "2", BASE + more).fingerprint


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("delete_when: amount < 0", "delete_when: AMOUNT<0"),
        ("unique_key: id", "unique_key: [ID]"),
        (
            "{name: a, check: amount > 0, on_fail: drop}",
            "{name: b, check: amount>0, on_fail: drop}, {name: a, check: id > 0}",
        ),
    ],
)
def test_spellings_of_the_same_settings(before, after, tmp_path):
    assert made(tmp_path / "1", BASE).fingerprint == made(tmp_path / "2", BASE.replace(before, after)).fingerprint


def test_an_older_fingerprint_stays(tmp_path):
    """Facts of keys that came later are written only where they are said: no deployed model looks changed."""
    a = made(tmp_path, LATE + HOUR + "partition_by: day(s)", HOURLY)
    stored = plain(a.facts)
    assert set(stored) == {
        "form",
        "materialized",
        "relation",
        "sql",
        "windows",
        "inputs",
        "output_mode",
        "partition_by",
        "state",
        "stateful",
    }
    assert [*stored["partition_by"]] == [{"transform": "day", "column": "s", "number": None}]
    assert set(stored["inputs"][0]["watermark"]) == {"column", "delay", "expression"}


# what this version compiles and cannot run

LATER = [
    (BASE + "deletes_remembered: 1 day\nexclude: item", None),
    (SEQUENCE + "history: true", None),
    (STREAM + UPDATE, None),
    (STREAM + "output_mode: complete", None),
    (STREAM + "trigger: every 1 minute\nschedule: 0 6 * * *\nstate_store: {partitions: 4, provider: rocksdb}", None),
    ("expectations: [{name: a, check: id > 0}]", None),
    ("publish: on_tests_pass", None),
    (STREAM + "publish: on_tests_pass", None),
    ("publish: immediately\nformat_version: 2\non_schema_change: fail\noverwrite: table", None),
    ("full_refresh: true\nexplain: false\npersist_docs: {relation: true}", None),
    ("full_refresh: false", None),
    ("partition_by: id\ntable_properties: {a: b}", None),
    ("sort_by: id\nwrite_options: {fanout-enabled: true}\nformat_version: 3\non_schema_change: ignore", None),
    (MERGE + "write_options: {fanout-enabled: true}", "4:1 the option 'fanout-enabled' of 'write_options' with a 'unique_key'"),
    (MERGE + "write_options: {target-file-size-bytes: 1}", "4:1 the option 'target-file-size-bytes' of 'write_options' with a 'unique_key'"),
    (MERGE + "write_options: {Compression-Codec: gzip, distribution-mode: none, snapshot-property.team: sales}", None),
    ("overwrite: partitions\npartition_by: day(ts) as day", None),
    ("pre_hook: call x()\npost_hook: call x()", None),
    ("explain: true", None),
    ("persist_docs: true", None),
    (STREAM + "state_store: {provider: hdfs}\ntrigger: once", None),
    ("streams: {shop.orders: {watermark: {column: ts, delay: 1 hour, max_future: 1 hour}}}", None),
]  # fmt: skip


@pytest.mark.parametrize(("header", "finding"), LATER, ids=lambda value: str(value)[-40:])
def test_what_cannot_be_run_yet_is_named_at_its_place(header, finding, tmp_path):
    a = made(tmp_path, header, BY_ID if "output_mode" in header else ORDERS)
    said = [f"not-supported models/a.sql:{finding} is not supported yet"] if finding else []
    assert lines(unsupported_settings(a)) == said
    assert all(d.hint and d.node == "a" for d in unsupported_settings(a))


def test_the_setting_of_a_folder(tmp_path):
    files = {"project.yml": PROJECT + "models:\n  +publish: on_tests_pass\n", **model("", "select id from {{ this }}")}
    (found,) = lines(unsupported_settings(clean(tmp_path, files).model("a")))
    assert found.startswith("not-supported project.yml:7:3 publish: on_tests_pass of a query that reads {{ this }}")


def test_a_query_that_reads_its_own_table_cannot_wait_for_tests(tmp_path):
    a = made(tmp_path, STREAM + "publish: on_tests_pass", ORDERS + " where id not in (select id from {{ this }})")
    (found,) = unsupported_settings(a)
    assert "{{ this }}" in found.message
