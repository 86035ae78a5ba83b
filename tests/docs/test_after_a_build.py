"""After a real build: artifacts, the site and OpenLineage tell what Spark and Iceberg did."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from engine.docs.site.shared_page_data import moment
from tests.docs.build import Site, dbt
from tests.lab import Lab, Result

pytestmark = pytest.mark.spark

HOURLY = """/*---
description: Events of each hour.
streams:
  shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 1}
windows: {hour: "tumbling(at, 1 hour)"}
columns:
  window_start: {description: Begin of the hour., tests: [not_null]}
---*/
select hour.start as window_start, count(*) as events, sum(amount) as amount
from {{ source('shop', 'events') }}
group by hour
"""
NEWEST = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
unique_key: kind
sequence_by: at
---*/
select kind, at, id from {{ source('shop', 'events') }}
"""
UNITS = """unit_tests:
  - {name: counts, model: total, given: {hourly: [{events: 2}, {events: 3}]}, expect: [{events: 5}]}
"""
TOTAL = "select sum(events) as events from {{ ref('hourly') }}"


@pytest.fixture
def told(lab: Lab) -> Lab:
    """A project whose runs are told to a file."""
    project = (lab.root / "project.yml").read_text()
    lab.write("project.yml", project + "    openlineage: {type: file, path: events.jsonl}\n")
    return lab


@pytest.fixture
def built(told: Lab) -> tuple[Lab, Result]:
    lab = told
    lab.model("hourly", HOURLY)
    lab.model("newest", NEWEST)
    lab.model("total", TOTAL)
    lab.write("tests/units.yml", UNITS)
    for hour, late in ((10, 10), (12, 12), (14, 8)):
        rows = [
            {"id": hour * 10 + i, "at": f"2026-01-01T{h:02}:0{i}:00Z", "kind": "a", "amount": 1.5}
            for i, h in enumerate((hour, late))
        ]
        lab.land(f"f{hour}", rows)
    return lab, lab.build()


def test_artifacts_say_what_spark_and_iceberg_did(built):
    lab, result = built
    target = lab.root / "target"
    dbt().parse_manifest(json.loads((target / "manifest.json").read_text()))
    results = dbt().parse_run_results(json.loads((target / "run_results.json").read_text()))
    hourly = next(r for r in results.results if r.unique_id == "model.lab.hourly")
    said = result.model("hourly")
    assert hourly.adapter_response["rows_in"] == said["rows_in"] == 6
    assert hourly.adapter_response["late"] == said["late"] == 1
    assert [batch["rows_in"] for batch in hourly.adapter_response["progress"]][:3] == [2, 2, 2]
    assert hourly.timing[0].started_at < hourly.timing[0].completed_at

    assert lab.run("docs", "generate").code == 0
    catalog = dbt().parse_catalog(json.loads((target / "catalog.json").read_text()))
    node = catalog.nodes["model.lab.hourly"]
    assert (node.metadata.database, node.metadata.schema_, node.metadata.name) == ("lake", lab.schema, "hourly")
    assert node.stats["num_rows"].value == len(lab.rows("hourly"))
    assert [(c.name, c.type) for c in node.columns.values()] == [
        ("window_start", "timestamptz"),
        ("events", "long"),
        ("amount", "double"),
    ]

    site = Site(target / "docs")
    short = site.short("model.hourly")
    assert (short["run"]["late"], short["table"]["rows"]) == (1, len(lab.rows("hourly")))
    assert short["table"]["added"] == [1, 1]
    newest = site.node("model.hourly")["table"]["snapshots"][0]
    assert newest[0] == str(lab.snapshot("hourly"))

    # A MERGE leaves old rows in their files; nobody reads them, and they do not count.
    assert len(lab.rows("newest")) == site.short("model.newest")["table"]["rows"] == 1
    assert catalog.nodes["model.lab.newest"].stats["num_rows"].value == 1
    commits = site.node("model.newest")["table"]["snapshots"]
    assert [commit[2:6] for commit in commits] == [["merge", 1, 1, 1], ["merge", 1, 1, 1], ["append", 1, 0, 1]]
    (unit_test,) = site.node("model.total")["unit_tests"]
    assert (unit_test["name"], unit_test["status"]) == ("counts", "pass")

    sent = [json.loads(line) for line in (lab.root / "events.jsonl").read_text().splitlines()]
    ends = {r["job"]["name"]: r for r in sent if r["eventType"] == "COMPLETE"}
    names = {"build", "hourly", "newest", "total", "not_null_hourly_window_start", "counts"}
    assert set(ends) == {f"lab.{name}" for name in names}
    output = ends["lab.hourly"]["outputs"][0]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == said["rows_out"]
    assert output["facets"]["version"]["datasetVersion"] == str(lab.snapshot("hourly"))

    again = lab.build()
    assert again.model("hourly")["status"] == "unchanged"
    assert lab.run("ls", "-s", "result:unchanged", "--output", "name").out.split() == ["hourly", "newest", "total"]
    # A run without a micro-batch knows no watermark; the checkpoint does.
    assert lab.run("docs", "generate").code == 0
    quiet = Site(target / "docs").short("model.hourly")
    assert "state_rows" in short["run"]
    assert "state_rows" not in quiet["run"]
    assert quiet["watermark"] == short["watermark"] == moment(datetime(2026, 1, 1, 13, 50, tzinfo=UTC))


def test_a_delivery_that_fails_fails_no_build(told):
    told.model("one", "select 1 as one")
    (told.root / "events.jsonl").mkdir()
    result = told.build()
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (found["code"], found["level"]) == ("openlineage-failed", "warning")
    assert len(told.rows("one")) == 1


def test_a_build_that_breaks_off_is_told_as_aborted(told, monkeypatch):
    told.model("one", "select 1 as one")

    def broken(*_: object) -> None:
        raise OSError("the session is gone")

    monkeypatch.setattr("engine.runtime.run_nodes.create_namespace", broken)
    assert told.run("build").code == 2
    sent = [json.loads(line) for line in (told.root / "events.jsonl").read_text().splitlines()]
    assert [r["eventType"] for r in sent] == ["START", "ABORT"]
