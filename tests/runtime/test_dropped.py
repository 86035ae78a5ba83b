"""Models that are renamed, moved and deleted after they were built: what is left is noted, dropped, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.lab import Lab, Result, event

pytestmark = pytest.mark.spark

STREAM = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'void'
expectations: [{name: paid, check: amount > 0, on_fail: quarantine}]
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
HOURLY = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
state_store: {partitions: 2}
---*/
select hour.start as hour, count(*) as n from {{ source('shop', 'events') }} group by hour
"""
TABLE = "/*---\nmaterialized: table\n---*/\nselect count(*) as n from {{ ref('MODEL') }}"
VIEW = "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('MODEL') }}"


def notes(done: Result) -> list[str]:
    """The tables that a build notes, as the hint names them."""
    return [re.findall(r"engine drop (\S+)\.", e["hint"])[0] for e in done.events if e.get("code") == "orphan-table"]


def warehouse(lab: Lab) -> list[str]:
    """The tables with files; Spark leaves empty folders of those that it drops."""
    folders = (lab.lake_path / "warehouse" / lab.schema).iterdir()
    return sorted(folder.name for folder in folders if any(path.is_file() for path in folder.rglob("*")))


def ids(lab: Lab, name: str) -> list[int]:
    assert lab.session is not None
    return sorted(row["id"] for row in lab.session.spark.table(f"lake.{lab.schema}.{name}").collect())


@pytest.mark.nightly
def test_what_a_rename_and_a_delete_leave_is_noted_and_dropped(lab: Lab) -> None:
    lab.model("orders", STREAM)
    lab.model("hourly", HOURLY)
    lab.model("totals", TABLE.replace("MODEL", "orders"))
    lab.model("seen", VIEW.replace("MODEL", "orders"))
    lab.land("a", [event(1, 1), event(2, 2), event(3, 3, amount=-1.0)])
    lab.land("b", [event(2, 2, "void"), event(4, 4)])
    assert notes(lab.build()) == []
    assert warehouse(lab) == ["hourly", "orders", "orders__deleted", "orders__quarantine", "seen", "totals"]

    for name in ("orders", "totals"):
        (lab.root / f"models/{name}.sql").unlink()
    lab.model("sales", STREAM)
    lab.model("seen", VIEW.replace("MODEL", "sales"))
    lab.model("hourly", HOURLY.replace("partitions: 2", "partitions: 4"))
    done = lab.build()
    s = lab.schema
    assert notes(done) == [f"lake.{s}.orders", f"lake.{s}.totals"]
    results = json.loads((lab.root / "target" / "run_results.json").read_text())
    assert [d["code"] for d in results["args"]["diagnostics"]] == ["orphan-table"] * 2
    assert "state_store.partitions is 4 now, but the checkpoint keeps 2" in done.model("hourly")["note"]
    assert lab.run("ls", "--orphans", "--output", "name").out.split() == [f"lake.{s}.orders", f"lake.{s}.totals"]
    assert ids(lab, "seen") == [1, 4]

    done = lab.run("drop", "orders", "totals", "--yes")
    assert done.code == 0, done.text
    assert {e["relation"].split(".")[-1] for e in done.events if e["event"] == "TableDropped"} == {
        "orders", "orders__deleted", "orders__quarantine", "totals",
    }  # fmt: skip
    assert warehouse(lab) == ["hourly", "sales", "sales__deleted", "sales__quarantine", "seen"]
    assert sorted(path.name for path in lab.state.iterdir()) == ["hourly", "sales", "seen"]
    assert lab.session is not None
    assert not lab.session.spark.catalog.tableExists(f"lake.{s}.orders")

    lab.land("c", [event(5, 5)])
    done = lab.build()
    assert notes(done) == []
    assert done.model("sales")["rows_out"] == 1
    assert ids(lab, "seen") == [1, 4, 5]
    assert "state_store" not in lab.build("-f", "-s", "hourly").model("hourly")["note"]
    assert "state_store" not in lab.build("-s", "hourly").model("hourly")["note"]


@pytest.mark.nightly
def test_another_alias_or_schema_leaves_the_table_and_moves_what_reads_it(lab: Lab) -> None:
    lab.model("orders", "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}")
    lab.model("later", "/*---\nstreams: [orders]\n---*/\nselect id from {{ ref('orders') }}")
    lab.model("seen", VIEW.replace("MODEL", "orders"))
    lab.model("over", VIEW.replace("MODEL", "orders").replace("view", "view\nschema: marts"))
    lab.land("a", [event(1, 1)])
    lab.build()
    text = (lab.root / "models/orders.sql").read_text()
    lab.model("orders", text.replace("---*/", "alias: bought\n---*/", 1))
    lab.model("over", VIEW.replace("MODEL", "orders"))
    lab.land("b", [event(2, 2)])
    s = lab.schema
    # The stream stands on the table before.
    rejected = lab.run("build")
    assert (rejected.code, rejected.codes()) == (1, ["source-changed", "build-rejected"])
    done = lab.build("--exclude", "later")
    assert notes(done) == [f"lake.{s}.orders", f"lake.{s}_marts.over"]
    assert ids(lab, "seen") == ids(lab, "over") == [1, 2]
    kept = lab.run("drop", f"{s}.orders", "--yes")
    assert (kept.code, kept.codes()) == (1, ["downstream-stops"])
    lab.build("-f", "-s", "later")
    assert lab.run("drop", f"{s}.orders", f"{s}_marts.over", "--yes").code == 0
    assert warehouse(lab) == ["bought", "later", "over", "seen"]
    assert not any((Path(lab.lake_path) / "warehouse" / f"{s}_marts").iterdir())

    # Starting over: the table of a model goes, and the next build reads every record again.
    assert lab.run("drop", "orders", "later", "seen", "over", "--yes").code == 0
    assert warehouse(lab) == []
    assert list(lab.state.iterdir()) == []
    lab.build()
    assert ids(lab, "seen") == ids(lab, "later") == [1, 2]
