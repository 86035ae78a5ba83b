"""The pages of the documentation site: what navigation.yml names, copied with all that they link to.

The copy has the layout of the repository, so the links of the Markdown files are right as they are. The navigation is
added at the end of the copies, as hidden tables of contents.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
NAVIGATION = Path(__file__).with_name("navigation.yml")
HOME = "README.md"
# The page of a folder that a page links to.
FOLDER = "FOLDER.md"
_NOTES = "docs/design/"
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
# A block with the name of its file behind the language, as the explanations of codes have them.
_NAMED_BLOCK = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
_CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the navigation.

    Attributes:
        parent: the page in whose copy it is written; the home page has the top level.
        caption: the heading in the side bar ("" below a page).
        pages: its pages, relative to the repository.
    """

    parent: str
    caption: str
    pages: tuple[str, ...]


def sections(root: Path = ROOT) -> list[Section]:
    """Return the navigation, patterns replaced by the pages that they match."""
    text = NAVIGATION.read_text(encoding="utf-8")
    return [
        section for part in yaml.safe_load(text) for section in _sections(root, HOME, part["caption"], part["pages"])
    ]


def _sections(root: Path, parent: str, caption: str, items: list[Any]) -> Iterator[Section]:
    pages: list[str] = []
    for item in items:
        if isinstance(item, dict):
            ((page, below),) = item.items()
            pages.append(page)
            yield from _sections(root, page, "", below)
        elif "*" in item:
            pages += sorted(path.relative_to(root).as_posix() for path in root.glob(item))
        else:
            pages.append(item)
    yield Section(parent, caption, tuple(pages))


def pages(root: Path = ROOT) -> list[str]:
    """Return all pages of the site, the home page first."""
    return [HOME, *(page for section in sections(root) for page in section.pages)]


def linked(page: Path) -> list[str]:
    """Return what a page links to in the repository, as it is written there, without anchors."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(text) if not re.match(r"[a-z]+:", link)]


def stage(target: Path, root: Path = ROOT) -> None:
    """Copy the pages to an empty folder, with the files that they link to.

    Raises:
        FileNotFoundError: a page of the navigation does not exist.
    """
    for page in pages(root):
        _copy(root / page, target / page)
        if page.startswith(_NOTES):
            # Users look for what the engine does, not for how it was decided.
            _replace(target / page, "# ", "---\nnosearch: true\n---\n\n# ", times=1)
        if "engine/diagnostics/" in page:
            copy = target / page
            copy.write_text(_NAMED_BLOCK.sub(r"`\2`\n\n```\1", copy.read_text(encoding="utf-8")), encoding="utf-8")
        for link in linked(root / page):
            path = ((root / page).parent / link).resolve()
            if path.is_dir():
                _list_folder(path, target / path.relative_to(root))
                _replace(target / page, f"]({link})", f"]({link.rstrip('/')}/{FOLDER})")
            elif path.suffix != ".md":
                _copy(path, target / path.relative_to(root))
    for section in sections(root):
        with (target / section.parent).open("a", encoding="utf-8") as file:
            file.write(_contents(section))


def _contents(section: Section) -> str:
    caption = f":caption: {section.caption}\n" if section.caption else ""
    entries = "\n".join(f"/{page.removesuffix('.md')}" for page in section.pages)
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n{entries}\n```\n"


def _list_folder(folder: Path, target: Path) -> None:
    """Write a page with the text files of a folder: a web server has no listing of it."""
    names = {".sql": "sql", ".py": "python", ".yml": "yaml"}
    text = f"---\norphan: true\n---\n\n# The folder {folder.name}\n"
    for path in sorted(path for path in folder.rglob("*") if path.suffix in names):
        code = path.read_text(encoding="utf-8").rstrip()
        text += f"\n## {path.relative_to(folder).as_posix()}\n\n````{names[path.suffix]}\n{code}\n````\n"
    target.mkdir(parents=True, exist_ok=True)
    (target / FOLDER).write_text(text, encoding="utf-8")


def _replace(path: Path, before: str, after: str, times: int = -1) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(before, after, times), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
