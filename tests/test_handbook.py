"""The handbook says what the code says."""

from __future__ import annotations

import re

import pytest

from engine.cli.main import cli
from engine.compile.layers import KEYS
from engine.errors import CODES, handbook_page
from tests.lab import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_the_page_of_codes_is_made_from_the_catalogue() -> None:
    assert (DOCS / "errors.md").read_text() == handbook_page(), "run make docs"


def test_the_refusals_that_the_handbook_explains_exist() -> None:
    codes = set(re.findall(r"^\| `([a-z-]+)`", (DOCS / "safety.md").read_text(), re.MULTILINE))
    named = set(re.findall(r"`([a-z]+-[a-z-]+)`", (DOCS / "safety.md").read_text()))
    assert codes <= set(CODES)
    assert named & set(CODES)


def test_every_key_of_a_header_is_in_the_handbook() -> None:
    text = (DOCS / "models.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in text] == []


@pytest.mark.parametrize("page", [*sorted(p.name for p in DOCS.glob("*.md")), "../README.md"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = DOCS / page
    for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not link.startswith("http"):
            assert (path.parent / link).exists(), f"{page} links to {link}"


def test_every_command_is_in_the_handbook() -> None:
    text = (DOCS / "commands.md").read_text()
    for name, command in cli.commands.items():
        inner = getattr(command, "commands", None)
        for full in [f"{name} {sub}" for sub in inner] if inner else [name]:
            assert f"engine {full}" in text, full
