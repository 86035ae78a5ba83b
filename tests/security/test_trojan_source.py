"""What a reviewer cannot see, or sees as something else, is a warning with its place, in every file of a project."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path

import pytest

from engine.characters import IGNORABLE
from engine.compile import compile_project
from engine.project import load_project
from engine.project.trojan_source import deceptions
from tests.security.hostile import MODEL, PROJECT, SOURCES, run, write

pytestmark = pytest.mark.slow

OVERRIDE, ISOLATE, NO_WIDTH, CYRILLIC_A, GREEK_O = "\u202e", "\u2067", "\u200b", "\u0430", "\u03bf"

# Ignorable for Unicode: joiners and selectors without a letter or symbol that takes them, soft hyphen, fillers, tags.
INVISIBLE = ("\u200d", "\u00ad", "\u3164", "\ufe0f", "\U000e0041", "\u2061", "\u115f", "\uffa0", "\U000e0100")
MIXED = ("\uff49d", "i\U0001d41d", "\u0434ata", "\u13a0b")

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
@pytest.mark.parametrize(
    "hidden", [OVERRIDE, ISOLATE, NO_WIDTH, f"p{CYRILLIC_A}id", f"{GREEK_O}rders", *INVISIBLE, *MIXED], ids=ascii
)
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


@pytest.mark.parametrize(
    "said",
    ["❤️ 1️⃣ 🏳️‍🌈", "葛\U000e0100", "क्‍ष", "\u0430 \u0441 \u043e", "ª º", "№ 5 m²", "\u200e\u05e9\u05dc\u200f"],
    ids=ascii,
)
def test_what_joins_symbols_and_letters_is_ordinary(tmp_path: Path, said: str) -> None:
    write(tmp_path, {name: text.format(said) for name, text in FILES.items() if name != "models/b.sql"})
    assert warned(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"select 1 as {CYRILLIC_A}\n", (1, 13)),
        ("select 1 as cop, 2 as \u0441\u043e\u0440\n", (1, 23)),
        (f"-- {CYRILLIC_A}\nselect '{CYRILLIC_A}' as x, 1 as `{CYRILLIC_A}`\n", (2, 24)),
        ("select 1 as \uff49\uff44, 2 as id\n", (1, 13)),
        (f"select 1 as x /* {CYRILLIC_A} */ -- {CYRILLIC_A}\n", None),
        ("select 1 as \u0440\u043e\u0441\u0442\n", None),
    ],
    ids=ascii,
)
def test_a_name_that_looks_like_another_is_a_warning(tmp_path: Path, text: str, place: tuple[int, int] | None) -> None:
    write(tmp_path, {"models/b.sql": text})
    assert warned(tmp_path) == ([("models/b.sql", *place)] if place else [])


def test_ignorable_is_what_unicode_says() -> None:
    """A sample of both sides, by categories that Python knows: format characters are ignorable, except those that show."""
    shown = {
        *range(0x600, 0x606),
        0x6DD,
        0x70F,
        0x890,
        0x891,
        0x8E2,
        0xFFF9,
        0xFFFA,
        0xFFFB,
        0x110BD,
        0x110CD,
        *range(0x13430, 0x13440),
    }
    formats = {n for n in range(0x110000) if unicodedata.category(chr(n)) == "Cf"}
    ignorable = {n for n in range(0x110000) if re.match(f"[{IGNORABLE}]", chr(n))}
    assert formats - ignorable == formats & shown
    assert {0x115F, 0x3164, 0xFE0F, 0xFFA0, 0xE0100, 0x34F} <= ignorable
    assert not any(unicodedata.category(chr(n)) in {"Lu", "Ll", "Nd", "Po"} for n in ignorable)


@pytest.mark.parametrize("text", ["a" * 200_000 + "é", "/*" * 100_000 + "é", "{#" * 100_000 + "é", "'" * 200_001 + "é", "--" * 100_000 + "é"],
                         ids=lambda text: text[:4])  # fmt: skip
def test_long_texts_take_linear_time(text: str) -> None:
    began = time.process_time()
    list(deceptions(text, "models/b.sql"))
    assert time.process_time() - began < 2


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
