"""The reference of keys is current, whole, and leads where it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.schema.all_blocks import BLOCKS, FILES_OF_A_PROJECT
from engine.schema.reference_pages import reference_pages
from tests.lab import REPOSITORY
from tests.test_layers import ROOT, modules_with

DOCS = REPOSITORY / "docs" / "reference"
PAGES = reference_pages()
# Where keys of YAML are read.
READERS = sorted(
    path
    for part in ("project", "compile/config", "compile/declarations", "compile/test_nodes", "compile/selection")
    for path in (ROOT / part).rglob("*.py")
)
# `format-version` is a table property of Iceberg.
NAMES = {"format-version"} | {key.name for block in BLOCKS.values() for key in block.keys}


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_current(page: str) -> None:
    assert (DOCS / page).read_text() == PAGES[page], "run make reference"


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in DOCS.iterdir()} == set(PAGES)


def anchors(text: str) -> set[str]:
    """As GitHub and static site generators make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", re.sub(r"&\w+;", "", title.lower())) for title in titles)
    return {re.sub(r"\s", "-", title.strip()) for title in plain}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_headings(page: str) -> None:
    for file, anchor in re.findall(r"\]\(([\w.]+\.md)(?:#([^)]+))?\)", PAGES[page]):
        assert file in PAGES
        assert not anchor or anchor in anchors(PAGES[file]), f"{page}: {file}#{anchor}"


def test_every_block_is_on_one_page_and_every_key_of_it_has_a_row() -> None:
    blocks = [block.name for file in FILES_OF_A_PROJECT for block in file.blocks]
    assert len(blocks) == len(set(blocks))
    for file in FILES_OF_A_PROJECT:
        for block in file.blocks:
            for key in block.keys:
                assert f"\n| `{key.name}` |" in PAGES[f"{file.name}.md"]
                assert key.block == "" or key.block in BLOCKS
                assert not key.meaning.endswith(".")


def keys_read(path: Path) -> Iterator[str]:
    """The keys that a module asks a part of a YAML document for, by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "child":
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


@pytest.mark.slow
def test_every_key_that_is_read_is_in_the_reference() -> None:
    read = {key for path in READERS for key in keys_read(path)}
    assert len(read) > 60
    assert read - NAMES == set()


@pytest.mark.slow
def test_keys_are_checked_with_the_blocks_of_the_schema_alone() -> None:
    """A set of keys beside them would be accepted and not documented."""
    calls = [
        (path.name, ast.unparse(node.args[0]))
        for path, text in modules_with("check_keys")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "check_keys"
    ]
    assert len(calls) > 25
    assert [call for call in calls if not re.fullmatch(r"[A-Z_]+(\[\w+\])?|block", call[1])] == []
