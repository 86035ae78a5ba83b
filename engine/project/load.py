"""Loading a project: what its files say, unrendered, with positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import __version__
from engine.errors import Diagnostic, Location
from engine.jinja import MacroFile
from engine.project.files import find, inside, read
from engine.project.header import split_header
from engine.project.section import Section, is_name
from engine.project.yaml import Yaml, load_yaml

PROJECT_FILE = "project.yml"
PROJECT_KEYS = ("name", "version", "target", "targets", "vars", "models", "paths", "require_engine_version")
DEFAULT_PATHS = {"models": "models", "macros": "macros", "sources": "sources", "tests": "tests"}
_RESERVED_PREFIXES = ("branch_", "tag_", "__")
_RESERVED_SUFFIXES = ("__quarantine", "__deleted")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model as written.

    Attributes:
        name: the file's name without .sql.
        file: the path as shown to users, relative to the project.
        folders: the folders between models/ and the file.
        header: the header's YAML, or None.
        sql: the file's text with the header blanked out.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    header: Yaml | None
    sql: str


@dataclass(frozen=True, slots=True)
class Project:
    """Everything the files of a project say, before Jinja and SQL."""

    root: Path
    name: str
    version: str
    doc: Yaml
    paths: Mapping[str, str]
    target: str
    vars: Mapping[str, Any]
    models: tuple[ModelFile, ...] = ()
    sources: tuple[Yaml, ...] = ()
    macros: tuple[MacroFile, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = field(default=())


def load_project(root: Path) -> Project:
    """Read the files of a project.

    Args:
        root: the folder that holds project.yml.

    Returns:
        The project with everything that is wrong in `diagnostics`; it never raises for a user's mistake.
    """
    found: list[Diagnostic] = []
    path = root / PROJECT_FILE
    if not path.is_file():
        hint = "Run the command in the folder of a project, or name it with --project-dir."
        found.append(Diagnostic("project-missing", f"there is no {PROJECT_FILE} in {root.name or root}", hint))
        return Project(root, "", "", Yaml({}, PROJECT_FILE), DEFAULT_PATHS, "", {}, diagnostics=tuple(found))
    text = read(path, PROJECT_FILE, found)
    doc, problems = load_yaml(text or "", PROJECT_FILE)
    found += problems
    top = Section.of(doc, found)
    top.check_keys(PROJECT_KEYS, PROJECT_FILE)
    _check_version(top)
    paths = _paths(root, top, found)
    name = _project_name(top)
    if not problems and text is not None:
        models = tuple(_models(root, paths["models"], found))
    else:
        models = ()
    return Project(
        root=root,
        name=name,
        version=_text(top, "version") or "",
        doc=doc,
        paths=paths,
        target=_text(top, "target") or "",
        vars=_vars(top),
        models=models,
        sources=tuple(_sources(root, paths["sources"], found)),
        macros=tuple(_macros(root, paths["macros"], found)),
        diagnostics=tuple(found),
    )


def _text(top: Section, key: str) -> str | None:
    section = top.child(key)
    return section.text() if section else None


def _project_name(top: Section) -> str:
    section = top.child("name")
    if section is None:
        if isinstance(top.value, dict):
            top.report("missing-key", f"{PROJECT_FILE} has no 'name'", "Add a line such as 'name: flights'.")
        return ""
    return section.identifier()


def _vars(top: Section) -> dict[str, Any]:
    section = top.child("vars")
    return {key: value.value for key, value in section.mapping()} if section else {}


def _paths(root: Path, top: Section, found: list[Diagnostic]) -> dict[str, str]:
    paths = dict(DEFAULT_PATHS)
    section = top.child("paths")
    if section:
        section.check_keys(DEFAULT_PATHS, "paths")
        for key, value in section.mapping():
            folder = value.text()
            if not folder or not inside(root, root / folder):
                place = value.place
                message = f"the path '{folder}' is not inside the project"
                found.append(Diagnostic("path-outside", message, "Name a folder of the project.", location=place))
            elif key in paths:
                paths[key] = folder
    return paths


def _check_version(top: Section) -> None:
    section = top.child("require_engine_version")
    if section is None:
        return
    wanted = [part.strip() for part in section.text().split(",")]
    for part in wanted:
        if not _admits(part, __version__, section):
            hint = "Install a fitting version of headrace, or change require_engine_version."
            section.report("engine-version", f"the project wants engine {part}, this is {__version__}", hint)


def _admits(part: str, version: str, section: Section) -> bool:
    for sign in (">=", "<=", "==", "!=", "<", ">"):
        if part.startswith(sign):
            number = part[len(sign) :].strip()
            break
    else:
        section.report("bad-value", f"'{part}' is not a version range", "Write it as '>=0.1,<0.2'.")
        return True
    if not all(piece.isdigit() for piece in number.split(".")):
        section.report("bad-value", f"'{number}' is not a version", "Write it as '>=0.1,<0.2'.")
        return True
    left = [int(piece) for piece in version.split(".")]
    right = [int(piece) for piece in number.split(".")]
    width = max(len(left), len(right))
    left += [0] * (width - len(left))
    right += [0] * (width - len(right))
    return {
        ">=": left >= right, "<=": left <= right, "==": left == right,
        "!=": left != right, "<": left < right, ">": left > right,
    }[sign]  # fmt: skip


def _models(root: Path, folder: str, found: list[Diagnostic]) -> list[ModelFile]:
    models: list[ModelFile] = []
    by_name: dict[str, str] = {}
    for path, shown in find(root, folder, (".sql", ".yml", ".yaml"), found):
        if path.suffix != ".sql":
            hint = "Write it in the header of the model's own .sql file; sources stand in sources/."
            message = "properties files under models/ are dbt's way"
            found.append(Diagnostic("properties-file", message, hint, location=Location(shown)))
            continue
        name = path.stem
        if not _good_model_name(name, shown, found):
            continue
        if name in by_name:
            message = f"two models are called '{name}': {by_name[name]} and {shown}"
            found.append(
                Diagnostic("duplicate-name", message, "Rename one of them.", node=name, location=Location(shown))
            )
            continue
        by_name[name] = shown
        text = read(path, shown, found)
        if text is None:
            continue
        header, sql, problems = split_header(text, shown)
        found += [problem.at(None, name) for problem in problems]
        folders = path.relative_to(root / folder).parent.parts
        models.append(ModelFile(name, shown, folders, header, sql))
    return models


def _good_model_name(name: str, shown: str, found: list[Diagnostic]) -> bool:
    if is_name(name) and not name.startswith(_RESERVED_PREFIXES) and not name.endswith(_RESERVED_SUFFIXES):
        return True
    hint = (
        "Use lower-case letters, digits and underscores; names that begin with branch_, tag_ or __, or end "
        "with __quarantine or __deleted, are taken."
    )
    found.append(Diagnostic("bad-name", f"'{name}' cannot be a model's name", hint, location=Location(shown)))
    return False


def _sources(root: Path, folder: str, found: list[Diagnostic]) -> list[Yaml]:
    documents = []
    for path, shown in find(root, folder, (".yml", ".yaml"), found):
        text = read(path, shown, found)
        if text is not None:
            document, problems = load_yaml(text, shown)
            found += problems
            documents.append(document)
    return documents


def _macros(root: Path, folder: str, found: list[Diagnostic]) -> list[MacroFile]:
    files = []
    for path, shown in find(root, folder, (".sql", ".jinja"), found):
        text = read(path, shown, found)
        if text is not None:
            files.append(MacroFile(shown, text))
    return files
