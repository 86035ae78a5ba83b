"""Artifacts in dbt's shapes: read by dbt-artifacts-parser, with the identifiers of the Iceberg tables."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine.compile import Operation, Partition, SortColumn, compile_project
from engine.compile.artifacts.dbt_manifest import node_dict, own_id, unique_id
from engine.compile.artifacts.node_json import to_json
from engine.compile.artifacts.write_artifacts import about_nodes, manifest_text, records_of, write_artifacts
from engine.compile.nodes.guarantee import guarantees
from engine.docs.catalog import write_catalog
from engine.docs.site.freshness_status import AgeBound, Fresh, FreshnessStatus, read_freshness, write_freshness
from engine.docs.site.table_statistics import StoredTable
from engine.errors import ProjectError
from engine.node_ids import data_test_id, rest_of
from engine.project import load_project
from engine.sources import KINDS
from tests.docs.build import NOW, dbt, hourly, manifest, model, not_null, small, source
from tests.docs.test_last_run import results
from tests.docs.test_safety import evil
from tests.docs.test_site import snapshot
from tests.project.small_projects import compiled

ROOT = Path(__file__).parents[2]


def parsed(project):
    text = manifest_text(project)
    return dbt().parse_manifest(json.loads(text)), json.loads(text)


@pytest.mark.slow
def test_the_example_is_a_manifest_of_version_12():
    project = compile_project(load_project(ROOT)).manifest
    found, _ = parsed(project)
    assert type(found).__name__ == "ManifestV12"
    assert found.metadata.project_name == "flights"
    assert found.metadata.adapter_type == "spark"
    assert set(found.nodes) == {unique_id(n.id, "flights") for n in (*project.models, *project.tests)}
    assert set(found.unit_tests) == {unique_id(t.id, "flights") for t in project.unit_tests}
    assert all(t.depends_on.nodes == [f"model.flights.{t.model}"] for t in found.unit_tests.values())
    assert found.unit_tests
    assert set(found.sources) == {unique_id(s.id, "flights") for s in project.sources}
    assert list(found.macros) == ["macro.flights.share"]
    for mine in project.models:
        theirs = found.nodes[f"model.flights.{mine.name}"]
        named = (theirs.database, theirs.schema_, theirs.alias)
        assert named == (mine.relation.catalog, mine.relation.schema, mine.relation.name)
        assert list(theirs.columns) == [column.name for column in mine.columns]
    assert found.nodes["model.flights.routes"].depends_on.macros == ["macro.flights.share"]
    assert set(found.parent_map["model.flights.carriers"]) == {
        "model.flights.flights",
        "model.flights.airlines",
    }
    assert (
        f"test.flights.{rest_of(data_test_id('unique_carriers_carrier', 'model.carriers'))}"
        in found.child_map["model.flights.carriers"]
    )


def test_streaming_facts_stand_in_config_and_meta():
    _, raw = parsed(small())
    node = raw["nodes"]["model.shop.hourly"]
    assert node["config"]["output_mode"] == "append"
    assert node["config"]["windows"] == {"hour": "window(at, '1 hours')"}
    assert node["config"]["streams"]["ops.events"]["watermark"]["delay"] == "30 minutes"
    assert node["config"]["partition_by"] == ["day(window_start)", "bucket(16, id)"]
    assert node["meta"]["headrace"]["guarantee"] == "exactly once"
    assert node["meta"]["headrace"]["indirect"] == [{"node": "source.shop.ops.events", "column": "at", "kind": "group"}]
    lineage = node["columns"]["window_start"]["meta"]["headrace"]
    assert lineage == {
        "origins": [{"node": "source.shop.ops.events", "column": "at", "kind": "direct"}],
        "sql": "hour.start",
    }


@pytest.mark.parametrize(
    "project",
    [
        evil(),
        manifest(),
        manifest(model("a", "model.b"), model("b", "model.a"), model("c", "model.gone", broken=True, sql="")),
        manifest(model("m", operation=Operation(pre_hook=("set x = 1",)), write=replace(hourly().write, sort_by=(SortColumn("a", True, False),), partition_by=(Partition("day", "a", name="d"),)))),
    ],
)  # fmt: skip
def test_odd_projects_are_manifests_too(project):
    parsed(project)


def test_a_test_names_what_it_tests():
    found, _ = parsed(small())
    test = found.nodes["test.shop.not_null_hourly_window_start"]
    assert (test.column_name, test.attached_node, test.test_metadata.name) == (
        "window_start",
        "model.shop.hourly",
        "not_null",
    )
    assert test.config.severity == "ERROR"


def test_the_manifest_is_its_nodes_texts_joined():
    project = small()
    whole = manifest_text(project)
    about = about_nodes(project)
    assert all(bytes(to_json(node_dict(node, about[i]))).decode() in whole for i, node in project.nodes.items())


@pytest.mark.slow
def test_the_compiler_keeps_the_records_that_would_be_made_of_its_nodes(tmp_path):
    manifest = compile_project(load_project(Path(__file__).parents[2]), env={}).manifest
    made = records_of(replace(manifest, records={}))
    assert {i: r.text for i, r in manifest.records.items()} == {i: r.text for i, r in made.items()}
    assert {i: r.depends_on for i, r in manifest.records.items()} == {i: r.depends_on for i, r in made.items()}


@pytest.mark.slow
def test_only_what_has_changed_is_written(tmp_path):
    files = {"models/a.sql": "select id from {{ source('shop', 'customers') }}", "models/b.sql": "select 1 as one"}

    def write() -> dict[str, int]:
        write_artifacts(compiled(tmp_path, files).manifest, tmp_path / "target")
        return {p.name: p.stat().st_mtime_ns for p in (tmp_path / "target").rglob("*") if p.is_file()}

    first = write()
    assert {"a.sql", "b.sql", "manifest.json"} <= set(first)
    assert write() == first
    files["models/b.sql"] = "select 2 as two"
    second = write()
    changed = {name for name, time in second.items() if time != first[name]}
    assert changed == {"b.sql", "manifest.json"}
    (tmp_path / "target/compiled/shop/models/a.sql").write_text("spoilt")
    files["models/b.sql"] = "select 3 as three"
    assert set(write()) == set(first)
    assert "spoilt" not in (tmp_path / "target/compiled/shop/models/a.sql").read_text()


@pytest.mark.slow
def test_commands_that_write_at_the_same_time_take_turns(tmp_path):
    files = {f"models/m{i}.sql": f"select {i} as id" for i in range(20)}
    manifests = [compiled(tmp_path, files).manifest]
    files["models/m0.sql"] = "select 0 as zero"
    manifests.append(compiled(tmp_path, files | {"models/more.sql": "select 1 as one"}).manifest)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: write_artifacts(manifests[n % 2], tmp_path / "target"), range(12)))
    write_artifacts(manifests[1], tmp_path / "target")
    assert len(list((tmp_path / "target/compiled").rglob("*.sql"))) == 21
    assert not list((tmp_path / "target").rglob("*.tmp"))


@pytest.mark.parametrize("taken", ["target", "target/.cache", "target/compiled"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path, taken):
    manifest = compiled(tmp_path, {"models/a.sql": "select 1 as one"}).manifest
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("no folder")
    with pytest.raises(ProjectError) as raised:
        write_artifacts(manifest, tmp_path / "target")
    assert raised.value.diagnostic.code == "target-unwritable"
    assert str(tmp_path / "target") in str(raised.value)


def test_ids_go_both_ways():
    assert unique_id("source.ops.events", "shop") == "source.shop.ops.events"
    assert own_id("source.shop.ops.events") == "source.ops.events"
    assert own_id("model.shop.a") == "model.a"
    assert own_id("model.a") == "model.a"


def test_run_results_are_of_version_6():
    found = dbt().parse_run_results(json.loads(json.dumps(results())))
    assert type(found).__name__ == "RunResultsV6"
    by_id = {r.unique_id: r for r in found.results}
    hourly_ = by_id["model.shop.hourly"]
    assert hourly_.status.value == "success"
    assert hourly_.adapter_response["late"] == 3
    assert hourly_.timing[0].started_at == "2026-10-12T08:14:59+00:00"
    assert by_id["model.shop.daily"].status.value == "success"
    assert by_id["model.shop.daily"].adapter_response["unchanged"] is True
    assert by_id["test.shop.not_null_hourly_window_start"].failures == 2


def test_the_catalog_is_of_version_1(tmp_path):
    table = StoredTable("u", (("window_start", "timestamptz"), ("id", "string")), (snapshot(0, 5, 5),), 1, 5, 50, 1)
    path = write_catalog(small(), {"model.hourly": table}, tmp_path)
    found = dbt().parse_catalog(json.loads(path.read_text()))
    assert type(found).__name__ == "CatalogV1"
    (node,) = found.nodes.values()
    assert (node.metadata.database, node.metadata.schema_, node.metadata.name) == ("lake", "main", "hourly")
    assert [(c.name, c.type, c.index, c.comment) for c in node.columns.values()] == [
        ("window_start", "timestamptz", 1, "Begin of the hour."), ("id", "string", 2, None),
    ]  # fmt: skip
    assert node.stats["num_rows"].value == 5


def test_sources_are_of_version_3_and_read_back(tmp_path):
    known = [
        FreshnessStatus(
            "source.ops.events",
            Fresh.WARN,
            NOW,
            NOW - timedelta(hours=2),
            AgeBound(10, "minute"),
            AgeBound(1, "day"),
            0.2,
        ),
        FreshnessStatus("source.ops.gone", Fresh.FAILED, NOW, error="there is no such topic"),
    ]
    path = write_freshness(known, tmp_path, "shop", 0.5)
    found = dbt().parse_sources(json.loads(path.read_text()))
    assert type(found).__name__ == "SourcesV3"
    assert found.results[0].max_loaded_at_time_ago_in_s == 7200
    assert found.results[1].error == "there is no such topic"
    again = read_freshness(tmp_path)
    assert {i: (f.status, f.newest) for i, f in again.items()} == {f.source: (f.status, f.newest) for f in known}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"results": 3}', '{"results": [3, {}, {"unique_id": "source.a.b.c"}]}']
)
def test_half_written_freshness_is_none(tmp_path, text):
    (tmp_path / "sources.json").write_text(text)
    assert read_freshness(tmp_path) == {}


def test_what_a_source_that_cannot_be_read_again_feeds_has_no_guarantee(monkeypatch):
    class Once:
        REPLAYABLE = False

    monkeypatch.setitem(KINDS, "once", Once)
    events = source(spec=replace(source().spec, format="once"))
    found = guarantees(
        manifest(source("safe"), events, hourly(), model("daily", "model.hourly"), model("apart", "source.ops.safe"))
    )
    assert {i: g.level.value for i, g in found.items()} == {
        "model.hourly": "no guarantee", "model.daily": "no guarantee", "model.apart": "exactly once",
    }  # fmt: skip
    assert found["model.daily"].because_of == ("ops.events",)


def test_a_secret_is_in_no_artifact(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_KEY", 'se"kr1t')
    write_artifacts(manifest(model("a", description='se"kr1t', sql="""select 'se"kr1t'""")), tmp_path)
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "kr1t" not in written
    dbt().parse_manifest(json.loads((tmp_path / "manifest.json").read_text()))


def test_a_project_with_mistakes_has_a_manifest(tmp_path):
    broken = compiled(
        tmp_path, {"models/a.sql": "select from where", "models/b.sql": "select 1 as one from {{ ref('a') }}"}
    )
    assert broken.manifest.errors
    found, raw = parsed(broken.manifest)
    assert raw["nodes"]["model.shop.a"]["meta"]["headrace"]["broken"] is True
    assert found.nodes["model.shop.a"].compiled is False


def test_two_of_a_name_are_two_tests():
    again = not_null("hourly", "id")
    _, raw = parsed(manifest(source(), hourly(), not_null("hourly", "window_start"), again))
    assert len([i for i in raw["nodes"] if i.startswith("test.")]) == 2
