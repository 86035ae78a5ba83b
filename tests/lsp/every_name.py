"""Rename each name of three projects, one at a time, and compile: only the name differs.

python -m tests.lsp.every_name [--count N] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lsprotocol import types

from engine import Project
from engine.compile import Manifest, Model
from engine.lsp.edits.renames import renamed_name
from engine.lsp.names.named_places import Name
from engine.lsp.names.project_names import places_in
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import location_of_position, offset_of, path_of
from tests.lsp.conftest import ROOT, example
from tests.lsp.renamed_project import renamed_project

NEW = "another_name"
# Why a name of these projects keeps its name.
REASONS = (
    "columns of a source are named by its data",
    "its table gets the column with that name",
    "of 'all_of_it' would get another name, too",
)
PROJECTS = {
    "example": example,
    "shop": renamed_project,
    "windows": lambda root: shutil.copytree(ROOT / "docs/examples/windows", root, dirs_exist_ok=True),
}


def opened_project(root: Path) -> OpenProject:
    """A project as an editor has it."""
    opened = OpenProject(Project(root))
    opened.compile_all()
    assert not opened.manifest.errors, opened.manifest.errors
    return opened


def names_of(opened: OpenProject) -> list[Name]:
    """All names that the project gives."""
    return list(dict.fromkeys(place.name for file in opened.files() for place in places_in(opened, file)))


def applied(edit: types.WorkspaceEdit) -> None:
    """Make an edit in the files."""
    documents = edit.document_changes or ()
    moved = [one for one in documents if isinstance(one, types.RenameFile)]
    texts = edit.changes or {one.text_document.uri: one.edits for one in documents if one not in moved}
    for uri, changes in texts.items():
        text = path_of(uri).read_text()
        for change in reversed(changes):
            begin, end = (
                offset_of(location_of_position(place, text, ""), text)
                for place in (change.range.start, change.range.end)
            )
            text = text[:begin] + change.new_text + text[end:]
        path_of(uri).write_text(text)
    for one in moved:
        path_of(one.old_uri).rename(path_of(one.new_uri))


def texts_of(root: Path) -> dict[str, str]:
    """The files of a project that people write."""
    files = (path for path in root.rglob("*") if path.suffix in {".sql", ".yml", ".csv"})
    return {path.relative_to(root).as_posix(): path.read_text() for path in files if ".engine" not in path.parts}


def facts(manifest: Manifest, name: Name) -> Iterator[Any]:
    """What a manifest says, with the old name in the place of the new one."""

    def old(text: object) -> str:
        text = re.sub(NEW, name.name, str(text), flags=re.IGNORECASE).lower().replace("`", "")
        text = re.sub(r"\.[0-9a-f]{10}\b", "", text)
        return re.sub(r"\b(\w+)\s+as\s+\1\b", r"\1", text)

    for node_id, node in manifest.nodes.items():
        said = [old(node_id), old(getattr(node, "sql", "")), old(getattr(node, "depends_on", ""))]
        if isinstance(node, Model):
            said += [old([(c.name, c.type, c.origins) for c in node.columns]), old(node.windows), old(node.inputs)]
            said += [old(node.indirect), old(node.write), old(node.expectations), old(node.tags)]
        yield said


def kinds_of_names(manifest: Manifest) -> Counter[str]:
    """How often each name is one of a column, model, window or macro."""
    names = [f"model {model.name}" for model in manifest.models]
    names += [f"column {column.name}" for model in manifest.models for column in model.columns]
    names += [f"window {window}" for model in manifest.models for window in model.windows]
    names += [f"macro {macro.name}" for macro in manifest.macros]
    names += [f"source {source.source}, {source.table}" for source in manifest.sources]
    return Counter(names)


def check(opened: OpenProject, name: Name) -> str:
    """Rename something in the files, and compare; the reason if it is rejected."""
    edit = renamed_name(opened, name, NEW)
    if isinstance(edit, str):
        return edit
    root, kept = opened.root, opened.root.with_name(f"{opened.root.name}_kept")
    before, manifest = texts_of(root), opened.manifest
    shutil.copytree(root, kept)
    try:
        applied(edit)
        after = Project(root).compile().manifest
        texts = texts_of(root)
    finally:
        shutil.rmtree(root)
        kept.rename(root)
    assert not after.errors, (name, after.errors)
    assert sorted(map(str, facts(after, name))) == sorted(map(str, facts(manifest, name))), name
    one_name_changed(kinds_of_names(manifest), kinds_of_names(after), name)
    only_the_name_is_replaced(before, texts, name)
    return ""


def one_name_changed(before: Counter[str], after: Counter[str], name: Name) -> None:
    gone, come = before - after, after - before
    inside = str(name.kind) in {"CTE", "alias", "column alias", "watermark column", "variable", "test", "expectation"}
    if name.kind == "source":
        assert all(f"source {name.name}," in one for one in gone), (name, gone)
    elif not inside:
        assert sum(gone.values()) == sum(come.values()) == 1, (name, gone, come)
    else:
        assert not gone, (name, gone)
        assert not come, (name, come)


def only_the_name_is_replaced(before: dict[str, str], after: dict[str, str], name: Name) -> None:
    alias = re.compile(rf"(\b{re.escape(name.name)}\b`?) as `?{re.escape(name.name)}\b`?", re.IGNORECASE)

    def plain(text: str) -> str:
        return alias.sub(r"\1", text.replace(NEW, name.name)).lower()

    assert {plain(file): plain(text) for file, text in after.items()} == {
        plain(file): plain(text) for file, text in before.items()
    }, name


def main() -> int:
    """Rename all names, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, help="so many of each project")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for project, build_server in PROJECTS.items():
            root = Path(folder, project)
            root.mkdir()
            build_server(root)
            opened, began = opened_project(root), time.monotonic()
            names = names_of(opened)
            if options.count:
                names = random.Random(options.seed).sample(names, min(options.count, len(names)))
            results = [(name, check(opened, name)) for name in names]
            rejected = [(name, reason) for name, reason in results if reason]
            unknown = [one for one in rejected if not any(words in one[1] for words in REASONS)]
            wrong += len(unknown)
            for name, reason in unknown:
                print(f"{project}: {name} is not renamed: {reason}")
            seconds = time.monotonic() - began
            print(f"{project}: {len(names)} names, {len(rejected)} rejected, {seconds:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
