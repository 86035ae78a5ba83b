"""docs/getting-started.md, followed from an empty folder.

With ENGINE_WRITE_PAGES=1 in the environment the tests write the real output into the page instead of comparing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import REPOSITORY
from tests.pages.page_blocks import blocks_of, comparable
from tests.pages.terminal import UPDATE, Terminal, write_output

PAGE = REPOSITORY / "docs" / "getting-started.md"


def follow(tmp_path: Path, *, tables: bool) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    outputs = list(Terminal(folder, tmp_path / "bin").follow(PAGE, tables=tables))
    assert outputs
    if UPDATE in os.environ:
        write_output(PAGE, outputs)
        return
    for command, output in outputs:
        assert comparable(output) == comparable(command.output), f"line {command.line}: {command.text}"


def test_what_needs_no_java(tmp_path: Path) -> None:
    follow(tmp_path, tables=False)


@pytest.mark.spark
def test_the_whole_page(tmp_path: Path) -> None:
    follow(tmp_path, tables=True)


def test_only_the_installation_is_not_run() -> None:
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    assert [block.text.splitlines()[-1] for block in blocks if not block.file and block.language != "console"] == [
        "pip install '.[java]'"
    ]
    assert PAGE.read_text(encoding="utf-8").count("\n```\n") == len(blocks)
