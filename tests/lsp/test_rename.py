"""Renames over the example: the project with the edit compiles to the same, but for the name."""

import asyncio
import json
import sqlite3

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.errors import Location
from engine.lsp.edits.renames import prepared, renamed, renamed_name
from engine.lsp.names.named_places import Name, NameKind
from engine.lsp.text import location_of_position, offset_of, path_of, position_of
from tests.lsp.conftest import compiled, connected
from tests.lsp.renamed_project import renamed_project
from tests.security.hostile_project import _metadata

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(project):
    return compiled(project)


def at(opened, file, words, offset=0):
    text = opened.text(file)
    before = text[: text.index(words) + offset]
    return position_of(Location(file, before.count("\n") + 1, len(before) - before.rfind("\n")), text)


def applied(opened, edit):
    """The project after the editor has made the edit."""
    assert isinstance(edit, types.WorkspaceEdit), edit
    documents = edit.document_changes or ()
    texts = edit.changes or {
        one.text_document.uri: one.edits for one in documents if not isinstance(one, types.RenameFile)
    }
    for uri, changes in texts.items():
        path = path_of(uri)
        text = path.read_text()
        for change in reversed(changes):
            begin, end = (
                offset_of(location_of_position(place, text, ""), text)
                for place in (change.range.start, change.range.end)
            )
            text = text[:begin] + change.new_text + text[end:]
        path.write_text(text)
    for moved in documents:
        if isinstance(moved, types.RenameFile):
            path_of(moved.old_uri).rename(path_of(moved.new_uri))
    return compiled(opened.root)


def columns(opened, model):
    return [column.name for column in opened.manifest.model(model).columns]


def test_a_column_keeps_its_meaning_for_all_that_read_it(opened):
    before = {model.name: columns(opened, model.name) for model in opened.manifest.models}
    edit = renamed(
        opened,
        "models/marts/aircraft.sql",
        at(opened, "models/marts/aircraft.sql", "tailnum is not", 2),
        "registration",
    )
    after = applied(opened, edit)
    expected = [name if name != "tailnum" else "registration" for name in before["flights"]]
    assert {m.name: columns(after, m.name) for m in after.manifest.models} == before | {"flights": expected}
    assert "registration as tailnum,\n" in after.text("models/marts/aircraft.sql")
    assert "where registration is not null" in after.text("models/marts/aircraft.sql")
    assert "data.tailnum as registration," in after.text("models/staging/flights.sql")
    origins = after.manifest.model("aircraft").columns[0].origins
    assert [(origin.node, origin.column) for origin in origins] == [("model.flights", "registration")]


def test_an_alias_is_renamed_with_its_header_and_the_rows_of_unit_tests(opened):
    file = "models/marts/departures_hourly.sql"
    after = applied(opened, renamed(opened, file, at(opened, file, "as mean_delay", 4), "average_delay"))
    assert columns(after, "departures_hourly") == ["window_start", "origin", "departures", "average_delay"]
    assert "  average_delay: {type: double" in after.text(file)
    assert "sum(average_delay * departures)" in after.text("models/marts/busiest_hours.sql")
    rows = after.text("tests/models/departures_hourly.yml")
    assert "average_delay: 6" in rows
    assert "mean_delay: 6" not in rows


@pytest.mark.parametrize(
    ("file", "words", "new", "reason"),
    [
        ("models/marts/routes.sql", "f.origin", "carrier", "is taken"),
        ("models/marts/routes.sql", "f.origin", "from here", "not a valid column name"),
        ("models/marts/routes.sql", "group by", "x", "put the cursor on"),
        ("models/staging/airports.sql", "lat as", "x", "columns of a source"),
        ("models/marts/routes.sql", "share(", "share", "is taken"),
    ],
)
def test_what_would_change_meaning_is_rejected(example_opened, file, words, new, reason):
    assert reason in renamed(example_opened, file, at(example_opened, file, words, 3), new)


def test_a_macro_is_renamed_where_it_is_defined_and_called(opened):
    file = "models/marts/routes.sql"
    sql = opened.manifest.model("routes").sql
    after = applied(opened, renamed(opened, file, at(opened, file, "share(", 2), "portion"))
    assert after.manifest.model("routes").sql == sql
    assert [macro.name for macro in after.manifest.macros] == ["portion"]


def test_a_source_is_renamed_with_its_declaration_and_all_that_read_it(opened):
    file = "models/staging/flights.sql"
    after = applied(opened, renamed(opened, file, at(opened, file, "'departures'", 3), "takeoffs"))
    assert "source.ops.takeoffs" in after.manifest.nodes
    assert columns(after, "flights") == columns(opened, "flights")
    assert "  ops.takeoffs:" in after.text(file)


@pytest.fixture
def built(opened):
    """The project, and tables of two of its models."""
    lake = opened.root / ".engine" / "lake"
    metadata = lake / "warehouse" / "flights" / "v1.metadata.json"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(json.dumps(_metadata(metadata.parent)))
    with sqlite3.connect(lake / "catalog.db") as db:
        db.execute(
            "create table iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
            "previous_metadata_location, iceberg_type)"
        )
        for name in ("flights", "departures_hourly", "carriers"):
            row = ("lake", "flights", name, metadata.as_uri(), None, "TABLE")
            db.execute("insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", row)
    db.close()
    return opened


def test_the_header_says_what_a_column_of_a_table_was(built):
    file = "models/staging/flights.sql"
    after = applied(built, renamed(built, file, at(built, file, "as flight_id", 4), "id_of_flight"))
    (column,) = [one for one in after.manifest.model("flights").columns if one.name == "id_of_flight"]
    assert column.renamed_from == "flight_id"
    # It is described already.
    file = "models/marts/departures_hourly.sql"
    after = applied(after, renamed(after, file, at(after, file, "as mean_delay", 4), "average_delay"))
    assert "  average_delay: {renamed_from: mean_delay, type: double" in after.text(file)
    again = renamed(after, file, at(after, file, "as average_delay", 4), "delay_on_average")
    assert "exists and has the name; write 'columns: {delay_on_average: {renamed_from: average_delay}}'" in again


def test_the_header_says_what_the_table_of_a_model_was(built):
    edit = renamed_name(built, Name(NameKind.MODEL, "carriers"), "operators")
    assert isinstance(edit, types.WorkspaceEdit), edit
    (change, moved) = edit.document_changes
    assert [one.new_text for one in change.edits] == ["renamed_from: carriers\n"]
    assert (change.text_document.uri, moved.old_uri) == (moved.old_uri, moved.old_uri)
    assert moved.new_uri.endswith("/operators.sql")


def test_sources_of_tables_that_exist_keep_their_names(built):
    file = "models/staging/flights.sql"
    assert "its stream has the source's name" in renamed(built, file, at(built, file, "'departures'", 3), "takeoffs")


def test_a_window_is_renamed_and_no_column(opened):
    """It renamed the column of `flights` that the window's time is."""
    file = "models/marts/departures_hourly.sql"
    place = at(opened, file, "hour.start", 2)
    found = prepared(opened, file, place)
    assert (found.written, found.meaning) == ("hour", "window 'hour' of 'models/marts/departures_hourly.sql'")
    assert (found.range.start, found.range.end.character) == (at(opened, file, "hour.start"), 8)
    edit = renamed(opened, file, place, "slot")
    assert list(edit.changes) == [(opened.root / file).as_uri()]
    after = applied(opened, edit)
    assert list(after.manifest.model("departures_hourly").windows) == ["slot"]
    assert "  slot: tumbling(scheduled_at, 1 hour)" in after.text(file)
    assert {m.name: columns(after, m.name) for m in after.manifest.models} == {
        m.name: columns(opened, m.name) for m in opened.manifest.models
    }


def test_a_model_that_is_streamed_is_renamed_wherever_it_is_named(opened):
    """It was rejected, because headers name it under `streams:`."""
    file = "models/marts/aircraft.sql"
    edit = renamed(opened, file, at(opened, file, "streams: [flights", 11), "takeoffs")
    after = applied(opened, edit)
    assert "streams: [takeoffs]" in after.text(file)
    assert "  takeoffs: {watermark: departed_at" in after.text("models/marts/journeys.sql")
    assert "given: {takeoffs: [{" in after.text("tests/models/tables.yml")
    assert {
        test.model for test in after.manifest.nodes.values() if getattr(test, "file", "") == "tests/models/flights.yml"
    } == {"model.takeoffs"}
    # The column of the name, and the project, are others.
    assert "count(*) as flights" in after.text("models/marts/carriers.sql")
    assert after.text("project.yml") == opened.text("project.yml")


def test_a_column_in_the_string_of_a_macro_is_renamed(opened):
    file = "models/marts/routes.sql"
    after = applied(opened, renamed(opened, file, at(opened, file, "f.departure_delay), 1", 4), "minutes_late"))
    assert "share('f.minutes_late >= '" in after.text(file)
    assert "check: coalesce(minutes_late, 0)" in after.text("models/staging/flights.sql")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "shop"
    root.mkdir()
    return renamed_project(root)


HIDDEN = (
    "select kind as sort from {{ ref('orders') }} {% if var('least') > 99 %}where kind = 'a' and sort > 1{% endif %}"
)
HOOK = """/*---
materialized: table
post_hook: ["delete from {{ this }} where sort is null"]
---*/
select kind as sort from {{ ref('orders') }}
"""
TWO = "with c as (select id from {{ ref('orders') }}) select c.id from c join {{ ref('kinds') }} on kinds.kind = c.id"


@pytest.mark.parametrize(
    ("text", "words", "new", "reason"),
    [
        # What compilation does not see.
        (HIDDEN, "as sort", "order_kind", "models/more.sql:1 has 'sort' in a part that the template leaves out here"),
        (HOOK, "as sort", "order_kind", "models/more.sql:3 names it in a hook"),
        ("{% for m in ['orders'] %}select id from {{ ref(m) }}{% endfor %}", "", "sales", "has 'orders' as a string"),
        # Both would have the name: Spark does not know which of them is meant.
        (TWO, "with c", "kinds", "'kinds' is taken: models/more.sql:1:80 reads something of that name"),
        (TWO, "ref('orders", "c", "'c' is taken: models/more.sql:1:6 reads something of that name"),
        ("{% set big = 1 %}select id from {{ ref('orders') }}", "MACRO", "x", "more.sql:1:8 has a variable 'big'"),
        # Names that are nobody's.
        ("select upper(kind) as u from {{ ref('orders') }}", "select upper", "x", "this is not a name"),
        ("{% set n = 1 %}select id + {{ n }} as u from {{ ref('orders') }}", "{{ n", "x", "this is not a name"),
        ("select * from {{ ref('orders') }}", "", "x", ""),
    ],
)
def test_what_cannot_be_known_is_rejected_with_its_place(shop, text, words, new, reason):
    (shop / "models/more.sql").write_text(text)
    opened = compiled(shop)
    if words == "MACRO":
        edit = renamed_name(opened, Name(NameKind.MACRO, "big"), new)
    elif words:
        edit = renamed(opened, "models/more.sql", at(opened, "models/more.sql", words, len(words) - 1), new)
    elif reason:
        edit = renamed_name(opened, Name(NameKind.MODEL, "orders"), new)
    else:
        # A star of another model would take the new name on.
        edit = renamed_name(opened, Name(NameKind.COLUMN, "kind", "model.orders"), new)
        reason = "column 'kind' of 'more' would get another name, too"
    assert isinstance(edit, str)
    assert reason in edit


def test_texts_that_look_like_a_name_stay(shop):
    opened = compiled(shop)
    after = applied(opened, renamed_name(opened, Name(NameKind.COLUMN, "amount", "model.orders"), "price"))
    text = after.text("models/orders.sql")
    assert """check: "price > 0 and kind <> 'amount'\"""" in text
    assert "select id, r.kind, amount as price, at," in text
    assert "{{ big('r.amount') }}" in text
    assert "id, kind, price, at\n" in after.text("tests/hourly.yml")
    assert after.text("tests/fixtures/some.csv").startswith("id,kind,price,at\n")
    assert "rows: [{id: 1, kind: a, price: 5," in after.text("tests/hourly.yml")
    assert "rows: [{id: 1, kind: a, amount: 50, data:" in after.text("tests/hourly.yml")
    assert "where orders.price > 0" in after.text("models/hourly.sql")


def test_a_tag_before_a_column_is_renamed_with_the_model(shop):
    (shop / "models/more.sql").write_text("select {{ ref('kinds') }}.kind, kinds.label from {{ ref('kinds') }}")
    opened = compiled(shop)
    after = applied(opened, renamed_name(opened, Name(NameKind.MODEL, "kinds"), "sorts"))
    assert after.text("models/more.sql") == "select {{ ref('sorts') }}.kind, sorts.label from {{ ref('sorts') }}"


def test_a_generic_test_is_renamed_where_it_is_listed(shop):
    opened = compiled(shop)
    after = applied(opened, renamed_name(opened, Name(NameKind.TEST_KIND, "is_even"), "is_odd"))
    assert "{% macro test_is_odd(" in after.text("macros/tools.sql")
    assert "{is_odd: {name: ids_are_even," in after.text("models/orders.sql")


def test_a_variable_is_renamed_with_the_values_of_unit_tests(shop):
    opened = compiled(shop)
    after = applied(opened, renamed_name(opened, Name(NameKind.VARIABLE, "least"), "smallest"))
    assert """hour: "{{ var('smallest') }}\"""" in after.text("project.yml")
    assert "overrides: {vars: {smallest: 1}" in after.text("tests/hourly.yml")
    assert "var('smallest')" in after.text("macros/tools.sql")
    assert "var('smallest')" in after.text("tests/no_lost_orders.sql")


def test_a_cte_an_alias_and_a_column_inside_a_query_are_renamed(shop):
    file = "models/marts/report.sql"
    opened = compiled(shop)
    after = applied(opened, renamed(opened, file, at(opened, file, "recent as", 2), "latest"))
    assert "recent" not in after.text(file)
    after = applied(after, renamed(after, file, at(after, file, "both as b", 8), "lines"))
    assert "join tagged on tagged.id = lines.id" in after.text(file)
    after = applied(after, renamed(after, file, at(after, file, "(id, label, twice)", 13), "double"))
    assert "as twice, o.amount" in after.text(file)
    assert "{{ flag('sum(lines.double)') }} as many" in after.text(file)


def test_an_editor_shows_the_range_and_what_it_is(project):
    file = "models/marts/departures_hourly.sql"

    async def session():
        async with connected(project) as editor:
            editor.open(file)
            place = editor.at(file, "hour.start", 1)
            found = await editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(**place))
            assert found.placeholder == "hour"
            assert found.range.end.character - found.range.start.character == len("hour")
            assert "rename: window 'hour' of 'models/marts/departures_hourly.sql'" in [
                one.message for one in editor.client.log_messages
            ]
            nothing = types.PrepareRenameParams(**editor.at(file, "group by", 1))
            with pytest.raises(JsonRpcException, match="cannot be renamed: this is not a name"):
                await editor.client.text_document_prepare_rename_async(nothing)

    asyncio.run(session())
