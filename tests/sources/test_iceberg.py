"""Iceberg tables that others write, as sources: written by plain Spark and by PyIceberg, read by builds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
import yaml

from engine.lake.table_facts import SnapshotFacts
from tests.fault_injection.points import reached
from tests.lab import Lab, writable_catalog

pytestmark = pytest.mark.spark

STREAM = "/*---\nstreams: [shop.orders]\n---*/\nselect * from {{ source('shop', 'orders') }}\n"
HOURLY = """/*---
streams: {shop.orders: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, count(*) as n from {{ source('shop', 'orders') }} group by hour
"""


class Foreign:
    """A table of somebody else, in the lake of the lab."""

    def __init__(self, lab: Lab, columns: str = "id int, at timestamp, kind string", properties: str = "") -> None:
        self.lab = lab
        self.schema = f"x{lab.schema}"
        self.name = f"lake.{self.schema}.orders"
        self.sql(f"create namespace if not exists lake.{self.schema}")
        self.make(columns, properties)
        self.declare()

    def sql(self, text: str) -> Any:
        return self.lab.session.spark.sql(text)  # type: ignore[union-attr]

    def make(self, columns: str, properties: str = "") -> None:
        self.sql(f"create table {self.name} ({columns}) using iceberg tblproperties ('format-version'='2'{properties})")

    def declare(self, *lines: str, schema: str = "id int, at timestamp, kind string") -> None:
        columns = (f'schema: "{schema}"',) if schema else ()
        more = "".join(f"        {line}\n" for line in (*columns, *lines))
        self.lab.write(
            "sources/shop.yml",
            "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: iceberg\n"
            f"        table: {self.schema}.orders\n{more}",
        )

    def add(self, *ids: int, at: str = "10:00") -> int:
        """Rows in one commit of several files; a later commit has a later time."""
        time.sleep(0.002)
        rows = ", ".join(f"({i}, timestamp '2024-05-01 {at}:00', 'k{i}')" for i in ids)
        self.sql(
            f"insert into {self.name} select /*+ repartition({len(ids)}, id) */ * from values {rows} as v(id, at, kind)"
        )
        return self.history[0].id

    def tidy(self, *, expire: bool) -> None:
        """What maintenance does: files are put together, old snapshots go."""
        self.sql(
            f"call lake.system.rewrite_data_files(table => '{self.schema}.orders', options => map('rewrite-all', 'true'))"
        )
        assert self.history[0].operation == "replace"
        if expire:
            moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
            self.sql(
                f"call lake.system.expire_snapshots(table => '{self.schema}.orders', older_than => timestamp '{moment}', "
                "retain_last => 1)"
            )
            assert len(self.history) == 1

    @property
    def history(self) -> tuple[SnapshotFacts, ...]:
        found = self.lab._lake().table(self.schema, "orders")
        assert found is not None
        return found.history

    def plain_stream(self) -> list[int]:
        """What Spark alone reads, with a checkpoint of its own."""
        spark, got = self.lab.session.spark, []  # type: ignore[union-attr, var-annotated]
        query = (
            spark.readStream.format("iceberg")
            .load(self.name)
            .writeStream.foreachBatch(lambda frame, _: got.extend(r["id"] for r in frame.collect()))
            .option("checkpointLocation", str(self.lab.root / "plain"))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return sorted(got)


@pytest.fixture
def orders(lab: Lab) -> Iterator[Foreign]:
    made = Foreign(lab)
    yield made
    made.sql(f"drop table if exists {made.name} purge")


def seeds(lab: Lab) -> list[str]:
    return sorted(name for name in lab._lake().names(lab.schema) if "__seed" in name)


def test_a_table_that_spark_writes_is_read_from_its_first_row_on_commit_by_commit(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM.replace("select *", "select id, at, _metadata.table as origin"))
    lab.model("whole", "select count(*) as n from {{ source('shop', 'orders') }}\n")
    orders.add(1, 2, 3)
    orders.add(4, 5, 6)
    assert all(int(snapshot.summary["added-data-files"]) > 1 for snapshot in orders.history)
    first = lab.build().model("copy")
    # All that waits, whole commits, in one micro-batch.
    assert (first["rows_in"], first["batches"]) == (6, 1)
    assert {row["origin"] for row in lab.rows("copy")} == {orders.name}
    assert lab.rows("whole") == [{"n": 6}]
    again = lab.build()
    assert [again.model(name)["status"] for name in ("copy", "whole")] == ["unchanged", "unchanged"]
    # A compaction between builds: nothing is read again, nothing is lost.
    orders.add(7)
    orders.tidy(expire=False)
    orders.add(8)
    assert lab.build().model("copy")["rows_in"] == 2
    assert lab.ids("copy") == list(range(1, 9))
    assert lab.rows("whole") == [{"n": 8}]
    # A reader that comes now finds all commits: no seed is needed, though files were rewritten.
    lab.model("late", STREAM)
    assert lab.build("-s", "late").model("late")["rows_in"] == 8
    assert lab.ids("late") == list(range(1, 9))
    assert seeds(lab) == []


def test_a_table_that_pyiceberg_writes(lab: Lab) -> None:
    catalog = writable_catalog(lab.lake_path)
    schema = f"x{lab.schema}"
    catalog.create_namespace(schema)
    kinds = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("tags", pa.list_(pa.string()))])
    table = catalog.create_table(f"{schema}.orders", schema=kinds)

    def add(*numbers: int) -> None:
        at = datetime(2024, 5, 1, 10, tzinfo=UTC)
        rows = [{"id": n, "at": at, "tags": [f"t{n}"]} for n in numbers]
        table.append(pa.Table.from_pylist(rows, schema=kinds))

    body = f"format: iceberg\n        table: lake.{schema}.orders\n        schema: id bigint, at timestamp, tags array<string>"
    lab.write("sources/shop.yml", f"sources:\n  - name: shop\n    tables:\n      - name: orders\n        {body}\n")
    lab.model("copy", STREAM)
    lab.model("hourly", HOURLY)
    assert lab.build().model("copy")["rows_in"] == 0
    add(1, 2)
    add(3)
    lab.build()
    assert sorted((r["id"], r["tags"]) for r in lab.rows("copy")) == [(1, ["t1"]), (2, ["t2"]), (3, ["t3"])]
    add(4)
    assert [lab.build().model(name)["rows_in"] for name in ("copy", "hourly")] == [1, 0]
    assert lab.ids("copy") == [1, 2, 3, 4]


def test_a_stream_begins_where_it_is_told_to(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM)
    orders.add(1)
    second = orders.add(2)
    at = orders.history[0].at
    orders.add(3)
    orders.declare(f"starting_snapshot: {second}")
    lab.build()
    assert lab.ids("copy") == [2, 3]
    orders.add(4)
    lab.build()
    assert lab.ids("copy") == [2, 3, 4]
    moment = datetime.fromtimestamp((at + 1) / 1000, UTC).isoformat()
    orders.declare(f"starting_timestamp: {moment}")
    lab.build("-f")
    assert lab.ids("copy") == [3, 4]
    # Ahead of the newest commit: what is there is older, what comes is not.
    orders.declare(f"starting_timestamp: {datetime.now(UTC).isoformat()}")
    lab.build("-f")
    assert lab.ids("copy") == []
    orders.add(5)
    lab.build()
    orders.add(6)
    lab.build()
    assert lab.ids("copy") == [5, 6]
    orders.declare("starting_snapshot: 5")
    refused = lab.run("build", "-f")
    assert (refused.code, refused.codes()) == (1, ["upstream-history"])
    orders.tidy(expire=True)
    orders.declare(f"starting_timestamp: {moment}")
    refused = lab.run("build", "-f")
    assert (refused.code, refused.codes()) == (1, ["upstream-history"])
    assert lab.ids("copy") == [5, 6]


@pytest.mark.nightly
def test_a_new_reader_of_a_table_without_its_history_reads_every_row(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM)
    lab.model("hourly", HOURLY)
    for number, at in enumerate(("10:05", "10:50", "11:40"), 1):
        orders.add(number, at=at)
    orders.tidy(expire=True)
    # Spark alone finds none of them.
    assert orders.plain_stream() == []
    assert [lab.build().model(name)["rows_in"] for name in ("copy", "hourly")] == [3, 0]
    assert lab.ids("copy") == [1, 2, 3]
    assert seeds(lab) == ["copy__seed1_shop_orders", "hourly__seed1_shop_orders"]
    (seed,) = lab._lake().table(lab.schema, seeds(lab)[0]).history  # type: ignore[union-attr]
    assert seed.marker("model") == "copy"
    hours = {r["hour"].astimezone(UTC).hour: r["n"] for r in lab.rows("hourly")}
    assert hours == {10: 2}

    # It goes on behind the seed, and one watermark is over both: 10:10 is late, 11:35 is not.
    orders.add(4, at="10:10")
    orders.add(5, at="11:35")
    orders.add(6, at="13:30")
    result = lab.build()
    assert (result.model("copy")["rows_in"], result.model("hourly")["late"]) == (3, 1)
    orders.tidy(expire=False)
    orders.add(7, at="13:31")
    lab.build()
    assert lab.ids("copy") == [1, 2, 3, 4, 5, 6, 7]
    hours = {r["hour"].astimezone(UTC).hour: r["n"] for r in lab.rows("hourly")}
    assert hours == {10: 2, 11: 2}

    # A full refresh has an initial snapshot of its own; the old one is kept with its generation, for a rollback.
    orders.tidy(expire=True)
    lab.build("-f", "-s", "copy")
    assert lab.ids("copy") == [1, 2, 3, 4, 5, 6, 7]
    assert seeds(lab) == ["copy__seed1_shop_orders", "copy__seed2_shop_orders", "hourly__seed1_shop_orders"]
    orders.add(8)
    lab.build("-s", "copy")
    assert lab.ids("copy") == list(range(1, 9))


def test_commits_that_take_rows_away_stop_a_stream_by_name(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM)
    orders.sql(f"alter table {orders.name} set tblproperties ('write.delete.mode'='merge-on-read')")
    orders.add(1, 2)
    lab.build()
    orders.sql(f"delete from {orders.name} where id = 1")
    gone = orders.history[0]
    assert gone.operation == "delete"
    orders.add(3)
    refused = lab.run("build")
    assert (refused.code, refused.codes()) == (1, ["upstream-rewritten"])
    assert str(gone.id) in refused.text
    assert "'delete'" in refused.text
    assert "on_upstream_delete: ignore" in refused.text
    orders.declare("on_upstream_delete: ignore")
    lab.build()
    assert lab.ids("copy") == [1, 2, 3]
    # Passing over an overwrite would lose the row that it brings; nothing allows that.
    orders.sql(
        f"merge into {orders.name} t using (select 3 as id union all select 9) s on t.id = s.id "
        "when matched then update set kind = 'x' when not matched then insert (id) values (s.id)"
    )
    rewritten = orders.history[0]
    assert rewritten.operation == "overwrite"
    refused = lab.run("build")
    assert (refused.code, refused.codes()) == (1, ["upstream-rewritten"])
    assert str(rewritten.id) in refused.text
    assert "on_upstream_delete" not in refused.text
    assert lab.ids("copy") == [1, 2, 3]
    # The way on: anew, from the rows as they are, with a warning that it will stop again.
    again = lab.run("build", "-f")
    assert (again.code, again.codes()) == (0, ["upstream-rewritten"])
    assert lab.ids("copy") == [2, 3, 9]
    orders.add(10)
    assert lab.build().codes() == []
    assert lab.ids("copy") == [2, 3, 9, 10]


def test_a_table_that_is_not_the_one_that_was_read_stops_a_stream(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM)
    first = orders.add(1)
    orders.add(2)
    lab.build()
    orders.sql(f"call lake.system.rollback_to_snapshot('{orders.schema}.orders', {first})")
    orders.add(3)
    rolled = lab.run("build")
    assert (rolled.code, rolled.codes()) == (1, ["upstream-replaced"])
    assert "rolled back" in rolled.text
    lab.build("-f")
    assert lab.ids("copy") == [1, 3]

    # Read up to a snapshot that has expired, with one behind it that was not read.
    orders.add(4)
    orders.add(5)
    orders.tidy(expire=True)
    expired = lab.run("build")
    assert (expired.code, expired.codes()) == (1, ["upstream-history"])
    assert "has expired" in expired.text
    lab.build("-f")
    assert lab.ids("copy") == [1, 3, 4, 5]

    orders.sql(f"drop table {orders.name} purge")
    missing = lab.run("build")
    assert (missing.code, missing.codes()) == (1, ["source-table"])
    orders.make("id int, at timestamp, kind string")
    orders.add(7)
    other = lab.run("build")
    assert (other.code, other.codes()) == (1, ["upstream-replaced"])
    assert "dropped and recreated" in other.text
    assert lab.ids("copy") == [1, 3, 4, 5]


def test_snapshots_that_were_read_may_expire(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM)
    orders.add(1)
    lab.build()
    orders.add(2)
    lab.build()
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    orders.sql(
        f"call lake.system.expire_snapshots(table => '{orders.schema}.orders', older_than => timestamp '{moment}')"
    )
    assert len(orders.history) == 1
    orders.add(3)
    lab.build()
    assert lab.ids("copy") == [1, 2, 3]


def test_columns_that_change_upstream(orders: Foreign) -> None:
    lab = orders.lab
    lab.model("copy", STREAM.replace("select *", "select id, kind"))
    lab.model("all", STREAM)
    orders.declare(schema="")
    orders.add(1)
    lab.build()
    orders.sql(f"alter table {orders.name} add column note string")
    orders.sql(f"insert into {orders.name} values (2, null, 'k2', 'new')")
    # Added: a query that names its columns goes on, one that takes all has to be told what to do with it.
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["unknown-columns", "table-schema"])
    assert lab.ids("copy") == [1, 2]
    assert lab.ids("all") == [1]
    lab.model("all", STREAM.replace("select *", "select id, at, kind"))
    lab.build()
    # Retyped and gone: told with the difference, before anything is written.
    before = lab.snapshots()
    orders.sql(f"alter table {orders.name} alter column id type bigint")
    orders.sql(f"alter table {orders.name} rename column note to remark")
    result = lab.run("build", "-s", "copy")
    assert (result.code, result.codes()) == (1, ["unknown-columns", "source-columns"])
    assert "id int: is bigint now" in result.text
    assert "note string: is gone" in result.text
    orders.declare(schema="id int, at timestamp, kind string")
    result = lab.run("build", "-s", "copy")
    assert (result.code, result.codes()) == (1, ["source-columns"])
    assert "id int: the table has bigint" in result.text
    assert lab.snapshots() == before
    orders.declare(schema="id bigint, at timestamp, kind string")
    lab.build("-f", "-s", "copy")
    assert lab.ids("copy") == [1, 2]


def test_a_table_that_is_not_listed_is_read_anew_in_each_micro_batch(orders: Foreign) -> None:
    lab = orders.lab
    lab.write(
        "sources/files.yml",
        "sources:\n  - name: f\n    tables:\n      - name: events\n        format: json\n        path: landing/events\n"
        '        schema: "id int"\n        max_files_per_trigger: 1\n',
    )
    lab.model(
        "joined",
        "/*---\nstreams: [f.events]\npost_hook: []\n---*/\n"
        "select e.id, o.kind from {{ source('f', 'events') }} e left join {{ source('shop', 'orders') }} o on e.id = o.id\n",
    )
    lab.land("a", [{"id": 1}])
    lab.land("b", [{"id": 2}])
    orders.add(1)
    with reached("appended", lambda *_: orders.add(2), times=1) as seen:
        assert lab.build().model("joined")["batches"] == 2
    assert seen
    assert sorted((r["id"], r["kind"]) for r in lab.rows("joined")) == [(1, "k1"), (2, "k2")]


def test_inspect_and_freshness_need_no_java(orders: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = orders.lab
    orders.sql(
        f"alter table {orders.name} add columns (item struct<name: string, prices: array<decimal(9, 2)>>, m map<string, bigint>)"
    )
    orders.sql(f"alter table {orders.name} alter column id comment 'Unique.'")
    orders.declare("freshness: {warn_after: 1 hour}", schema="")
    for module in ("inspect_source", "source_freshness"):
        monkeypatch.setattr(
            f"engine.runtime.operations.{module}.spark_session", lambda *_, **__: pytest.fail("starts Java")
        )
    empty = lab.run("source", "freshness")
    assert empty.code == 1
    assert "there is no row" in empty.text
    inspected = lab.run("source", "inspect", "shop.orders")
    assert inspected.code == 0, inspected.text
    (source,) = yaml.safe_load(inspected.out)["sources"]
    (table,) = source["tables"]
    assert " ".join(table.pop("schema").split()) == (
        "id int, at timestamp, kind string, item struct<name: string, prices: array<decimal(9,2)>>, m map<string, bigint>"
    )
    assert table == {
        "name": "orders",
        "format": "iceberg",
        "table": f"{orders.schema}.orders",
        "columns": {"id": "Unique."},
    }
    lab.write("sources/shop.yml", inspected.out)
    assert lab.run("compile").codes() == ["no-models"]
    orders.sql(f"insert into {orders.name} (id) values (1)")
    orders.declare("freshness: {warn_after: 1 hour}")
    fresh = lab.run("source", "freshness")
    assert fresh.code == 0, fresh.text
    (found,) = json.loads((lab.root / "target/sources.json").read_text())["results"]
    assert found["status"] == "pass"


def test_freshness_from_the_rows(orders: Foreign) -> None:
    lab = orders.lab
    orders.add(1)
    orders.declare("loaded_at_field: at", "freshness: {error_after: 1 day}")
    result = lab.run("source", "freshness")
    assert result.code == 1
    assert '"status": "error"' in result.out
