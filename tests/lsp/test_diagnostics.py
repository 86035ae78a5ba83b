"""Diagnostics of texts that are not saved, over stdio."""

import asyncio
import os
import subprocess
import sys

import pytest

from engine.compile.pipeline import worker_pool
from engine.errors import Location
from engine.lsp.text import location_of_position, position_of
from tests.lsp.conftest import connected

pytestmark = pytest.mark.slow

FILE = "models/marts/departures_hourly.sql"


def listing(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_unsaved_text_is_compiled_and_nothing_is_written(project):
    before = listing(project)

    async def session():
        async with connected(project) as editor:
            editor.open(FILE)
            good = editor.texts[FILE]
            await editor.diagnostics(FILE, lambda found: not found)
            editor.type(FILE, good.replace("avg(departure_delay)", "avg(departure_delai)"))
            found = await editor.diagnostics(FILE, lambda found: any(d.code == "unknown-column" for d in found))
            finding = next(d for d in found if d.code == "unknown-column")
            place = finding.range
            line = good.split("\n")[place.start.line]
            assert line[place.start.character :].startswith("departure_delay)")
            assert place.end.character - place.start.character == len("departure_delai")
            assert "Did you mean 'departure_delay'" in finding.message
            editor.type(FILE, good)
            await editor.diagnostics(FILE, lambda found: not found)

    asyncio.run(session())
    assert listing(project) == before


def test_an_edit_reaches_the_models_downstream(project):
    async def session():
        async with connected(project) as editor:
            editor.open(FILE)
            editor.type(FILE, editor.texts[FILE].replace("as departures,", "as departed,"))
            await editor.diagnostics("models/marts/busiest_hours.sql", bool)

    asyncio.run(session())


def test_findings_are_those_of_compile(project):
    path = project / FILE
    path.write_text(path.read_text().replace("{{ ref('flights') }}", "{{ ref('flihgts') }}"))
    command = [sys.executable, "-m", "engine", "compile", "--log-format", "json"]
    done = subprocess.run(command, check=False, cwd=project, capture_output=True, text=True, env=os.environ)
    assert "unknown-ref" in done.stdout + done.stderr

    async def session():
        async with connected(project) as editor:
            await editor.diagnostics(FILE, lambda found: any(d.code == "unknown-ref" for d in found))

    asyncio.run(session())


def test_positions_count_utf_16_units():
    text = "a\nx\U0001f6ebé = 'b'"
    place = Location("m.sql", 2, 4)
    position = position_of(place, text)
    assert (position.line, position.character) == (1, 4)
    assert location_of_position(position, text, "m.sql") == place


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one process compiles all models")
def test_a_large_project_is_compiled_by_several_processes_while_stdin_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "project"
    (root / "models").mkdir(parents=True)
    (root / "project.yml").write_text("name: large\n")
    for number in range(worker_pool.WORTH):
        (root / f"models/m{number}.sql").write_text(f"select {number} as n\n")
    (root / "models/wrong.sql").write_text("select m from {{ ref('m1') }}\n")

    async def session():
        async with connected(root) as editor:
            await editor.diagnostics("models/wrong.sql", lambda found: any(d.code == "unknown-column" for d in found))

    asyncio.run(session())
