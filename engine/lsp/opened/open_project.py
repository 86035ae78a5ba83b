"""The project that an editor has open: its unsaved texts, and what was compiled last. Nothing is written to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api import Project
from engine.api.unused_memory import release_unused_memory
from engine.compile import Manifest, Model
from engine.compile.pipeline.edited_model import EditedModel, Neighbours, neighbours
from engine.errors import Diagnostic, EngineError, Location
from engine.project import ModelText
from engine.project.project_files import exists, open_texts, read
from engine.user_cache import project_cache

if TYPE_CHECKING:
    from engine.compile import Compiled
    from engine.compile.pipeline.query_names import QueryNames

SELECTORS = "selectors.yml"


@dataclass(slots=True)
class OpenProject:
    """A project with the texts that an editor has.

    `texts`: of open files, by their names in the project. `edited`: the models that were compiled on their own, by
    file: their findings and places count.
    """

    project: Project
    texts: dict[str, str] = field(default_factory=dict)
    edited: dict[str, EditedModel] = field(default_factory=dict)
    failure: tuple[Diagnostic, ...] = ()
    _neighbours: Neighbours | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def compiled(self) -> Compiled | None:
        """The project as it was compiled last; None: it never was."""
        return self._neighbours.compiled if self._neighbours else None

    @property
    def manifest(self) -> Manifest:
        return self.compiled.manifest if self.compiled else Manifest("", "", "", {}, ())

    def name_of(self, path: Path) -> str | None:
        """Return the name of a file in the project, or None if it is outside."""
        try:
            return path.resolve().relative_to(self.root).as_posix()
        except (ValueError, OSError):
            return None

    def text(self, file: str) -> str:
        """Return the text of a file as the editor has it, or as it was compiled; empty if it is not known."""
        if file in self.texts:
            return self.texts[file]
        if self.compiled is None:
            return ""
        project = self.compiled.project
        texts = {**project.texts, **dict(project.singular), **{macro.file: macro.text for macro in project.macros}}
        model = next((model for model in project.models if model.file == file), None)
        if file == SELECTORS and exists(self.root, SELECTORS, []):
            return read(self.root / SELECTORS, SELECTORS, []) or ""
        return (model.text if model else texts.get(file)) or ""

    def compile_all(self) -> None:
        """Compile the project with the texts of the editor; an error that stops it is in `failure`.

        Models that were edited keep what is known of them until they are compiled on their own again: `open_models`.
        """
        texts = dict(self.texts)
        cached = project_cache(self.project.target_dir)
        try:
            with open_texts(texts):
                compiled = self.project.compile()
        except EngineError as error:
            self.failure = error.diagnostics
            return
        compiled_neighbours = neighbours(compiled, cached, self.project.vars)
        with self._lock:
            self.failure = ()
            self._neighbours = compiled_neighbours
            for file in [file for file in self.edited if file not in self.texts]:
                del self.edited[file]
        # What was known before goes at once: left to chance, memory is in pieces after hundreds of compilations.
        del compiled, compiled_neighbours
        release_unused_memory()

    def compiled_with(self, texts: Mapping[str, str], moved: Mapping[str, str] | None = None) -> Compiled:
        """Compile the project with other texts, or names of files, which nothing keeps.

        Raises EngineError: it cannot be compiled at all.
        """
        moved = moved or {}
        with open_texts({moved.get(file, file): text for file, text in {**self.texts, **texts}.items()}, moved):
            return self.project.compile()

    def files(self) -> list[str]:
        if self.compiled is None:
            return []
        project = self.compiled.project
        files = [model.file for model in project.models] + list(project.texts)
        files += [file for file, _ in project.singular] + [macro.file for macro in project.macros]
        files += [SELECTORS] if self.text(SELECTORS) else []
        return list(dict.fromkeys(files))

    def open_models(self) -> list[str]:
        models = self.compiled.project.models if self.compiled else ()
        return [model.file for model in models if model.file in self.texts]

    def analyse(self, file: str) -> None:
        with suppress(EngineError):
            self.compile_model(file)

    def analysed(self, file: str) -> EditedModel | None:
        """Return what is known of a model's text; one that was compiled with the project is compiled on its own now."""
        if file not in self.edited and self.model_of(file) is not None:
            self.analyse(file)
        return self.edited.get(file)

    def names_of_test(self, file: str) -> QueryNames | None:
        """Return the names in the SQL of a singular test; None: it is none, or cannot be read."""
        compiled_neighbours = self._neighbours
        if compiled_neighbours is None or file not in dict(compiled_neighbours.compiled.project.singular):
            return None
        with suppress(EngineError):
            return compiled_neighbours.test_names(file, self.text(file))
        return None

    def compile_model(self, file: str) -> EditedModel | None:
        """Compile one model as the editor has it; None if the whole project has to be compiled.

        Raises EngineError: a template or the model takes too much.
        """
        edited = self.compile_text(file, self.text(file))
        if edited is None:
            return None
        with self._lock:
            if edited.steps is None and file in self.edited:
                # The text is not whole yet: its CTEs are what they were.
                edited = replace(edited, steps=self.edited[file].steps)
            self.edited[file] = edited
        return edited

    def compile_text(self, file: str, text: str) -> EditedModel | None:
        """Compile one model with another text, which nothing keeps; None if the whole project has to be compiled.

        Raises EngineError: a template or the model takes too much.
        """
        with self._lock:
            compiled_neighbours = self._neighbours
        if compiled_neighbours is None or not compiled_neighbours.cached_models:
            return None
        model = next((model for model in compiled_neighbours.compiled.project.models if model.file == file), None)
        return (
            compiled_neighbours.compile(ModelText(model.name, file, model.folders, text)) if model is not None else None
        )

    def model_of(self, file: str) -> Model | None:
        if file in self.edited:
            return self.edited[file].model
        return next((model for model in self.manifest.models if model.file == file), None)

    def diagnostics(self) -> Mapping[str, list[Diagnostic]]:
        """Return all findings by file; those without a place belong to project.yml."""
        by_file: dict[str, list[Diagnostic]] = {}
        for finding in (*self.failure, *self.manifest.diagnostics):
            place = finding.location or Location("project.yml")
            compiled_neighbours = self.edited.get(place.file)
            # A model that was compiled on its own since has its own findings.
            if compiled_neighbours is None or finding.node != compiled_neighbours.model.name:
                by_file.setdefault(place.file, []).append(finding)
        for edited in self.edited.values():
            for finding in edited.problems:
                place = finding.location or Location(edited.model.file)
                by_file.setdefault(place.file, []).append(finding)
        return {file: list(dict.fromkeys(findings)) for file, findings in by_file.items()}
