"""docs/tutorial.md, followed from an empty folder (ENGINE_WRITE_PAGES=1 writes the real output into it)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import REPOSITORY, LabSession
from tests.pages.page_blocks import blocks_of, commands_of
from tests.pages.terminal import follow_page

PAGE = REPOSITORY / "docs" / "tutorial.md"


@pytest.mark.nightly
@pytest.mark.spark
def test_the_whole_page(tmp_path: Path, lab_session: LabSession) -> None:
    follow_page(PAGE, tmp_path, session=lab_session)


def test_every_block_is_a_file_or_commands() -> None:
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    assert [block.line for block in blocks if not block.file and block.language != "console"] == []
    assert PAGE.read_text(encoding="utf-8").count("\n```\n") == len(blocks)
    assert all(command.output for block in blocks if block.language == "console" for command in commands_of(block))
