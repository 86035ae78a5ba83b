"""`init`: a new project that builds at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.errors import UsageError
from engine.package_source import pinned_requirement, source_note
from engine.project.yaml_section import is_name

# Each with the folders it is made of; a later one replaces files of those before.
TEMPLATES: Final = {"files": ("files",), "kafka": ("files", "kafka"), "cdc": ("cdc",), "debezium": ("debezium",)}
_STARTER: Final = Path(__file__).parents[1] / "starter"
# Files of every project. Under these names no tool takes them for its own while they are in the package.
_COMMON: Final = {
    "gitignore": ".gitignore", "ci.yml": ".github/workflows/headrace.yml", "sqlfluff": ".sqlfluff",
    "sqlfluffignore": ".sqlfluffignore",
}  # fmt: skip


def create_project(folder: Path, template: str) -> list[str]:
    """Create a project in a new or empty folder; its name is the folder's. Return its files, sorted.

    Raises UsageError: the folder is not empty, or its name cannot be a project's.
    """
    name = folder.resolve().name.replace("-", "_")
    if not is_name(name):
        hint = "Use lower-case letters, digits, - and _, and begin with a letter: engine init shop"
        raise UsageError("usage", f"'{folder.name}' cannot be the name of a project", hint)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        hint = (
            "Give a new name, or remove the existing files. An existing project needs no init: run engine build in it."
        )
        raise UsageError("usage", f"'{folder}' exists and is not empty", hint)
    texts = {path: _filled(text, name) for path, text in _texts(template).items()}
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    return sorted(texts)


def _filled(text: str, name: str) -> str:
    if "{requirement}" in text:
        text = text.replace("{requirement}", pinned_requirement()).replace("# {source note}\n", source_note())
        text = text.replace("{requirement with java}", pinned_requirement("java"))
    return text.replace("{name}", name)


def _texts(template: str) -> dict[str, str]:
    folders = [_STARTER / folder for folder in TEMPLATES[template]]
    files = {
        str(path.relative_to(template_folder)): path
        for template_folder in folders
        for path in template_folder.rglob("*")
        if path.is_file()
    }
    files |= {path: _STARTER / "common" / packaged_name for packaged_name, path in _COMMON.items()}
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}
