"""docs/how-to/environments.md, followed from an empty folder (ENGINE_WRITE_PAGES=1 writes the real output into it)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.lab import REPOSITORY, LabSession
from tests.pages.page_blocks import blocks_of, commands_of
from tests.pages.terminal import follow_page

PAGE = REPOSITORY / "docs" / "how-to" / "environments.md"
WORKFLOW = ".github/workflows/pull-request.yml"


@pytest.mark.nightly
@pytest.mark.spark
def test_the_whole_page(tmp_path: Path, lab_session: LabSession) -> None:
    follow_page(PAGE, tmp_path, session=lab_session)
    shop = tmp_path / "empty" / "shop"
    warehouse = shop / ".engine/lake/warehouse"
    assert {path.parent.parent.name for path in warehouse.glob("*/*/metadata")} == {"shop"}
    assert sorted(path.name for path in (shop / ".engine/state/lake").iterdir() if any(path.iterdir())) == ["shop"]


def test_the_workflow_runs_the_commands_of_the_page() -> None:
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    (file,) = [block for block in blocks if block.file == WORKFLOW]
    workflow = yaml.safe_load(file.text)
    assert workflow["env"]["RUN"] == "${{ github.run_id }}"
    steps = workflow["jobs"]["build"]["steps"]
    followed = [
        command.text.removeprefix("RUN=17 ").removesuffix(" | grep Removed")
        for block in blocks
        if block.language == "console"
        for command in commands_of(block)
    ]
    lines = [step["run"] for step in steps if step.get("run", "").startswith("engine ")]
    assert lines == [command for command in followed if command in lines]
    assert len(lines) == 3
    # What was built goes, also when the build failed.
    assert steps[-1] == {"run": "engine drop --all --yes --target ci", "if": "always()"}
    assert [step["with"] for step in steps if str(step.get("uses")).startswith("actions/checkout@")] == [
        {"persist-credentials": False, "fetch-depth": 0}
    ]
