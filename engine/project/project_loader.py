"""Load a project: its files, unrendered, with positions, and the macros of its packages.

A package is a folder, `packages/<name>/macros/`; its macros are called as `name.macro()`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import __version__
from engine.errors import Diagnostic, Location
from engine.jinja import OWN, MacroFile
from engine.project.model_files import MENDED, ModelText, read_models
from engine.project.parse_yaml import Yaml, load_yaml
from engine.project.project_files import File, exists, find, inside, read
from engine.project.trojan_source import deceptions
from engine.project.yaml_section import Section, is_name
from engine.schema.project_keys import FLAGS, PATHS, PROJECT

_TEST = re.compile(r"(\{%[-+]?\s*)test(\s+)(\w+)")
_END = re.compile(r"(\{%[-+]?\s*)endtest\b")
_SUFFIXES = (".sql", ".jinja")
_DBT_FILES = ("packages.yml", "dependencies.yml")


def read_macros(root: Path, paths: Mapping[str, str], diagnostics: list[Diagnostic]) -> tuple[MacroFile, ...]:
    """Return all files of macros; appends findings to `diagnostics`."""
    for name in _DBT_FILES:
        if (root / name).is_file():
            hint = f"Copy the macros to {paths['packages']}/<name>/macros/, and remove the file."
            diagnostics.append(Diagnostic("packages-file", f"{name} is dbt syntax", hint, location=Location(name)))
    files = [*_files(root, paths["macros"], "", diagnostics)]
    for name in _packages(root, paths["packages"], diagnostics):
        files += _files(root, f"{paths['packages']}/{name}/macros", name, diagnostics)
    return tuple(files)


def _files(root: Path, folder: str, package: str, diagnostics: list[Diagnostic]) -> Iterator[MacroFile]:
    for file in find(root, folder, _SUFFIXES, diagnostics):
        text = read(file.path, file.shown_path, diagnostics)
        if text is not None:
            # dbt's blocks of generic tests are macros with another head.
            yield MacroFile(file.shown_path, _END.sub(r"\1endmacro", _TEST.sub(r"\1macro\2test_\3", text)), package)


def _packages(root: Path, folder: str, diagnostics: list[Diagnostic]) -> Iterator[str]:
    base = root / folder
    for path in sorted(base.iterdir()) if base.is_dir() else ():
        place = Location(f"{folder}/{path.name}")
        if path.name.startswith(".") or not (path.is_dir() or path.suffix in _SUFFIXES):
            continue
        if not path.is_dir() or not (path / "macros").is_dir():
            message = f"'{path.name}' is not a macro package: it has no folder macros/"
            hint = f"Move its files to {folder}/<name>/macros/."
            diagnostics.append(Diagnostic("bad-value", message, hint, location=place))
        elif not is_name(path.name) or path.name == OWN:
            message = f"'{path.name}' is not a valid name of a macro package"
            hint = f"Use lower-case letters, digits and underscores; '{OWN}' is reserved for the built-in macros."
            diagnostics.append(Diagnostic("bad-name", message, hint, location=place))
        else:
            yield path.name


PROJECT_FILE = "project.yml"
SCHEMA_SUFFIX = ".avsc"
_RANGE = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9]{1,9}(?:\.[0-9]{1,9}){0,9}+)(?![0-9.])")
DEFAULT_PATHS = {key.name: key.name for key in PATHS.keys}


@dataclass(frozen=True, slots=True)
class ProjectFlags:
    """Defaults of options of commands.

    `defer`: with a `--state`, models that are not selected are read from its target. `favor_state`: then also those
    that exist in the target of the command.
    """

    fail_fast: bool = False
    warn_error: bool = False
    defer: bool = False
    favor_state: bool = False


@dataclass(frozen=True, slots=True)
class LoadedProject:
    """Everything the files of a project say, before Jinja and SQL.

    Attributes:
        tests: the YAML files under tests/.
        exposures: the YAML files under models/.
        singular: the SQL files under tests/: their names as shown to users, and what they say.
        texts: of project.yml, the YAML files under models/, the files under sources/ (YAML, Avro schemas) and tests/
            (with the CSV of fixtures/), by the name shown to users.
        fixtures: the names under which `texts` has the CSV files of tests/fixtures/.
        sources_whole: every file under sources/ could be read, so that a source not found is none.
        broken: project.yml cannot be read; nothing else was.
    """

    root: Path
    name: str
    version: str
    doc: Yaml
    paths: Mapping[str, str]
    target: str
    vars: Mapping[str, Any]
    models: tuple[ModelText, ...] = ()
    sources: tuple[Yaml, ...] = ()
    macros: tuple[MacroFile, ...] = ()
    tests: tuple[Yaml, ...] = ()
    exposures: tuple[Yaml, ...] = ()
    singular: tuple[tuple[str, str], ...] = ()
    fixtures: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    texts: Mapping[str, str] = field(default_factory=dict)
    sources_whole: bool = True
    flags: ProjectFlags = ProjectFlags()
    broken: bool = False


def load_project(root: Path, *, cached: Path | None = None) -> LoadedProject:
    """Read the files of a project.

    Args:
        root: the folder that holds project.yml.
        cached: the folder that keeps what the models' files were, so that those that are the same need not be
            read; None: all are read.

    Returns:
        The project with everything that is wrong in `diagnostics`; it never raises for a user's error.
    """
    diagnostics: list[Diagnostic] = []
    if not exists(root, PROJECT_FILE, diagnostics):
        if not diagnostics:
            diagnostics.append(missing_project(root))
        return _unread(root, diagnostics)
    text = read(root / PROJECT_FILE, PROJECT_FILE, diagnostics)
    doc, problems = load_yaml(text or "", PROJECT_FILE)
    diagnostics += problems
    _check_profiles(root, diagnostics)
    top = Section.of_document(doc, diagnostics)
    readable = text is not None and all(problem.code in MENDED for problem in problems)
    if not readable:
        return _unread(root, diagnostics)
    top.check_keys(PROJECT)
    _check_version(top)
    paths = _paths(root, top, diagnostics)
    texts = {PROJECT_FILE: text or ""}
    sources, whole = _sources(root, paths["sources"], texts, diagnostics)
    tests = tuple(_tests(root, paths["tests"], texts, diagnostics))
    files = read_models(root, paths["models"], cached, diagnostics)
    exposures = tuple(_exposures(files.properties, texts, diagnostics))
    singular = tuple(_singular(root, paths["tests"], texts, diagnostics))
    fixtures = tuple(_fixtures(root, f"{paths['tests']}/fixtures", texts, diagnostics))
    macros = read_macros(root, paths, diagnostics)
    # Rows of fixtures are data; the files of models are looked at when they are taken apart.
    read_now = {name: file_text for name, file_text in texts.items() if name not in fixtures}
    for file, file_text in {**read_now, **dict(singular), **{macro.file: macro.text for macro in macros}}.items():
        diagnostics += deceptions(file_text, file)
    return LoadedProject(
        root=root,
        name=_project_name(top),
        version=_text(top, "version") or "",
        doc=doc,
        paths=paths,
        target=_text(top, "target") or "",
        vars=_vars(top),
        flags=_flags(top),
        models=files.models,
        sources=tuple(sources),
        texts=texts,
        sources_whole=whole,
        tests=tests,
        exposures=exposures,
        singular=singular,
        fixtures=fixtures,
        macros=macros,
        diagnostics=tuple(diagnostics),
    )


def _unread(root: Path, diagnostics: list[Diagnostic]) -> LoadedProject:
    doc = Yaml({}, PROJECT_FILE)
    return LoadedProject(root, "", "", doc, DEFAULT_PATHS, "", {}, diagnostics=tuple(diagnostics), broken=True)


def is_project(root: Path) -> bool:
    return os.path.lexists(root / PROJECT_FILE)


def missing_project(root: Path) -> Diagnostic:
    hint = "Run the command in a project folder, or pass --project-dir."
    above = next((folder for folder in root.resolve().parents if (folder / PROJECT_FILE).is_file()), None)
    if above is not None:
        hint = f"There is a project in a parent folder: --project-dir {above}"
    if (root / "dbt_project.yml").is_file():
        hint = f"Headrace reads {PROJECT_FILE}, with name, targets, vars and folder defaults."
    return Diagnostic("project-missing", f"there is no {PROJECT_FILE} in {root.resolve().name or root}", hint)


def _check_profiles(root: Path, diagnostics: list[Diagnostic]) -> None:
    if (root / "profiles.yml").is_file():
        hint = f"Move its outputs to 'targets:' in {PROJECT_FILE}, and remove the file."
        message = "profiles.yml is dbt syntax"
        diagnostics.append(Diagnostic("profiles-file", message, hint, location=Location("profiles.yml")))


def _text(top: Section, key: str) -> str | None:
    section = top.child(key)
    return section.text() if section else None


def _project_name(top: Section) -> str:
    section = top.child("name")
    if section is None:
        if isinstance(top.value, dict) or top.empty:
            top.report("missing-key", f"{PROJECT_FILE} has no 'name'", "Add a line such as 'name: flights'.")
        return ""
    return section.identifier()


def _vars(top: Section) -> dict[str, Any]:
    section = top.child("vars")
    return {key: value.value for key, value in section.mapping()} if section else {}


def _flags(top: Section) -> ProjectFlags:
    section = top.child("flags")
    if section is None:
        return ProjectFlags()
    section.check_keys(FLAGS)
    return ProjectFlags(**{key: value.boolean() for key, value in section.mapping() if key in FLAGS.names})


def _paths(root: Path, top: Section, diagnostics: list[Diagnostic]) -> dict[str, str]:
    paths = dict(DEFAULT_PATHS)
    section = top.child("paths")
    if section:
        section.check_keys(PATHS)
        for key, value in section.mapping():
            folder = value.text()
            if not folder or key not in paths:
                continue
            if not inside(root, root / folder):
                place = value.place
                message = f"the path '{folder}' is outside the project"
                hint = "Use a folder inside the project."
                diagnostics.append(Diagnostic("path-outside", message, hint, location=place))
            elif key == "models" and not (root / folder).is_dir():
                value.report("bad-value", f"folder '{folder}' not found", "Create it, or correct the path.")
            else:
                paths[key] = folder
    return paths


def _check_version(top: Section) -> None:
    section = top.child("require_engine_version")
    if section is None:
        return
    required_ranges = [part.strip() for item in section.items() for part in item.text().split(",")]
    for part in required_ranges:
        if not _admits(part, __version__, section):
            hint = "Install such a version of headrace, or change require_engine_version."
            section.report("engine-version", f"the project requires Headrace {part}, but this is {__version__}", hint)


def _admits(part: str, version: str, section: Section) -> bool:
    match = _RANGE.fullmatch(part)
    if match is None:
        section.report("bad-value", f"'{part}' is not a version range", "Write it as '>=0.1,<0.2'.")
        return True
    sign = match[1]
    own_parts = [int(piece) for piece in re.findall("[0-9]+", version)[:3]]
    bound_parts = [int(piece) for piece in match[2].split(".")]
    width = max(len(own_parts), len(bound_parts))
    own_parts += [0] * (width - len(own_parts))
    bound_parts += [0] * (width - len(bound_parts))
    return {
        ">=": own_parts >= bound_parts, "<=": own_parts <= bound_parts, "==": own_parts == bound_parts,
        "!=": own_parts != bound_parts, "<": own_parts < bound_parts, ">": own_parts > bound_parts,
    }[sign]  # fmt: skip


def _sources(root: Path, folder: str, texts: dict[str, str], diagnostics: list[Diagnostic]) -> tuple[list[Yaml], bool]:
    """The documents under sources/, and whether all of them could be read."""
    documents = []
    whole = True
    for file in find(root, folder, (".yml", ".yaml", SCHEMA_SUFFIX), diagnostics):
        text = read(file.path, file.shown_path, diagnostics)
        texts[file.shown_path] = text or ""
        if file.suffix == SCHEMA_SUFFIX:
            continue
        document, problems = load_yaml(texts[file.shown_path], file.shown_path)
        diagnostics += problems
        whole = whole and text is not None and not problems
        documents.append(document)
    return documents, whole


def _tests(root: Path, folder: str, texts: dict[str, str], diagnostics: list[Diagnostic]) -> Iterator[Yaml]:
    for file in find(root, folder, (".yml", ".yaml"), diagnostics):
        text = read(file.path, file.shown_path, diagnostics)
        texts[file.shown_path] = text or ""
        document, problems = load_yaml(texts[file.shown_path], file.shown_path)
        diagnostics += problems
        yield document


def _exposures(files: Iterable[File], texts: dict[str, str], diagnostics: list[Diagnostic]) -> Iterator[Yaml]:
    for file in files:
        text = read(file.path, file.shown_path, diagnostics)
        texts[file.shown_path] = text or ""
        document, problems = load_yaml(texts[file.shown_path], file.shown_path)
        diagnostics += problems
        if isinstance(document.data, dict) and document.data.keys() & {"exposures", "sinks"}:
            yield document
        elif text is not None and not problems:
            hint = "Move it to the header of the model's .sql file; sources belong in sources/."
            message = "properties files under models/ are dbt syntax"
            diagnostics.append(Diagnostic("properties-file", message, hint, location=Location(file.shown_path)))


def _singular(
    root: Path, folder: str, texts: dict[str, str], diagnostics: list[Diagnostic]
) -> Iterator[tuple[str, str]]:
    for file in find(root, folder, (".sql",), diagnostics):
        text = read(file.path, file.shown_path, diagnostics)
        texts[file.shown_path] = text or ""
        if text is not None:
            yield file.shown_path, text


def _fixtures(root: Path, folder: str, texts: dict[str, str], diagnostics: list[Diagnostic]) -> Iterator[str]:
    for file in find(root, folder, (".csv",), diagnostics):
        texts[file.shown_path] = read(file.path, file.shown_path, diagnostics) or ""
        yield file.shown_path
