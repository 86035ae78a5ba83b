"""How tables are laid out: partition fields and their names, order, properties, format, schema changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.lab import Lab, event, writable_catalog

pytestmark = pytest.mark.spark

ALL = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
partition_by: [hour(at) as hour, 'bucket(4, id) as part', 'truncate(2, kind)', amount as money]
sort_by: [kind desc, id nulls last]
tags: [hourly, money]
description: All of them.
table_properties: {write.parquet.compression-codec: gzip}
write_options: {target-file-size-bytes: 1000000, snapshot-property.team: sales}
---*/
select * from {{ source('shop', 'events') }}
"""
BATCH = """/*---
materialized: table
partition_by: [month(at) as m, kind as k]
---*/
select * from {{ ref('all_of_them') }}
"""


def table_of(lab: Lab, name: str) -> Any:
    """The table as PyIceberg has it."""
    return writable_catalog(lab.lake_path).load_table((lab.schema, name))


def spec(table: Any) -> list[tuple[str, str, str]]:
    columns = {field.field_id: field.name for field in table.schema().fields}
    return [(f.name, str(f.transform), columns[f.source_id]) for f in table.spec().fields]


SPEC = [
    ("hour", "hour", "at"), ("part", "bucket[4]", "id"), ("kind_trunc", "truncate[2]", "kind"),
    ("money", "identity", "amount"),
]  # fmt: skip


def test_a_table_is_laid_out_as_its_model_says_from_its_first_snapshot_and_after_a_rebuild(lab: Lab) -> None:
    lab.model("all_of_them", ALL)
    lab.model("by_month", BATCH)
    lab.land("a", [event(1, "10:05"), event(2, "11:05", "open"), event(3, "2024-06-01T11:05")])
    lab.build()
    table = table_of(lab, "all_of_them")
    assert (spec(table), len(table.specs())) == (SPEC, 1)
    order = [(table.schema().find_column_name(f.source_id), f.direction.name, f.null_order.name)
             for f in table.sort_order().fields]  # fmt: skip
    assert order == [("kind", "DESC", "NULLS_LAST"), ("id", "ASC", "NULLS_LAST")]
    known = {
        "engine.tags": "hourly,money", "comment": "All of them.", "write.parquet.compression-codec": "gzip",
        "write.distribution-mode": "hash", "history.expire.min-snapshots-to-keep": "100",
    }  # fmt: skip
    assert known.items() <= dict(table.properties).items()
    assert table.current_snapshot().summary["team"] == "sales"
    assert spec(table_of(lab, "by_month")) == [("m", "month", "at"), ("k", "identity", "kind")]
    assert table_of(lab, "by_month").properties["history.expire.min-snapshots-to-keep"] == "3"
    # Partitions are used: a partition is a folder.
    files = table.inspect.files().to_pylist()
    assert {file["file_path"].split("/data/")[1].split("/")[0] for file in files} == {
        "hour=2024-05-01-10", "hour=2024-05-01-11", "hour=2024-06-01-11",
    }  # fmt: skip

    # Other properties reach the table that stands, and only them; a rebuild takes another layout and format.
    lab.model("all_of_them", ALL.replace("gzip", "snappy").replace("hourly, ", ""))
    before = lab.snapshot("all_of_them")
    lab.build("-s", "all_of_them")
    table = table_of(lab, "all_of_them")
    assert (table.properties["write.parquet.compression-codec"], table.properties["engine.tags"]) == ("snappy", "money")
    assert table.current_snapshot().snapshot_id == before
    changed = ALL.replace("hour(at) as hour", "day(at) as d").replace("tags:", "format_version: 3\ntags:")
    lab.model("all_of_them", changed)
    assert lab.run("build", "-s", "all_of_them").codes() == ["model-changed"]
    lab.build("-f")
    table = table_of(lab, "all_of_them")
    assert (spec(table), table.format_version) == ([("d", "day", "at"), *SPEC[1:]], 3)
    rows = sorted((r["id"], r["at"], r["kind"]) for r in lab.rows("by_month"))
    assert rows == [
        (1, datetime(2024, 5, 1, 10, 5, tzinfo=UTC), "paid"),
        (2, datetime(2024, 5, 1, 11, 5, tzinfo=UTC), "open"),
        (3, datetime(2024, 6, 1, 11, 5, tzinfo=UTC), "paid"),
    ]


COPY = """/*---
streams: [shop.events]
on_schema_change: {policy}
---*/
select {columns} from {{{{ source('shop', 'events') }}}}
"""


def test_a_new_column_is_added_or_left_out_or_refused(lab: Lab) -> None:
    policies = ("fail", "append_columns", "ignore")
    for policy in policies:
        lab.model(policy, COPY.format(policy=policy, columns="id, kind"))
    lab.land("a", [event(1, "10:05")])
    lab.build()
    for policy in policies:
        lab.model(policy, COPY.format(policy=policy, columns="amount, id, struct(kind as k, array(id) as ids) as more"))
    lab.land("b", [event(2, "10:05", amount=7.0)])
    rejected = lab.run("build")
    assert rejected.codes() == ["table-schema", "build-rejected"]
    (found, _) = [e for e in rejected.events if e["event"] == "Diagnosed"]
    assert found["message"] == (
        f"lake.{lab.schema}.fail has no column amount, more; lake.{lab.schema}.fail has the column kind, which the query no longer returns"
    )
    lab.build("--exclude", "fail")
    assert lab.rows("fail")[0] == {"id": 1, "kind": "paid"}
    # What the query does not give any more is NULL.
    assert {tuple(r.values()) for r in lab.rows("ignore")} == {(1, "paid"), (2, None)}
    found = {r["id"]: r for r in lab.rows("append_columns")}
    assert found[1] == {"id": 1, "kind": "paid", "amount": None, "more": None}
    assert found[2] == {"id": 2, "kind": None, "amount": 7.0, "more": {"k": "paid", "ids": [2]}}
    again = lab.snapshots()
    lab.build("--exclude", "fail")
    assert lab.snapshots() == again


@pytest.mark.nightly
def test_a_column_that_the_table_was_partitioned_by_gets_another_type(lab: Lab) -> None:
    lab.land("a", [event(1)])
    daily = "/*---\npartition_by: {by}\n---*/\nselect id, {at} as at from {{{{ source('shop', 'events') }}}}\n"
    types = {"at": "timestamptz", "cast(at as string)": "string", "named_struct('of', at)": "struct<"}
    for at, type_ in [*types.items(), *types.items()]:
        lab.model("daily", daily.format(by="id" if type_ == "struct<" else "day(at)" if at == "at" else "at", at=at))
        # Another type at once, or another partitioning before it: both tables are read by all.
        lab.build()
        table = lab.table("daily")
        assert table is not None
        assert dict(table.columns)["at"].startswith(type_)
        assert len(lab.rows("daily")) == 1
        assert lab.session is not None
        assert lab.session.spark.sql(f"select at from lake.{lab.schema}.daily where at is not null").count() == 1


MERGED = """/*---
streams: [shop.events]
unique_key: id
write_options: {Compression-Codec: gzip, distribution-mode: none, snapshot-property.team: sales}
---*/
select id, kind from {{ source('shop', 'events') }}
"""


@pytest.mark.nightly
def test_a_merge_takes_the_options_that_a_session_can_give_it(lab: Lab) -> None:
    from pyarrow.parquet import ParquetFile

    lab.model("merged", MERGED)
    lab.model("plain", MERGED.replace("write_options", "# write_options"))
    for number in (1, 2):
        lab.land(str(number), [{"id": 1, "at": "2024-05-01T10:00:00Z", "kind": f"{number}", "amount": 1.0}])
        lab.build("--threads", "2")
    found = {}
    for name in ("merged", "plain"):
        table = table_of(lab, name)
        paths = [file["file_path"].removeprefix("file:") for file in table.inspect.files().to_pylist()]
        codecs = {ParquetFile(path).metadata.row_group(0).column(0).compression for path in paths}
        found[name] = (codecs, table.current_snapshot().summary.additional_properties.get("team"))
    # Neither the table nor the other model beside it, in the same session of Spark, is told.
    assert found == {"merged": ({"GZIP"}, "sales"), "plain": ({"ZSTD"}, None)}
    assert table_of(lab, "merged").properties.get("write.parquet.compression-codec") in {None, "zstd"}
    assert [(row["id"], row["kind"]) for row in lab.rows("merged")] == [(1, "2")]
