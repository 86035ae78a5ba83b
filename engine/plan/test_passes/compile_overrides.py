"""A model compiled again for a unit test that overrides variables or macros."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.compile import Compiled, Manifest, Model, UnitTest, compile_project
from engine.compile.artifacts.node_json import digest
from engine.compile.nodes.macro_docs import read_macros
from engine.errors import Diagnostic, EngineError, near
from engine.project import LoadedProject

_HEAD = re.compile(r"\{%[-+]?\s*macro\s+\w+\s*\(.*?\)\s*[-+]?%\}", re.DOTALL)


@dataclass(slots=True)
class Versions:
    """The project as it is, and as tests that override something want it; `cached` None: nothing is kept."""

    compiled: Compiled
    target: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    cached: Path | None = None
    _compiled_by_overrides: dict[str, Compiled] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def manifest_for(self, test: UnitTest) -> Manifest:
        """The manifest with the model that a test is about.

        Raises EngineError: with the overrides the model cannot be compiled.
        """
        if not test.variables and not test.macros:
            return self.compiled.manifest
        key = repr((test.model, sorted(test.variables.items()), sorted(test.macros.items())))
        with self._guard:
            if key not in self._compiled_by_overrides:
                self._compiled_by_overrides[key] = self._compiled(test)
            return self._compiled_by_overrides[key].manifest

    def _compiled(self, test: UnitTest) -> Compiled:
        project = self.compiled.project
        needed = self._above(test.model)
        models = tuple(model for model in project.models if f"model.{model.name}" in needed)
        project = replace(_with_macros(project, test), models=models, tests=())
        variables = {**self.variables, **test.variables}
        # A folder a test: what it overrides may change, and takes the place of what was.
        cache_folder = None if self.cached is None else self.cached / "overrides" / digest(test.id)
        result = compile_project(project, target=self.target, variables=variables, cached=cache_folder)
        node = result.manifest.nodes.get(test.model)
        if not isinstance(node, Model) or node.broken:
            diagnostics = tuple(d for d in result.manifest.errors if d.node in {None, test.model.partition(".")[2]})
            message = f"the model of '{test.name}' cannot be compiled with its overrides"
            hint = "Correct 'vars' and 'macros' under 'overrides:' of the test; the errors below name the failures."
            raise EngineError.from_diagnostics(
                (Diagnostic("unit-test-input", message, hint, location=test.location), *diagnostics)
            )
        return result

    def _above(self, model: str) -> set[str]:
        visited, waiting = set[str](), [model]
        while waiting:
            node = waiting.pop()
            if node not in visited:
                visited.add(node)
                waiting += self.compiled.manifest.parents(node)
        return visited


def _with_macros(project: LoadedProject, test: UnitTest) -> LoadedProject:
    macros_by_name = {macro.name: macro for macro in read_macros(project.macros)}
    files = {file.file: file for file in project.macros}
    for name, text in test.macros.items():
        macro = macros_by_name.get(name)
        head = _HEAD.match(macro.text) if macro else None
        if macro is None or head is None:
            message = f"the unit test '{test.name}' overrides a macro '{name}', which does not exist"
            raise EngineError("unknown-macro", message, near(name, macros_by_name), location=test.location)
        body = f"{head[0]}{{% raw %}}{text}{{% endraw %}}{{% endmacro %}}"
        file = files[macro.file]
        files[macro.file] = replace(file, text=file.text.replace(macro.text, body))
    return replace(project, macros=tuple(files.values()))
