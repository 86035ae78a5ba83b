"""A small project as a stranger may have written it, and a folder beside it that no command may touch."""

from __future__ import annotations

from pathlib import Path

from engine.cli.main import invoke
from tests.project import small_projects
from tests.projects import SMALL as PROJECT
from tests.projects import sources_yaml

SOURCES = sources_yaml(events={"path": "landing", "schema": "id int, at timestamp"})
MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"
# What answers from files alone: none of it may write outside target/.
HARMLESS = (["parse"], ["ls"], ["compile"], ["docs", "generate"], ["lineage"], ["lineage", "a.id"])

Tree = dict[str, tuple[int, int, bytes]]


def write(root: Path, files: dict[str, str]) -> Path:
    return small_projects.write(
        root, {"project.yml": PROJECT, "sources/shop.yml": SOURCES, "models/a.sql": MODEL, **files}
    )


def run(root: Path, *arguments: str) -> int:
    return invoke([*arguments, "--project-dir", str(root)])


def tree(folder: Path) -> Tree:
    """Every file and folder below a folder: mode, links, content."""
    found: Tree = {}
    for path in sorted([folder, *folder.rglob("*")]):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() else bytes(path.readlink()) if path.is_symlink() else b""
        found[str(path)] = (stat.st_mode, stat.st_nlink, content)
    return found
