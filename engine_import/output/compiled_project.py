"""What the compiler says about a project that was just written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Diagnostic

if TYPE_CHECKING:
    from engine.compile.nodes.manifest import Model


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of a project.

    Attributes:
        absent: columns that a model describes and its query does not return, by the name of the model.
        strings: strings in double quotes that may have been meant as columns, by the file they are in.
    """

    by_file: Mapping[str, list[Diagnostic]] = field(default_factory=dict)
    absent: Mapping[str, set[str]] = field(default_factory=dict)
    strings: Mapping[str, list[Diagnostic]] = field(default_factory=dict)

    def of(self, file: str) -> list[Diagnostic]:
        found = self.by_file.get(file, [])
        return sorted(found, key=lambda error: error.location.line if error.location else 0)

    def elsewhere(self, files: Iterable[str]) -> list[Diagnostic]:
        known = set(files)
        return [error for file, found in self.by_file.items() if file not in known for error in found]


def compile_errors(root: Path, texts: Mapping[str, str]) -> Errors:
    """Compile a project and return its errors; `texts` replaces the text of models by name."""
    from engine.compile import compile_project
    from engine.project import ModelText, load_project

    loaded = load_project(root)
    # A text that was read later is read from its path: the one given here is not in a file.
    models = tuple(
        ModelText(model.name, model.file, model.folders, texts[model.name]) if model.name in texts else model
        for model in loaded.models
    )
    manifest = compile_project(replace(loaded, models=models)).manifest
    files = {model.name: model.file for model in loaded.models}
    by_file: dict[str, list[Diagnostic]] = defaultdict(list)
    for error in manifest.errors:
        by_file[files.get(error.node or "") or (error.location.file if error.location else "")].append(error)
    absent = {model.name: names for model in manifest.models if (names := _absent(model, manifest.errors))}
    strings: dict[str, list[Diagnostic]] = defaultdict(list)
    for found in manifest.diagnostics:
        if found.code == "string-for-column":
            strings[files.get(found.node or "", "")].append(found)
    return Errors(dict(by_file), absent, dict(strings))


def _absent(model: Model, errors: Iterable[Diagnostic]) -> set[str]:
    """Return described columns that the compiler reported as absent at their places."""
    places = {error.location for error in errors if error.code == "unknown-column" and error.node == model.name}
    settings = model.positions.settings
    return (
        {column.name for column in model.columns if settings.get(f"columns.{column.name}") in places}
        if places
        else set()
    )
