"""Texts that regular expressions read take time in proportion to their length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.hostile import run, write

pytestmark = pytest.mark.slow

# Each would take minutes where its time grows with the square of its length.
TEXTS = {
    "watermark": "from engine.compile.config.stream_config import _WATERMARK as p; p.fullmatch('a' + ' ' * n + 'b')",
    "named watermark": "from engine.compile.config.stream_config import _NAMED as p; p.fullmatch('a' + ' ' * n); p.fullmatch('a as ' + ' ' * n + '-')",
    "comments that are open": "read('{#' * n)",
    "comments before nothing": "read('{#-' * n); read('{# x #}' * n)",
    "macros that are open": "read('{% macro a(' * n)",
    "macros without an end": "read('{% macro a() %}' * n)",
    "blanks in a macro": "read('{%' + ' ' * n); read('{% macro a(x' + ' ' * n)",
    "tags that are open": "macros_used('{{' * n, ['a']); macros_used('{%' * n, ['a'])",
    "names in a tag": "macros_used('{{' + 'a.' * n + '}}', ['a'])",
    "quotes in a type": "from engine.compile.types.spark_types import normal, _TOKEN; list(_TOKEN.finditer(chr(39) + (chr(92) + chr(39)) * n)); normal('array<' * n)",
}
BEGIN = """
from engine.compile.nodes.macro_docs import macros_used, read_macros
from engine.jinja import MacroFile
n = 250_000
def read(text):
    return read_macros([MacroFile('macros/m.sql', text, '')])
"""


@pytest.mark.parametrize("code", TEXTS.values(), ids=TEXTS)
def test_a_long_text_is_read_in_one_go(code):
    # The limit only keeps a hang from being one: a quarter of a million signs take well below a second.
    done = subprocess.run([sys.executable, "-c", BEGIN + code], timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["1" * 100_000, "1 day " * 20_000], ids=["digits", "parts"])
def test_the_text_of_an_interval_has_a_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write(tmp_path, {"models/b.sql": f"select\n  interval '{text}' as a\n"})
    assert run(tmp_path, "parse") == 1
    assert "models/b.sql:2:12: error: an interval of 1" in "".join(capsys.readouterr())
