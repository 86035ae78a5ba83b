"""Formatting with a program of the user's, over stdio: sqlfluff, and programs that fail or change the query."""

import asyncio
import sys

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp.conftest import connected

pytestmark = pytest.mark.slow

FILE = "models/marts/aircraft.sql"
UGLY = """/*---
streams: [flights]
---*/
SELECT flight_id,carrier   from {{ ref('flights') }}
where  carrier='AA'
"""
SQLFLUFF = f"{sys.executable} -m sqlfluff format --dialect sparksql -"
# Programs that do something else: the file on standard input, the answer on standard output.
OTHER = {
    "changes": ("import sys; print(sys.stdin.read().replace('AA', 'UA'))", "another query"),
    "breaks": ("import sys; print(sys.stdin.read().replace('where', 'were the'))", "another query"),
    "fails": ("import sys; sys.exit('no such dialect')", "no such dialect"),
    "silent": ("pass", "it wrote nothing"),
    "binary": ("import sys; sys.stdout.buffer.write(bytes([255, 254]))", "not UTF-8"),
}


async def answer(project, command, text):
    arguments = ("lsp", "--formatter", command) if command else ("lsp",)
    async with connected(project, sys.executable, "-m", "engine", *arguments, "--project-dir", str(project)) as editor:
        editor.open(FILE, text)
        asked = types.DocumentFormattingParams(
            types.TextDocumentIdentifier(editor.uri(FILE)), types.FormattingOptions(4, insert_spaces=True)
        )
        try:
            return await editor.client.text_document_formatting_async(asked)
        except JsonRpcException as error:
            return str(error)


def test_sqlfluff_formats_a_model_once(project):
    edits = asyncio.run(answer(project, SQLFLUFF, UGLY))
    (edit,) = edits
    assert edit.range.start == types.Position(0, 0)
    assert edit.range.end == types.Position(5, 0)
    header, _, query = edit.new_text.partition("---*/\n")
    assert header.startswith("/*---\nstreams: [flights]\n")
    assert query == "SELECT\n    flight_id,\n    carrier\nFROM {{ ref('flights') }}\nWHERE carrier = 'AA'\n"
    again = asyncio.run(answer(project, SQLFLUFF, edit.new_text))
    assert not again


@pytest.mark.nightly_except("changes", "fails")
@pytest.mark.parametrize("kind", OTHER)
def test_what_fails_or_changes_the_query_is_not_taken(project, kind):
    program, said = OTHER[kind]
    script = project / "format.py"
    script.write_text(program)
    answered = asyncio.run(answer(project, f"{sys.executable} {script}", UGLY))
    assert answered.startswith("not formatted: ")
    assert said in answered


def test_without_a_program_nothing_is_formatted(project):
    assert "Method Not Found" in asyncio.run(answer(project, None, UGLY))
