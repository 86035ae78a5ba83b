"""The projects that pages consist of compile, and their unit tests pass in Spark."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine.compile import Manifest, compile_project
from engine.project import load_project
from tests.lab import REPOSITORY, Lab
from tests.pages.page_blocks import blocks_of, put

DOCS = REPOSITORY / "docs"


# The pages that are a project, with the codes of their diagnostics.
PAGES: dict[str, list[str]] = {
    "cheat-sheet": [],
    "concepts": ["unbounded-complete"],
    "cookbook": [],
    "how-to/from-a-spark-script": [],
}


def compiled(page: str, folder: Path) -> Manifest:
    for block in blocks_of((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if block.file:
            put(block, folder)
    return compile_project(load_project(folder)).manifest


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_project_of_the_page_has_no_error(page: str, tmp_path: Path) -> None:
    manifest = compiled(page, tmp_path)
    assert [finding.code for finding in manifest.diagnostics] == PAGES[page]
    assert {test.model for test in manifest.unit_tests} == {model.id for model in manifest.models}


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES)
def test_the_rows_of_the_page_are_true(page: str, lab: Lab) -> None:
    settings = (lab.root / "project.yml").read_text(encoding="utf-8")
    tests = compiled(page, lab.root).unit_tests
    lab.write("project.yml", settings)
    result = lab.run("test", "-s", "test_type:unit")
    assert result.code == 0, result.text
    passed = [event for event in result.events if event["event"] == "TestFinished" and event["status"] == "pass"]
    assert len(passed) == len(tests)


@pytest.mark.parametrize("image", sorted((DOCS / "images").iterdir()), ids=lambda image: image.name)
def test_images_are_small_and_load_nothing(image: Path) -> None:
    assert image.stat().st_size < 100_000
    if image.suffix == ".svg":
        drawing = ET.parse(image).getroot()
        assert drawing.find("{http://www.w3.org/2000/svg}title") is not None
        assert "prefers-color-scheme" in image.read_text(encoding="utf-8")
        assert not [element for element in drawing.iter() for name in element.attrib if name.endswith("href")]
    else:
        assert image.read_bytes().startswith(b"\x89PNG")
