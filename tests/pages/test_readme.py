"""What README.md shows is what docs/getting-started.md shows, which is run."""

from __future__ import annotations

from pathlib import Path

from tests.lab import REPOSITORY
from tests.pages.page_blocks import Command, blocks_of, commands_of, comparable, put

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs" / "getting-started.md").read_text(encoding="utf-8")


def commands(page: str) -> list[Command]:
    return [command for block in blocks_of(page) if block.language == "console" for command in commands_of(block)]


def test_the_model_is_the_one_of_the_tutorial(tmp_path: Path) -> None:
    versions = []
    for block in blocks_of(TUTORIAL):
        if block.file:
            put(block, tmp_path)
            versions.append((block.file, (tmp_path / block.file).read_text(encoding="utf-8")))
    (model,) = [block for block in blocks_of(README) if block.language == "sql"]
    assert (model.file, model.text) in versions


def test_each_output_is_one_of_the_tutorial() -> None:
    shown = commands(README)
    assert [command.text for command in shown] == ["engine build", "engine compile"]
    for command in shown:
        lines = set(comparable(command.output).splitlines())
        outputs = [
            set(comparable(other.output).splitlines()) for other in commands(TUTORIAL) if other.text == command.text
        ]
        assert any(lines and lines <= output for output in outputs), command.text
