"""A file of macros, before Jinja sees it: it is known without Jinja, which takes long to load."""

from __future__ import annotations

from dataclasses import dataclass

# The package of the engine's macros; unlike those of other packages they are called by their bare names as well.
OWN = "engine"


@dataclass(frozen=True, slots=True)
class MacroFile:
    """A file of macros. `package`: the package it belongs to; empty for the project's own macros."""

    file: str
    text: str
    package: str = ""
