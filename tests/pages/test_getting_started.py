"""docs/getting-started.md, followed from an empty folder.

With ENGINE_WRITE_PAGES=1 in the environment the tests write the real output into the page instead of comparing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import REPOSITORY, LabSession
from tests.pages.page_blocks import blocks_of
from tests.pages.terminal import follow_page

PAGE = REPOSITORY / "docs" / "getting-started.md"


@pytest.mark.slow
def test_what_needs_no_java(tmp_path: Path) -> None:
    follow_page(PAGE, tmp_path, session=None)


@pytest.mark.spark
def test_the_whole_page(tmp_path: Path, lab_session: LabSession) -> None:
    follow_page(PAGE, tmp_path, session=lab_session)


def test_only_the_installation_is_not_run() -> None:
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    assert [block.text.splitlines()[-1] for block in blocks if not block.file and block.language != "console"] == [
        "pip install '.[java]'"
    ]
    assert PAGE.read_text(encoding="utf-8").count("\n```\n") == len(blocks)
