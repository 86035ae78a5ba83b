"""What the page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.compile import Materialized, compile_project
from engine.errors import Diagnostic, Level, Location
from engine.project import load_project
from tests.docs.build import hourly, manifest, model, not_null, small, source, written

ROOT = Path(__file__).parents[2]


def test_every_node_has_a_section_and_a_box_that_leads_to_it(tmp_path):
    page = written(tmp_path, small())
    boxes = {e.attributes["href"]: e.text for e in page.all("a") if "box" in e.attributes.get("class", "").split()}
    for node_id, name in (
        ("source.ops.events", "ops.events"),
        ("model.hourly", "hourly"),
        ("model.daily", "daily"),
    ):
        assert page.one("section", id=node_id)
        assert name in boxes[f"#{node_id}"]
    assert len(boxes) == 3
    assert len(page.all("path", class_="link stream")) == 1 + 1  # one in the legend


def test_every_link_leads_to_an_id_and_no_id_is_there_twice(tmp_path):
    page = written(tmp_path, compile_project(load_project(ROOT)).manifest)
    links = [e.attributes["href"] for e in page.all("a")]
    assert len(links) > 30
    assert {link[1:] for link in links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    labels = [e.attributes["aria-labelledby"] for e in page.elements if "aria-labelledby" in e.attributes]
    assert set(labels) <= set(page.ids)


def test_the_example_project_is_shown_whole(tmp_path):
    project = compile_project(load_project(ROOT)).manifest
    page = written(tmp_path, project)
    for node in (*project.sources, *project.models):
        assert node.name in page.section(node.id)
        assert all(column.name in page.section(node.id) for column in node.columns)


def test_a_streaming_table_is_told_in_words(tmp_path):
    page = written(tmp_path, small())
    assert (
        "Streaming table, appended; rows up to 30 minutes late are counted; "
        "repeats of id within 30 minutes are dropped; hourly windows over at." in page.section("model.hourly")
    )
    assert "read as a stream, event time at (data.at), 12 files in a micro-batch" in page.section("model.hourly")
    assert "Partitioned by day(window_start), bucket(16, id)" in page.section("model.hourly")
    assert "lake.main.hourly" in page.section("model.hourly")
    assert "Read by daily" in page.section("model.hourly")
    assert "nightly" in page.section("model.hourly")


def test_a_source_shows_its_format_path_and_column_types(tmp_path):
    text = written(tmp_path, small()).section("source.ops.events")
    for part in ("Format json", "Path landing/events", "at timestamp", "id string Unique.", "Read by hourly"):
        assert part in text


def test_sql_is_shown_as_written_and_as_compiled(tmp_path):
    written_sql = "      \n   \n  select 1\nfrom {{ ref('x') }}\n"
    page = written(tmp_path, manifest(model("a", raw_sql=written_sql, sql="select 1\nfrom `x`")))
    assert [e.text for e in page.all("pre")] == ["  select 1\nfrom {{ ref('x') }}", "select 1\nfrom `x`"]


def test_tests_stand_beside_their_column_and_others_below(tmp_path):
    relation = not_null("daily", "id", kind="relationships", depends_on=("model.daily", "model.hourly"))
    own = not_null("daily", None, name="no_gap", id="test.no_gap", kind="no_gap")
    daily = model("daily", "model.hourly", columns=hourly().columns)
    page = written(tmp_path, manifest(source(), hourly(), daily, relation, own))
    text = page.section("model.daily")
    assert "id relationships hourly" in text
    assert "Tests no gap" in text


def test_a_broken_model_is_shown_and_marked(tmp_path):
    place = Location("models/daily.sql", 4, 2)
    found = Diagnostic("sql-syntax", "the SQL cannot be read", "Look.", node="daily", location=place)
    warning = Diagnostic("window-unused", "unused", level=Level.WARNING, node="nobody")
    broken = model("daily", raw_sql="select from", sql="", broken=True)
    page = written(tmp_path, manifest(source(), hourly(), broken, found=(found, warning)))
    text = page.section("model.daily")
    assert "daily table broken" in text
    assert "select from" in text
    assert "error the SQL cannot be read Look. sql-syntax models/daily.sql:4:2" in text
    problems = page.one("section", **{"aria-labelledby": "problems"}).text
    for part in ("the SQL cannot be read", "Look.", "sql-syntax", "models/daily.sql:4:2", "unused"):
        assert part in problems
    assert "broken" in page.one("a", class_="box table bad").text


def test_models_that_read_each_other_themselves_or_nothing_known_are_shown(tmp_path):
    project = manifest(model("a", "model.b"), model("b", "model.a"), model("c", "model.c"), model("d", "model.gone"))
    page = written(tmp_path, project)
    assert "Reads b" in page.section("model.a")
    assert "Reads" not in page.section("model.d")
    assert len(page.all("path", class_="tip")) == 3


def test_an_empty_project_has_a_page(tmp_path):
    assert "no sources and no models" in written(tmp_path, manifest()).one("section", class_="lineage").text


def test_views_are_called_views(tmp_path):
    page = written(tmp_path, manifest(model("v", materialized=Materialized.VIEW)))
    assert "View, computed when it is read." in page.section("model.v")
    assert "View lake.main.v" in page.section("model.v")


def test_writing_again_replaces_the_page_and_leaves_nothing_else(tmp_path):
    folder = tmp_path / "target" / "docs"
    written(folder, small())
    page = written(folder, manifest(model("other")))
    assert [p.name for p in folder.iterdir()] == ["index.html"]
    assert "model.other" in page.ids


def test_no_heavy_library_is_imported():
    code = "import sys, engine.docs; print(*({'pyspark', 'pyiceberg', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not done.stdout.strip()
