"""Code actions of a project of its own: the model with the edit compiles without the finding."""

import pytest
from lsprotocol import types

from engine import Project
from engine.lsp.answers.editor_commands import COMPILED_SQL, EXPLAIN, PLAN, compiled_sql, plan_text
from engine.lsp.edits.code_actions import code_actions
from engine.lsp.language_server import _to_lsp
from engine.lsp.opened.open_project import OpenProject
from tests.lsp.test_rename import applied, at, compiled
from tests.projects import sources_yaml

pytestmark = pytest.mark.slow

SOURCES = sources_yaml(orders={"path": "landing", "schema": "id int, at timestamp, kind string, amount double"})
COUNTS = "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind\n"
WINDOWS = "select window(at, '1 hour').start as hour, count(*) as n from {{ source('shop', 'orders') }} group by window(at, '1 hour')\n"
ROWS = "select id, kind from {{ source('shop', 'orders') }}\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    for name in ("models", "sources", "landing"):
        (folder / name).mkdir(parents=True)
    (folder / "project.yml").write_text("name: shop\n")
    (folder / "sources/shop.yml").write_text(SOURCES)
    return folder


def opened_with(root, header, query):
    (root / "models/m.sql").write_text(f"/*---\n{header}\n---*/\n{query}")
    found = OpenProject(Project(root))
    found.compile_all()
    return found


def actions_of(opened, words="select", offset=0):
    text = opened.text("models/m.sql")
    found = [_to_lsp(one, text) for one in opened.diagnostics().get("models/m.sql", [])]
    position = at(opened, "models/m.sql", words, offset)
    return {one.title: one for one in code_actions(opened, "models/m.sql", types.Range(position, position), found)}


@pytest.mark.parametrize(
    ("header", "query", "title", "code"),
    [
        ("streams: [shop.orders]", WINDOWS, "Add the watermark of 'shop.orders' to the header", "window-no-watermark"),
        ("streams:\n  shop.orders:\n    dedup: [id]", ROWS, "Add a watermark on 'at'", "dedup-needs-watermark"),
        ("streams:\n  shop.orders: {dedup: [id]}", ROWS, "Add a watermark on 'at'", "dedup-needs-watermark"),
        ("streams: [shop.orders]", COUNTS, "Set output_mode: update", "agg-needs-event-time"),
    ],
)
def test_the_edit_of_a_hint_ends_the_finding(root, header, query, title, code):
    opened = opened_with(root, header, query)
    assert code in {one.code for one in opened.manifest.errors}
    applied(opened, actions_of(opened)[title].edit)


def test_a_watermark_and_a_window_are_declared_at_once(root):
    opened = opened_with(root, "streams: [shop.orders]", COUNTS)
    action = actions_of(opened)["Add the watermark of 'shop.orders' and the window 'hour' to the header"]
    (root / "models/m.sql").write_text(opened.text("models/m.sql").replace("group by kind", "group by hour, kind"))
    edited = OpenProject(Project(root))
    edited.compile_all()
    after = applied(edited, action.edit)
    model = after.manifest.model("m")
    assert model.windows["hour"].size == "1 hours"
    assert model.inputs[0].watermark.column == "at"


@pytest.mark.nightly_cases("columns: {kind: x}", "columns:\\n  id: The number.")
@pytest.mark.parametrize(
    "header",
    ["materialized: table", "columns:\n  id: The number.", "columns:\n  id: {description: x}", "columns: {kind: x}"],
)
def test_a_test_is_added_to_the_column_at_the_cursor(root, header):
    opened = opened_with(root, header, ROWS)
    action = actions_of(opened, "id, kind")["Add the test 'not_null' to 'id'"]
    after = applied(opened, action.edit)
    (test,) = [test for test in after.manifest.tests if test.model == "model.m"]
    assert (test.kind, test.column) == ("not_null", "id")
    assert not [title for title in actions_of(after, "id, kind") if title.startswith("Add the test")]


def test_compiled_sql_and_plan_are_those_of_the_edit(root):
    opened = opened_with(root, "materialized: table", ROWS)
    opened.texts["models/m.sql"] = opened.text("models/m.sql").replace("select id,", "select id + 1 as more,")
    opened.compile_model("models/m.sql")
    assert "id + 1 as more" in compiled_sql(opened, "models/m.sql")
    assert plan_text(opened, "models/m.sql").startswith("create     table lake.")
    opened.texts["models/m.sql"] = "select x from {{ source('shop', 'orders') }}\n"
    assert "[unknown-column]" in plan_text(opened, "models/m.sql")
    assert compiled(root).manifest.model("m").columns[0].name == "id"
    (root / "project.yml").write_text(
        "name: shop\ntarget: t\ntargets: {t: {schema: s, catalog: {type: rest, name: lake, uri: 'http://127.0.0.1:9'}}}\n"
    )
    assert "an editor does not ask" in plan_text(opened, "models/m.sql")
    assert {EXPLAIN, COMPILED_SQL, PLAN} == {"headrace.explain", "headrace.compiledSql", "headrace.plan"}
