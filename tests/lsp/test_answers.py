"""Hover, completion, navigation, code actions and rename, over stdio, against the manifest of the example."""

import asyncio
import random

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine import Project
from engine.compile.nodes.column_facts import Derivation
from engine.lsp.opened.open_project import OpenProject
from tests.lsp.conftest import connected

pytestmark = pytest.mark.slow

FILE = "models/marts/departures_hourly.sql"
PLACES = 200


def test_one_session_of_reading_and_editing(project):
    async def session():
        async with connected(project) as editor:
            editor.open(FILE)
            await editor.diagnostics(FILE, lambda found: not found)
            client = editor.client

            async def said(words, offset=0):
                found = await client.text_document_hover_async(types.HoverParams(**editor.at(FILE, words, offset)))
                return found.contents.value if found else ""

            assert "departure_delay" in await said("departure_delay)")
            assert "from `flights.departure_delay`" in await said("departure_delay)")
            assert "**flights** (streaming_table model)" in await said("ref('flights')", 6)
            assert "`partition_by`" in await said("partition_by")
            assert "tumbling over `scheduled_at`, 1 hour; it closes 90 minutes after its start" in await said("hour:")

            at = types.DefinitionParams(**editor.at(FILE, "departure_delay)"))
            (place,) = await client.text_document_definition_async(at)
            assert place.uri == editor.uri("models/staging/flights.sql")
            line = (project / "models/staging/flights.sql").read_text().split("\n")[place.range.start.line]
            assert "departure_delay" in line

            editor.open("models/marts/routes.sql")
            at = types.DefinitionParams(**editor.at("models/marts/routes.sql", "share(", 2))
            (place,) = await client.text_document_definition_async(at)
            assert place.uri == editor.uri("macros/share.sql")
            line = (project / "macros/share.sql").read_text().split("\n")[place.range.start.line]
            assert line[place.range.start.character :].startswith("share(")

            context = types.ReferenceContext(include_declaration=False)
            at = types.ReferenceParams(context, **editor.at(FILE, "ref('flights')", 6))
            readers = {place.uri for place in await client.text_document_references_async(at)}
            model = Project(project).compile().manifest
            expected = {editor.uri(m.file) for m in model.models if "model.flights" in m.depends_on}
            assert expected <= readers
            assert editor.uri("tests/models/departures_hourly.yml") in readers

            symbol = types.DocumentSymbolParams(types.TextDocumentIdentifier(editor.uri(FILE)))
            (top,) = await client.text_document_document_symbol_async(symbol)
            assert [child.name for child in top.children] == ["window_start", "origin", "departures", "mean_delay"]

            editor.type(FILE, editor.texts[FILE].replace("avg(departure_delay)", "avg(departure_delai)"))
            found = await editor.diagnostics(FILE, lambda found: any(d.code == "unknown-column" for d in found))
            action = types.CodeActionParams(
                types.TextDocumentIdentifier(editor.uri(FILE)), found[0].range, types.CodeActionContext(found)
            )
            actions = await client.text_document_code_action_async(action)
            change = next(one for one in actions if one.title == "Change to 'departure_delay'")
            (edit,) = change.edit.changes[editor.uri(FILE)]
            assert edit.new_text == "departure_delay"
            explain = types.ExecuteCommandParams("headrace.explain", ["unknown-column"])
            assert "# unknown-column" in await client.workspace_execute_command_async(explain)

            rename = types.RenameParams(new_name="all_flights", **editor.at(FILE, "ref('flights')", 6))
            with pytest.raises(JsonRpcException, match="not renamed"):
                await client.text_document_rename_async(rename)

    asyncio.run(session())


def test_completion_of_headers_references_and_columns(project):
    header = "/*---\nmaterialized: \nstreams:\n  flights:\n    \n---*/\n"
    query = "select f. from {{ ref('flights') }} as f join {{ ref('') }}"

    async def session():
        async with connected(project) as editor:
            editor.open(FILE)
            await editor.diagnostics(FILE, lambda found: not found)
            editor.type(FILE, header + query)

            async def offered(words, offset):
                at = types.CompletionParams(**editor.at(FILE, words, offset))
                return {item.label: item for item in await editor.client.text_document_completion_async(at)}

            assert set(await offered("materialized: ", 14)) == {"streaming_table", "table", "view", "ephemeral"}
            assert {"watermark", "dedup"} <= set(await offered("    \n---", 4))
            flights = Project(project).compile().manifest.model("flights")
            assert set(await offered("f. ", 2)) == {column.name for column in flights.columns}
            assert "carriers" in await offered("ref('')", 5)
            functions = await offered("select ", 7)
            assert functions["date_trunc"].detail == "date_trunc(fmt, ts)"

    asyncio.run(session())


CTES = """with delays as (
    select carrier, departure_delay as late, named_struct('low', 1, 'high', 2) as both from {{ ref('flights') }}
)
select d.late, d.both, s.n
from delays as d, (select count(*) as n, carrier from delays group by carrier) s
"""


def test_completion_of_ctes_and_subqueries_while_their_query_is_not_whole(project):
    async def session():
        async with connected(project) as editor:
            editor.open(FILE)
            await editor.diagnostics(FILE, lambda found: not found)
            editor.type(FILE, CTES)

            async def offered(words, offset):
                at = types.CompletionParams(**editor.at(FILE, words, offset))
                return {item.label: item for item in await editor.client.text_document_completion_async(at)}

            for _ in range(200):
                if await offered("d.late", 2):
                    break
                await asyncio.sleep(0.1)
            editor.type(FILE, CTES.replace("select d.late, d.both, s.n", "select d., s. , d.both. , delays. , "))
            assert {name: one.detail for name, one in (await offered("d., ", 2)).items()} == {
                "carrier": "string",
                "late": "int",
                "both": "struct<low:int,high:int>",
            }
            assert set(await offered("s. ,", 2)) == {"n", "carrier"}
            assert set(await offered("d.both. ", 7)) == {"low", "high"}
            assert set(await offered("delays. ", 7)) == {"carrier", "late", "both"}
            at = types.DefinitionParams(**editor.at(FILE, "delays as d", 2))
            (place,) = await editor.client.text_document_definition_async(at)
            assert place.range.start == types.Position(0, len("with "))
            assert {"late", "n", "departure_delay"} <= set(await offered(", \nfrom delays", 1))

    asyncio.run(session())


def test_names_in_sql_have_the_types_and_origins_of_the_manifest(project):
    """Of the names in the SQL of all models: what is said of each agrees with the manifest."""
    opened = OpenProject(Project(project))
    opened.compile_all()
    manifest = opened.manifest
    assert not manifest.errors
    places = []
    for model in manifest.models:
        opened.analyse(model.file)
        edited = opened.edited[model.file]
        places += [(model, name) for name in edited.names]
        # A column that is copied is named where it is made, and has its type and origins.
        for column, start in zip(model.columns, edited.outputs, strict=False):
            name = next((one for one in edited.names if one.start == start), None)
            if column.derivation is Derivation.COPY and name and name.text == column.sql:
                assert name.origins == tuple((origin.node, origin.column) for origin in column.origins)
                assert name.type == column.type
    checked = 0
    for model, name in random.Random(37).choices(places, k=PLACES):
        text = opened.text(model.file).split("\n")[name.start.line - 1]
        assert text[name.start.column - 1 :].startswith(name.text)
        for node, column in name.origins:
            known = {one.name: one.type for one in manifest.nodes[node].columns}
            first = column.split(".")[0]
            assert first in known or first == "_metadata"
            if column in known and name.text.split(".")[-1] == column and len(name.origins) == 1:
                assert name.type == known[column]
                checked += 1
    assert checked > PLACES / 4
