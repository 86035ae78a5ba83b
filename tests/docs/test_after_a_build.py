"""After a real build: artifacts, the site and OpenLineage tell what Spark and Iceberg did."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from dbt_artifacts_parser.parser import parse_catalog, parse_manifest, parse_run_results

from engine.docs.facts import moment
from tests.docs.build import Site
from tests.lab import EVENTS, Lab, Result

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
TOTAL = "select sum(events) as events from {{ ref('hourly') }}"


@pytest.fixture
def built(lab: Lab) -> tuple[Lab, Result]:
    project = (lab.root / "project.yml").read_text()
    lab.write("project.yml", project + "    openlineage: {type: file, path: events.jsonl}\n")
    lab.write("sources/shop.yml", EVENTS)
    lab.model("hourly", HOURLY)
    lab.model("total", TOTAL)
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
    parse_manifest(json.loads((target / "manifest.json").read_text()))
    results = parse_run_results(json.loads((target / "run_results.json").read_text()))
    hourly = next(r for r in results.results if r.unique_id == "model.lab.hourly")
    said = result.model("hourly")
    assert hourly.adapter_response["rows_in"] == said["rows_in"] == 6
    assert hourly.adapter_response["late"] == said["late"] == 1
    assert [batch["rows_in"] for batch in hourly.adapter_response["progress"]][:3] == [2, 2, 2]
    assert hourly.timing[0].started_at < hourly.timing[0].completed_at

    assert lab.run("docs", "generate").code == 0
    catalog = parse_catalog(json.loads((target / "catalog.json").read_text()))
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

    sent = [json.loads(line) for line in (lab.root / "events.jsonl").read_text().splitlines()]
    ends = {r["job"]["name"]: r for r in sent if r["eventType"] == "COMPLETE"}
    assert set(ends) == {"lab.build", "lab.hourly", "lab.total", "lab.not_null_hourly_window_start"}
    output = ends["lab.hourly"]["outputs"][0]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == said["rows_out"]
    assert output["facets"]["version"]["datasetVersion"] == str(lab.snapshot("hourly"))

    again = lab.build()
    assert again.model("hourly")["status"] == "unchanged"
    assert lab.run("ls", "-s", "result:unchanged", "--output", "name").out.split() == ["hourly", "total"]
    # A run without a micro-batch knows no watermark; the checkpoint does.
    assert lab.run("docs", "generate").code == 0
    quiet = Site(target / "docs").short("model.hourly")
    assert "state_rows" in short["run"]
    assert "state_rows" not in quiet["run"]
    assert quiet["watermark"] == short["watermark"] == moment(datetime(2026, 1, 1, 13, 50, tzinfo=UTC))


def test_a_delivery_that_fails_fails_no_build(built):
    lab, _ = built
    (lab.root / "events.jsonl").unlink()
    (lab.root / "events.jsonl").mkdir()
    result = lab.build()
    (told,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (told["code"], told["level"]) == ("openlineage", "warning")


def test_a_build_that_breaks_off_is_told_as_aborted(built, monkeypatch):
    lab, _ = built
    (lab.root / "events.jsonl").unlink()

    def broken(*_: object) -> None:
        raise OSError("the session is gone")

    monkeypatch.setattr("engine.runtime.build.create_namespace", broken)
    assert lab.run("build").code == 2
    sent = [json.loads(line) for line in (lab.root / "events.jsonl").read_text().splitlines()]
    assert [r["eventType"] for r in sent] == ["START", "ABORT"]
