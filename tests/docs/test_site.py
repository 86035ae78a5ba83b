"""What the site is told: the records that its pages are made of."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine.compile import Materialized, compile_project
from engine.compile.nodes.manifest import Column, Macro
from engine.docs.site.freshness_status import AgeBound, Fresh, FreshnessStatus, read_freshness, write_freshness
from engine.docs.site.shared_page_data import moment
from engine.docs.site.table_statistics import Snapshot, StoredTable
from engine.errors import Diagnostic, Level, Location
from engine.project import load_project
from tests.docs.build import NOW, Site, hourly, manifest, model, not_null, small, source, unit_test, written

ROOT = Path(__file__).parents[2]


def test_every_node_has_a_record(tmp_path):
    site = written(tmp_path, small())
    assert [(n["id"], n["kind"]) for n in site.index["nodes"]] == [
        ("source.ops.events", "source"), ("model.hourly", "stream"), ("model.daily", "table"),
    ]  # fmt: skip
    assert site.index["links"] == [[0, 1, 1], [1, 2, 0]]
    assert site.node("model.daily")["sql"] == "select 1"


@pytest.mark.slow
def test_the_example_project_is_told_whole(tmp_path):
    project = compile_project(load_project(ROOT)).manifest
    site = written(tmp_path, project)
    for node in (*project.sources, *project.models):
        assert [c["name"] for c in site.node(node.id)["columns"]] == [c.name for c in node.columns]


def test_a_streaming_table_is_told_in_words(tmp_path):
    site = written(tmp_path, small())
    assert (
        site.short("model.hourly")["summary"]
        == "hourly windows over at, rows up to 30 minutes late, duplicates of id dropped"
    )
    assert site.words("model.hourly") == {
        "Reads": "ops.events as a stream, 12 files in a micro-batch",
        "Event time": "at (data.at); rows up to 30 minutes late are accepted",
        "Duplicates": "duplicates of id within 30 minutes are dropped",
        "Windows": "hour: hourly windows over at",
        "Writes": "each window once, when the watermark passes its end",
        "Partitioned": "day(window_start), bucket(16, id)",
    }
    assert site.node("model.hourly")["guarantee"][0] == "exactly once"
    assert ["Table", "lake.main.hourly"] in site.node("model.hourly")["facts"]


def test_a_source_tells_its_format_place_and_column_types(tmp_path):
    site = written(tmp_path, small())
    assert site.words("source.ops.events")["Source"] == "json, landing/events"
    assert [(c["name"], c["type"]) for c in site.node("source.ops.events")["columns"]] == [
        ("id", "string"),
        ("at", "timestamp"),
    ]


def test_sql_is_told_as_written_as_compiled_and_as_a_script(tmp_path):
    written_sql = "      \n   \n  select 1\nfrom {{ ref('x') }}\n"
    site = written(tmp_path, manifest(source(), hourly(raw_sql=written_sql, sql="select 1\nfrom `x`")))
    record = site.node("model.hourly")
    assert (record["sql"], record["compiled"]) == ("  select 1\nfrom {{ ref('x') }}", "select 1\nfrom `x`")
    assert ".readStream" in record["script"]


def test_tests_stand_beside_their_column_and_others_below(tmp_path):
    relation = not_null("daily", "id", kind="relationships", depends_on=("model.daily", "model.hourly"))
    own = not_null("daily", None, name="no_gap", id="test.no_gap", kind="no_gap")
    daily = model("daily", "model.hourly", columns=hourly().columns)
    results = {"results": [{"unique_id": "test.shop.no_gap", "status": "fail", "message": "3 rows"}]}
    site = written(tmp_path, manifest(source(), hourly(), daily, relation, own), results)
    record = site.node("model.daily")
    assert [c.get("tests") for c in record["columns"]] == [
        None,
        [{"what": "relationships", "name": relation.name, "reads": [1]}],
    ]
    assert record["tests"] == [
        {"what": "no gap", "name": "no_gap", "status": "fail", "tone": "bad", "message": "3 rows"}
    ]


def test_unit_tests_stand_with_their_model(tmp_path):
    tests = unit_test(description="Late ones."), unit_test("other", broken=True), not_null("hourly", "id")
    ended = (
        ("unit_test.shop.hourly.late_rows", "fail", "2 rows differ"),
        ("test.shop.not_null_hourly_id", "fail", ""),
        ("model.shop.hourly", "success", ""),
    )
    results = {"results": [{"unique_id": i, "status": status, "message": text} for i, status, text in ended]}
    site = written(tmp_path, manifest(source(), hourly(), *tests), results)
    told = {
        "what": "rows of ops.events, with a restart; expects rows and late",
        "place": "tests/hourly.yml:4:11",
    }
    failed = {"status": "fail", "tone": "bad", "message": "2 rows differ"}
    assert site.node("model.hourly")["unit_tests"] == [
        {**told, "name": "late_rows", "description": "Late ones.", **failed},
        {**told, "name": "other", "broken": True},
    ]
    assert site.short("model.hourly")["failing"] == 2
    assert (site.index["tests"], site.index["unit_tests"]) == (1, 2)
    assert site.index["run"]["tests"] == [["fail", 2]]
    events, hour = site.data("lineage")
    assert events["tests"] == [["late_rows", "at", 1], ["other", "at", 1]]
    assert hour["tests"] == [
        ["not_null_hourly_id", "id"], ["late_rows", "", 1], ["late_rows", "ID", 1], ["other", "", 1], ["other", "ID", 1],
    ]  # fmt: skip


def test_a_number_that_there_cannot_be_is_not_told(tmp_path):
    read = replace(hourly().inputs[0], watermark=None)
    kinds = {"stateful": {}, "unbounded": {"inputs": (read,)}, "plain": {"stateful": False}}
    models = [replace(hourly(), id=f"model.{name}", name=name, **changes) for name, changes in kinds.items()]
    response = {"late": 0, "state_rows": 0, "rows_in": 0, "batches": 1}
    results = {
        "results": [{"unique_id": f"model.shop.{n}", "status": "success", "adapter_response": response} for n in kinds]
    }
    site = written(tmp_path, manifest(source(), *models), results)
    told = {m.name: set(response) & set(site.short(m.id)["run"]) - {"batches"} for m in models}
    assert told == {
        "stateful": {"late", "state_rows", "rows_in"},
        "unbounded": {"state_rows", "rows_in"},
        "plain": {"rows_in"},
    }


def test_a_broken_model_is_told_and_marked(tmp_path):
    place = Location("models/daily.sql", 4, 2)
    found = Diagnostic("sql-syntax", "the SQL cannot be read", "Look.", node="daily", location=place)
    warning = Diagnostic("window-unused", "unused", level=Level.WARNING, node="nobody")
    broken = model("daily", raw_sql="select from", sql="", broken=True)
    site = written(tmp_path, manifest(source(), hourly(), broken, found=(found, warning)))
    assert site.short("model.daily")["broken"] is True
    assert site.node("model.daily")["sql"] == "select from"
    assert site.node("model.daily")["problems"] == [0]
    assert site.index["problems"] == [
        {
            "level": "error",
            "code": "sql-syntax",
            "message": "the SQL cannot be read",
            "hint": "Look.",
            "place": "models/daily.sql:4:2",
            "node": 2,
        },
        {"level": "warning", "code": "window-unused", "message": "unused", "hint": "", "place": "", "node": None},
    ]


def test_models_that_read_each_other_themselves_or_nothing_known_are_told(tmp_path):
    project = manifest(model("a", "model.b"), model("b", "model.a"), model("c", "model.c"), model("d", "model.gone"))
    assert [link[:2] for link in written(tmp_path, project).index["links"]] == [[1, 0], [0, 1], [2, 2]]


def test_an_empty_project_has_a_site(tmp_path):
    site = written(tmp_path, manifest())
    assert (site.index["nodes"], site.index["links"], site.data("lineage")) == ([], [], [])


def test_macros_are_told_with_the_models_that_call_them(tmp_path):
    text = "{% macro share(x) %}avg({{ x }}){% endmacro %}"
    macro = Macro("share", "macros/share.sql", text, ("x",), "The share.")
    caller = model("a", raw_sql="select {{ share('x') }} from t")
    site = written(tmp_path, manifest(caller, model("b", raw_sql="select share(x)"), macros=(macro,)))
    assert site.data("macros") == [
        {
            "name": "share",
            "file": "macros/share.sql",
            "arguments": ["x"],
            "description": "The share.",
            "text": text,
            "used": [0],
        }
    ]
    assert site.node("model.a")["macros"] == [0]


def test_lineage_is_told_for_every_column(tmp_path):
    events, hour, daily = written(tmp_path, small()).data("lineage")
    assert events["columns"] == [["id", "string", "", []], ["at", "timestamp", "", []]]
    assert hour == {
        "columns": [["window_start", "timestamp", "hour.start", [[0, "at"]]], ["id", "string", "id", [[0, "id"]]]],
        "indirect": [[0, "at", "group"]],
        "tests": [["not_null_hourly_window_start", "window_start"]],
    }
    assert daily["columns"] == [["id", "string", "*", [[1, "id"]]]]


def snapshot(number: int, added: int, rows: int) -> Snapshot:
    return Snapshot(2**62 + number, NOW + timedelta(minutes=number), "append", added, 0, rows, rows * 10, number, "run")


def test_tables_are_told_with_their_snapshots(tmp_path):
    commits = (snapshot(0, 5, 5), snapshot(1, 7, 12))
    table = StoredTable("u", (("id", "string"),), commits, 2, 12, 120, 2, (snapshot(0, 1, 1),))
    site = written(tmp_path, small(), tables={"model.hourly": table})
    at = [int((NOW + timedelta(minutes=i)).timestamp() * 1000) for i in (0, 1)]
    assert site.short("model.hourly")["table"] == {
        "rows": 12,
        "bytes": 120,
        "at": at[1],
        "added": [5, 7],
        "quarantined": 1,
    }
    record = site.node("model.hourly")["table"]
    assert record["history"] == [[at[0], 5, 0, 5, 50, 0], [at[1], 7, 0, 12, 120, 0]]
    # An id is too great for a number of JavaScript.
    assert [s[0] for s in record["snapshots"]] == [str(2**62 + 1), str(2**62)]


def test_rows_that_wait_for_tests_are_told(tmp_path):
    table = StoredTable("u", (("id", "string"),), (snapshot(0, 5, 5),), 1, 5, 50, 1, waiting=True)
    site = written(tmp_path, small(), tables={"model.hourly": table})
    assert (site.short("model.hourly")["waiting"], site.short("model.daily").get("waiting")) == (True, None)


def test_how_fresh_a_source_is(tmp_path):
    late = FreshnessStatus(
        "source.ops.events", Fresh.WARN, NOW, NOW - timedelta(hours=3), AgeBound(1, "hour"), AgeBound(7, "day")
    )
    write_freshness([late], tmp_path, "shop", 0.1)
    site = written(tmp_path / "site", small(), freshness=read_freshness(tmp_path))
    assert site.short("source.ops.events")["fresh"] == "warn"
    assert site.node("source.ops.events")["fresh"] == {
        "status": "warn", "at": moment(NOW), "newest": moment(NOW - timedelta(hours=3)),
        "bounds": "warns after 1 hour, fails after 7 days",
    }  # fmt: skip


def test_a_source_that_could_not_be_read_says_why(tmp_path):
    write_freshness([FreshnessStatus("source.ops.events", Fresh.FAILED, NOW, error="no topic")], tmp_path, "shop", 0.1)
    site = written(tmp_path / "site", small(), freshness=read_freshness(tmp_path))
    assert site.node("source.ops.events")["fresh"] == {"status": "runtime error", "error": "no topic"}


def test_the_first_commit_of_each_run_is_marked(tmp_path):
    commits = tuple(replace(snapshot(n, 1, n), run=run) for n, run in enumerate("aabbc"))
    table = StoredTable("u", (("id", "string"),), commits, 5, 5, 50, 5)
    history = written(tmp_path, small(), tables={"model.hourly": table}).node("model.hourly")["table"]["history"]
    assert [commit[5] for commit in history] == [0, 0, 1, 0, 1]


def test_what_is_said_of_a_field_stands_at_the_field(tmp_path):
    columns = (
        Column("place", "Where.", "struct<lat:double,inner:struct<deep:int>>", {"owner": "ops", "n": [1]}, (), "place"),
        Column("Place.Lat", "North is up."),
        Column("place.inner.deep", "Far below."),
        Column("other.x", "Of no struct."),
    )
    site = written(tmp_path, manifest(model("a", columns=columns, meta={"owner": "ops", "pager": {"on": True}})))
    place, other = site.node("model.a")["columns"]
    assert place["fields"] == [
        ["place.lat", "double", "North is up."],
        ["place.inner", "struct<deep:int>", ""],
        ["place.inner.deep", "int", "Far below."],
    ]
    assert place["meta"] == [["owner", "ops"], ["n", "[1]"]]
    assert other["name"] == "other.x"
    assert (site.short("model.a")["columns"], len(site.data("lineage")[0]["columns"])) == (2, 2)
    facts = dict(site.node("model.a")["facts"])
    assert (site.node("model.a")["owner"], facts["Meta: pager"]) == ("ops", '{"on": true}')


def test_a_view_promises_what_it_reads(tmp_path):
    site = written(tmp_path, manifest(model("v", materialized=Materialized.VIEW)))
    assert site.words("model.v")["Writes"] == "nothing: the query runs when the view is queried"
    assert site.short("model.v")["summary"] == "computed when it is queried"


def test_writing_again_leaves_nothing_of_the_earlier_site(tmp_path):
    folder = tmp_path / "target" / "docs"
    written(folder, manifest(*(model(f"m{i}") for i in range(60))))
    before = {path.name for path in (folder / "data").iterdir()}
    site = written(folder, manifest(model("other")))
    after = {path.name for path in (folder / "data").iterdir()}
    assert before - after == {"nodes1.js", "nodes2.js"}
    assert [node["id"] for node in site.index["nodes"]] == ["model.other"]


@pytest.mark.slow
def test_a_wide_table_is_one_record(tmp_path):
    columns = tuple(Column(f"c{i}", "what it is", "string") for i in range(5000))
    site = written(tmp_path, manifest(model("wide", columns=columns)))
    assert len(site.node("model.wide")["columns"]) == 5000
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 1_500_000


@pytest.mark.slow
def test_no_heavy_library_is_imported():
    code = "import sys, engine.docs, engine.docs.site.table_statistics; print(*({'pyspark', 'pyiceberg', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not done.stdout.strip()


def test_the_site_helper_reads_what_a_browser_would(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index.js").write_text('headrace.put("index",{"nodes":[]});\n')
    assert Site(tmp_path).index == {"nodes": []}
