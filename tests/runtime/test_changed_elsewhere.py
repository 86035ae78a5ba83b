"""Tables and views that another program changed without a commit of rows: plain Spark, beside the builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCES = sources_yaml(orders={"format": "iceberg", "table": "SCHEMA.orders"})
TABLE = "/*---\nmaterialized: table\n---*/\n"
STREAM = "/*---\nstreams: [shop.orders]\n---*/\n"
VIEW = "/*---\nmaterialized: view\n---*/\n"
ORDERS = "{{ source('shop', 'orders') }}"


@dataclass
class Shop:
    """A project over a table of somebody else, who has a session of Spark."""

    lab: Lab
    schema: str = field(init=False)

    def __post_init__(self) -> None:
        self.schema = f"x{self.lab.schema}"
        self.lab.write("sources/shop.yml", SOURCES.replace("SCHEMA", self.schema))
        self.sql(f"create namespace lake.{self.schema}")
        self.sql(
            f"create table {self.orders} (id int, item struct<sku: string, n: int>, kind string) using iceberg "
            "tblproperties ('format-version'='2')"
        )
        self.insert(1)

    @property
    def orders(self) -> str:
        return f"lake.{self.schema}.orders"

    def own(self, name: str) -> str:
        return f"lake.{self.lab.schema}.{name}"

    def sql(self, text: str) -> list[Any]:
        assert self.lab.session is not None
        return self.lab.session.spark.sql(text).collect()

    def insert(self, number: int) -> None:
        self.sql(f"insert into {self.orders} values ({number}, named_struct('sku', 's', 'n', {number}), 'k{number}')")

    def rows(self, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.sql(f"select {columns} from {self.own(name)}")), key=str)

    def planned(self, name: str) -> dict[str, Any]:
        events = self.lab.run("plan", "-s", name, "--output", "json").events
        (found,) = [e for e in events if e.get("name") == name and "action" in e]
        return found

    def built(self, name: str) -> str:
        return str(self.lab.build("-s", name).model(name)["status"])


@pytest.fixture
def shop(lab: Lab) -> Shop:
    return Shop(lab)


def again(table: str, column: str, kind: str) -> list[str]:
    return [f"alter table {table} drop column {column}", f"alter table {table} add column {column} {kind}"]


def test_a_column_of_an_input_that_is_dropped_and_added_again_rebuilds_what_reads_it(shop: Shop) -> None:
    lab = shop.lab
    lab.model("copy", f"{TABLE}select id, kind, item.n as n from {ORDERS}\n")
    lab.model("kinds", f"{TABLE}select kind from {{{{ ref('copy') }}}}\n")
    lab.build()
    assert shop.built("copy") == "unchanged"
    for change in (again(shop.orders, "kind", "string"), again(shop.orders, "item.n", "int")):
        for text in change:
            shop.sql(text)
        assert shop.planned("copy")["unchanged"] is False
        lab.build()
        assert shop.rows("copy") == [tuple(row) for row in shop.sql(f"select id, kind, item.n from {shop.orders}")]
    assert shop.rows("copy") == [(1, None, None)]
    assert shop.built("copy") == "unchanged"


EDITS: dict[str, Callable[[str], list[str]]] = {
    "a column dropped and added again": lambda t: again(t, "kind", "string"),
    "a column dropped": lambda t: [f"alter table {t} drop column kind"],
    "a column renamed": lambda t: [f"alter table {t} rename column kind to sort"],
    "a column added": lambda t: [f"alter table {t} add column more int"],
    "a column widened": lambda t: [f"alter table {t} alter column id type bigint"],
    "two columns swapped": lambda t: [
        f"alter table {t} rename column kind to x", f"alter table {t} rename column other to kind",
        f"alter table {t} rename column x to other"],
    "another partitioning": lambda t: [f"alter table {t} add partition field bucket(4, id)"],
    "another order": lambda t: [f"alter table {t} write ordered by id"],
    "other properties": lambda t: [f"alter table {t} set tblproperties ('write.parquet.compression-codec'='gzip')"],
    "a rollback": lambda t: [f"insert into {t} values (7, 'x', 'x')"],
}  # fmt: skip


def test_a_batch_table_that_another_program_changed_is_made_again(shop: Shop) -> None:
    lab = shop.lab
    header = "materialized: table\ntable_properties: {write.parquet.compression-codec: zstd}"
    lab.model("copy", f"/*---\n{header}\n---*/\nselect id, kind, 'o' as other from {ORDERS}\n")
    lab.build()
    assert shop.built("copy") == "unchanged"
    wrong = []
    for what, edit in EDITS.items():
        for text in edit(shop.own("copy")):
            shop.sql(text)
        planned = shop.planned("copy")["unchanged"]
        lab.build("-s", "copy")
        found = shop.rows("copy"), shop.planned("copy")["unchanged"]
        if planned is not False or found != ([(1, "k1", "o")], True):
            wrong.append((what, planned, found))
    assert wrong == []
    table = lab.table("copy")
    assert table is not None
    assert table.properties["write.parquet.compression-codec"] == "zstd"


def test_a_tag_that_is_read_and_moves_rebuilds_its_reader_only(shop: Shop) -> None:
    lab = shop.lab
    lab.model("copy", f"{STREAM}select id from {ORDERS}\n")
    lab.model("tagged", f"{TABLE}select id from {{{{ ref('copy') }}}} version as of 'audit'\n")
    lab.model("all_ids", f"{TABLE}select id from {{{{ ref('copy') }}}}\n")
    lab.build("-s", "copy")
    shop.sql(f"alter table {shop.own('copy')} create tag audit")
    shop.insert(2)
    lab.build()
    assert (shop.rows("tagged"), shop.rows("all_ids")) == ([(1,)], [(1,), (2,)])
    assert (shop.built("tagged"), shop.built("all_ids")) == ("unchanged", "unchanged")
    shop.sql(f"alter table {shop.own('copy')} create or replace tag audit")
    assert (shop.planned("tagged")["unchanged"], shop.planned("all_ids")["unchanged"]) == (False, True)
    assert (shop.built("tagged"), shop.built("all_ids")) == ("success", "unchanged")
    assert shop.rows("tagged") == [(1,), (2,)]


def test_a_view_that_another_program_replaced_is_made_again(shop: Shop) -> None:
    lab = shop.lab
    lab.model("copy", f"{TABLE}select id, kind from {ORDERS}\n")
    lab.model("seen", f"{VIEW}select id from {{{{ ref('copy') }}}}\n")
    lab.build()
    assert shop.built("seen") == "unchanged"
    shop.sql(f"create or replace view {shop.own('seen')} as select id + 100 as id from {shop.own('copy')}")
    assert shop.planned("seen")["unchanged"] is False
    lab.build()
    assert shop.rows("seen") == [(1,)]
    assert shop.planned("seen")["unchanged"] is True


@pytest.mark.nightly_cases("False")
@pytest.mark.parametrize("declared", [False, True])
def test_unread_rows_with_values_of_a_column_that_was_added_again_stop_a_stream(shop: Shop, declared: bool) -> None:
    lab = shop.lab
    if declared:
        text = (lab.root / "sources/shop.yml").read_text().replace("orders}", "orders, schema: 'id int, kind string'}")
        lab.write("sources/shop.yml", text)
    lab.model("kinds", f"{STREAM}select id, kind from {ORDERS}\n")
    lab.model("ids", f"{STREAM}select id from {ORDERS}\n")
    lab.build()
    # Nothing is unread: new rows have the new column.
    for text in again(shop.orders, "kind", "string"):
        shop.sql(text)
    lab.build()
    shop.sql(f"insert into {shop.orders} (id, kind) values (2, 'k2')")
    for text in again(shop.orders, "kind", "string"):
        shop.sql(text)
    shop.sql(f"insert into {shop.orders} (id, kind) values (3, 'k3')")
    assert "source-columns" in str(shop.planned("kinds")["refusals"])
    rejected = lab.run("build", "-s", "kinds")
    assert rejected.code == 1
    assert "source-columns" in rejected.codes(), rejected.text
    assert shop.rows("kinds") == [(1, "k1")]
    lab.build("-s", "ids")
    assert shop.rows("ids") == [(1,), (2,), (3,)]
    lab.build("-f", "-s", "kinds")
    assert shop.rows("kinds") == [(1, None), (2, None), (3, "k3")]


def test_a_data_test_runs_again_when_its_table_was_changed(shop: Shop) -> None:
    lab = shop.lab
    lab.model(
        "copy",
        f"/*---\nmaterialized: table\ncolumns: {{kind: {{tests: [not_null]}}}}\n---*/\nselect id, kind from {ORDERS}\n",
    )
    lab.build()
    for text in again(shop.own("copy"), "kind", "string"):
        shop.sql(text)
    failed = lab.run("test", "-s", "copy")
    assert failed.code == 1, failed.text
    lab.build()
    assert lab.run("test", "-s", "copy").code == 0
