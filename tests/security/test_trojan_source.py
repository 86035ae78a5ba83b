"""What a reviewer cannot see, or sees as something else, is a warning with its place, in every file of a project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.project import load_project
from tests.security.hostile import MODEL, PROJECT, SOURCES, run, write

OVERRIDE, ISOLATE, NO_WIDTH, CYRILLIC_A, GREEK_O = "\u202e", "\u2067", "\u200b", "\u0430", "\u03bf"

FILES = {
    "models/b.sql": "select 1 as a -- {}\n",
    "models/header.sql": "/*---\ndescription: x {}\n---*/\nselect 1 as a\n",
    "models/text.sql": "select '{}' as a\n",
    "macros/m.sql": "{{% macro m() %}}select '{}'{{% endmacro %}}\n",
    "sources/more.yml": "# {}\nsources: []\n",
    "tests/t.yml": "# {}\ndata_tests: []\n",
    "tests/none.sql": "select * from {{{{ ref('a') }}}} where false -- {}\n",
    "project.yml": f"{PROJECT.replace('{', '{{').replace('}', '}}')}# {{}}\n",
}


def warned(root: Path) -> list[tuple[str, int, int]]:
    found = load_project(root)
    result = compile_project(found)
    warnings = [d for d in result.manifest.diagnostics if d.code == "trojan-source"]
    assert not any(d.is_error for d in warnings)
    assert all(d.location for d in warnings)
    return [(d.location.file, d.location.line, d.location.column) for d in warnings]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("hidden", [OVERRIDE, ISOLATE, NO_WIDTH, f"p{CYRILLIC_A}id", f"{GREEK_O}rders"], ids=ascii)
def test_what_is_not_what_it_seems_is_a_warning_at_its_place(tmp_path: Path, file: str, hidden: str) -> None:
    text = FILES[file].format(hidden)
    write(tmp_path, {file: text})
    line = next(n for n, said in enumerate(text.splitlines(), 1) if not said.isascii())
    column = next(n for n, letter in enumerate(text.splitlines()[line - 1], 1) if not letter.isascii())
    assert warned(tmp_path) == [(file, line, column)]


@pytest.mark.parametrize(
    "said",
    [
        "שלום עולם, hello", "مرحبا", "Обычный текст рядом с English", "SMS-сообщения", "Δt and λmax in μs", "naïve café",  # noqa: RUF001
        "日本語 text", "👩‍🚀 with a joiner", "می‌خواهم", "ΑΒΓ",
    ],
)  # fmt: skip
def test_ordinary_text_of_any_script_is_none(tmp_path: Path, said: str) -> None:
    files = {name: text.format(said) for name, text in FILES.items()}
    write(tmp_path, files)
    assert warned(tmp_path) == []


def test_rows_of_fixtures_are_data(tmp_path: Path) -> None:
    write(tmp_path, {"tests/fixtures/rows.csv": f"id\n{OVERRIDE}\n"})
    assert warned(tmp_path) == []


def test_the_warning_names_the_character_without_showing_it_and_counts_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"macros/m.sql": f"-- {OVERRIDE} {OVERRIDE}\n-- {NO_WIDTH}\n"})
    assert run(tmp_path, "compile") == 0
    out = "".join(capsys.readouterr())
    assert "macros/m.sql:1:4: warning: the character U+202E is invisible" in out
    assert "(3 of them in this file)" in out
    assert OVERRIDE not in out


def test_it_is_said_again_when_nothing_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"models/b.sql": f"select 1 as a -- {ISOLATE}\n"})
    for _ in range(2):
        assert run(tmp_path, "compile") == 0
        assert "models/b.sql:1:18: warning" in "".join(capsys.readouterr())


def test_the_site_writes_them_out(tmp_path: Path) -> None:
    escaped = '/*---\ndescription: "a\\u202eb \\\\u202e"\n---*/\n'
    write(tmp_path, {"sources/shop.yml": SOURCES, "models/a.sql": escaped + MODEL.partition("---*/\n")[2]})
    run(tmp_path, "docs", "generate")
    site = "".join(path.read_text() for path in (tmp_path / "target" / "docs").rglob("*.js"))
    assert "a\\\\u202eb" in site
    # An odd number of backslashes would be the character itself.
    assert not re.search(r"(?<!\\)(?:\\\\)*\\u202e", site)
