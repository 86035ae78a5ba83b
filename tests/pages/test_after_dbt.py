"""docs/how-to/after-dbt.md, followed beside a dbt project (ENGINE_WRITE_PAGES=1 writes the real output into it)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lab import REPOSITORY, LabSession
from tests.pages.page_blocks import blocks_of
from tests.pages.terminal import follow_page

PAGE = REPOSITORY / "docs" / "how-to" / "after-dbt.md"
PROJECT = Path(__file__).parent / "dbt_jaffle"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with the dbt project, as after `dbt parse`."""
    project = tmp_path / "given" / "jaffle"
    shutil.copytree(PROJECT, project)
    (project / "target").mkdir()
    (project / "manifest.json").rename(project / "target" / "manifest.json")
    return project.parent


@pytest.mark.slow
def test_what_needs_no_java(tmp_path: Path, given: Path) -> None:
    follow_page(PAGE, tmp_path, session=None, given=given)


@pytest.mark.nightly
@pytest.mark.spark
def test_the_whole_page(tmp_path: Path, given: Path, lab_session: LabSession) -> None:
    follow_page(PAGE, tmp_path, session=lab_session, given=given)


def test_every_block_is_a_file_or_commands() -> None:
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    assert [block.line for block in blocks if not block.file and block.language != "console"] == []
    assert PAGE.read_text(encoding="utf-8").count("\n```\n") == len(blocks)


def test_the_old_tables_are_those_of_the_first_file() -> None:
    (landed,) = [
        block.text for block in blocks_of(PAGE.read_text(encoding="utf-8")) if block.file.endswith("05-05.json")
    ]
    orders = (PROJECT / "dbt_orders.csv").read_text(encoding="utf-8").splitlines()
    assert len(orders) - 1 == len({line.split(",")[0] for line in landed.splitlines()})
