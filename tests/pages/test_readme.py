"""What README.md shows is what docs/getting-started.md shows, which is run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

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


SHOWN = {
    "README.md": ("window", "forty_batches", "ten_models", "pipelines", "nothing_new"),
    "docs/comparison.md": ("window", "forty_batches", "nothing_new"),
}


@pytest.mark.parametrize("page", SHOWN)
def test_ratios_are_those_of_the_results(page: str) -> None:
    (name,) = re.findall(r"\(benchmarks/results/(.+?\.json)\)", README)
    results = json.loads((REPOSITORY / "benchmarks" / "results" / name).read_text(encoding="utf-8"))
    ratios = {result["work"]: result["ratio"] for result in results["results"]}
    forms = {work: (f"{ratio:.2f}", faster(ratio)) for work, ratio in ratios.items()}
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert [work for work in SHOWN[page] if not any(form in text for form in forms[work])] == []


def faster(ratio: float) -> str:
    """0.44 of the time is 2.3x faster."""
    return f"{1 / ratio:.{0 if ratio < 0.1 else 1}f}x faster"
