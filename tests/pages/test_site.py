"""The documentation as a site: its navigation has every page, it builds without a warning, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scripts.site.pages import HOME, NAVIGATION, linked, pages, stage
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow

# What a browser loads by itself, other than what a reader follows.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]+src=\"([^\"]+)|<link[^>]+href=\"([^\"]+)|url\(([^)]+)\)|@import ([^;]+)"
)


def documents() -> set[str]:
    named = ("README.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")
    return {*named, *(page.relative_to(REPOSITORY).as_posix() for page in (REPOSITORY / "docs").rglob("*.md"))}


def test_the_navigation_has_every_page_once() -> None:
    count = Counter(pages())
    missing = sorted(documents() - count.keys())
    assert missing == [], f"add to {NAVIGATION.relative_to(REPOSITORY)}"
    assert [page for page, times in count.items() if times > 1 or not (REPOSITORY / page).is_file()] == []


def test_pages_link_to_pages_of_the_site() -> None:
    known = set(pages())
    for page in known:
        for link in linked(REPOSITORY / page):
            target = ((REPOSITORY / page).parent / link).resolve().relative_to(REPOSITORY).as_posix()
            assert not target.endswith(".md") or target in known, f"{page} links to {link}, which is not on the site"


def test_pages_are_staged_as_they_are(tmp_path: Path) -> None:
    stage(tmp_path)
    source = (REPOSITORY / "docs" / "getting-started.md").read_text(encoding="utf-8")
    assert (tmp_path / "docs" / "getting-started.md").read_text(encoding="utf-8") == source
    home = (tmp_path / HOME).read_text(encoding="utf-8")
    assert home.startswith((REPOSITORY / HOME).read_text(encoding="utf-8"))
    assert "/docs/how-to/deploy\n" in home


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.site.build", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.mark.nightly
def test_the_site_builds_without_a_warning(site: Path) -> None:
    for page in pages():
        assert (site / page).with_suffix(".html").is_file()
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


@pytest.mark.nightly
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {
        next(filter(None, match)).strip("'\"")
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"}
        for match in _LOADED.findall(path.read_text(encoding="utf-8"))
    }
    assert loaded
    assert sorted(address for address in loaded if re.match(r"(https?:)?//", address)) == []


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import scripts.site.build as b\n"
        "def stage(target):\n"
        "    target.mkdir(parents=True)\n"
        "    (target / 'README.md').write_text('# A\\n\\n[b](missing.md)\\n')\n"
        "b.stage = stage\n"
        "sys.exit(b.build(Path(sys.argv[1])))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "missing.md" in ended.stderr
