"""The files of macros: those of the project, and those of its packages.

A package is a folder, `packages/<name>/macros/`; its macros are called as `name.macro()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.errors import Diagnostic, Location
from engine.jinja import OWN, MacroFile
from engine.project.project_files import find, read
from engine.project.yaml_section import is_name

_TEST = re.compile(r"(\{%[-+]?\s*)test(\s+)(\w+)")
_END = re.compile(r"(\{%[-+]?\s*)endtest\b")
_SUFFIXES = (".sql", ".jinja")
_DBT_FILES = ("packages.yml", "dependencies.yml")


def read_macros(root: Path, paths: Mapping[str, str], found: list[Diagnostic]) -> tuple[MacroFile, ...]:
    """Return all files of macros; appends findings to `found`."""
    for name in _DBT_FILES:
        if (root / name).is_file():
            hint = f"Copy the macros to {paths['packages']}/<name>/macros/, and remove the file."
            found.append(Diagnostic("packages-file", f"{name} is dbt syntax", hint, location=Location(name)))
    files = [*_files(root, paths["macros"], "", found)]
    for name in _packages(root, paths["packages"], found):
        files += _files(root, f"{paths['packages']}/{name}/macros", name, found)
    return tuple(files)


def _files(root: Path, folder: str, package: str, found: list[Diagnostic]) -> Iterator[MacroFile]:
    for file in find(root, folder, _SUFFIXES, found):
        text = read(file.path, file.shown, found)
        if text is not None:
            # dbt's blocks of generic tests are macros with another head.
            yield MacroFile(file.shown, _END.sub(r"\1endmacro", _TEST.sub(r"\1macro\2test_\3", text)), package)


def _packages(root: Path, folder: str, found: list[Diagnostic]) -> Iterator[str]:
    base = root / folder
    for path in sorted(base.iterdir()) if base.is_dir() else ():
        place = Location(f"{folder}/{path.name}")
        if path.name.startswith(".") or not (path.is_dir() or path.suffix in _SUFFIXES):
            continue
        if not path.is_dir() or not (path / "macros").is_dir():
            message = f"'{path.name}' is not a macro package: it has no folder macros/"
            hint = f"Move its files to {folder}/<name>/macros/."
            found.append(Diagnostic("bad-value", message, hint, location=place))
        elif not is_name(path.name) or path.name == OWN:
            message = f"'{path.name}' is not a valid name of a macro package"
            hint = f"Use lower-case letters, digits and underscores; '{OWN}' is reserved for the built-in macros."
            found.append(Diagnostic("bad-name", message, hint, location=place))
        else:
            yield path.name
