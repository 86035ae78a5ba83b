"""docs/README.md leads to every page."""

from __future__ import annotations

import re

from tests.lab import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", (DOCS / "README.md").read_text(encoding="utf-8")))
    pages = {page.relative_to(DOCS).as_posix() for page in (*DOCS.glob("*.md"), *DOCS.glob("reference/*.md"))}
    assert pages - linked - {"README.md"} == set()
