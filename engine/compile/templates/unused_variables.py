"""Variables that `--vars` gives and nothing in the project names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.errors import Diagnostic, Level, near
from engine.project import LoadedProject


def unused_variables(project: LoadedProject, variables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """A warning for each name in --vars that project.yml does not define and no file has in quotes."""
    unknown = {str(name): re.compile(rf"""["']{re.escape(str(name))}["']""") for name in variables}
    unknown = {name: pattern for name, pattern in unknown.items() if name not in project.vars}
    for text in _texts(project) if unknown else ():
        unknown = {name: pattern for name, pattern in unknown.items() if not pattern.search(text)}
    for name in unknown:
        hint = near(name, project.vars) or "Correct the name, or leave it out."
        yield Diagnostic("vars-unused", f"nothing reads the variable '{name}' of --vars", hint, Level.WARNING)


def _texts(project: LoadedProject) -> Iterable[str]:
    yield from project.texts.values()
    yield from (text for _, text in project.singular)
    yield from (file.text for file in project.macros)
    yield from (model.text or "" for model in project.models)
