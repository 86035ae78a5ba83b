"""How paths are written for other programs: in one place, and each text leads back to its path."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import engine
from engine import local_paths
from engine.errors import SetupError
from tests.odd_folders.names import LETTERS, WORDS

ROOT = Path(engine.__file__).parent
# What makes or reads an address of a file by itself. An editor's addresses are decoded by the editor.
_ADDRESS = re.compile(r"""\.as_uri\(|f["']file:|["']file:/|urlsplit\([^)]*(?:location|folder|file|path)[^)]*\)\.path""")
_OWN = {"local_paths.py", "lsp/answers/editor_answers.py", "lsp/language_server.py", "lsp/edits/renames.py"}
_OWN |= {"lsp/edits/code_actions.py", "lsp/edits/header_edits.py", "docs/serve.py"}


@pytest.mark.parametrize("part", [*LETTERS, *WORDS])
def test_every_text_leads_back_to_its_path(tmp_path: Path, part: str) -> None:
    path = tmp_path / f"x{part}y" / f"{part}z"
    path.parent.mkdir()
    for location in (
        local_paths.hadoop(path),
        local_paths.iceberg(path),
        local_paths.decoded(local_paths.encoded(path)),
    ):
        assert local_paths.path_of_location(location) == str(path)
    with closing(sqlite3.connect(local_paths.sqlite(path, "mode=rwc"), uri=True)) as connection:
        connection.execute("create table t (a)")
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("location", ["s3://b/a", "file://host/a", "file:a", "hdfs:///a", "http://file:/a"])
def test_what_is_elsewhere_has_no_path(location: str) -> None:
    assert local_paths.path_of_location(location) is None


@pytest.mark.parametrize(
    ("part", "fits", "others"),
    [
        ("*.json", ["a.json", ".json", "a\n.json"], ["a.jsonl"]),
        ("part?", ["part1"], ["part", "part10"]),
        (r"a\*b", ["a*b"], ["axb"]),
        ("{a,b}*", ["a", "b1"], ["c", "{a,b}"]),
        ("[ab]c", ["ac", "bc"], ["c", "[ab]c"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("{a", ["a"], ["{a"]),
        ("a,b}", ["a,b}"], ["a"]),
    ],
)
def test_the_names_that_a_pattern_is_compared_with(part: str, fits: list[str], others: list[str]) -> None:
    pattern = local_paths.names_of_pattern(part)
    assert [name for name in (*fits, *others) if pattern.fullmatch(name)] == fits


def test_a_colon_on_the_class_path_is_named() -> None:
    with pytest.raises(SetupError) as raised:
        local_paths.class_path([Path("/a/b.jar"), Path("/a:c/d.jar")])
    assert "/a:c/d.jar has a colon in its path" in str(raised.value)
    assert local_paths.class_path([Path("/a b/c.jar"), Path("/d.jar")]) == "/a b/c.jar:/d.jar"


def test_no_other_module_writes_or_reads_such_texts() -> None:
    found = {}
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if _ADDRESS.search(line)]
        if lines and name not in _OWN:
            found[name] = lines
    assert found == {}
