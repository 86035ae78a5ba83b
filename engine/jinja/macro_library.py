"""All macros of a project: which name means which, and which names clash."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import nodes

from engine.errors import Diagnostic, Location
from engine.jinja.environment import Environment
from engine.jinja.macro_calls import MacroCall, Package, renamed
from engine.jinja.macro_file import OWN, MacroFile
from engine.jinja.template_tokens import find, line_start, place
from engine.jinja.unavailable_names import Absent

_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(\w+)")


class Library:
    """The macros by package, and the names they have in templates.

    A bare name is looked for in the package it is used in, then in the project, then among the engine's.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._packages: dict[str, dict[str, MacroCall]] = {}
        self._defined: dict[tuple[str, str], tuple[MacroFile, int]] = {}
        self._all: dict[str, MacroCall] = {}
        self.files: dict[str, str] = {}
        self.working: dict[str, MacroCall] = {}

    def define(self, macro_file: MacroFile, found: list[Diagnostic]) -> nodes.Template:
        """Make the macros of a file known; they are empty until the file has run.

        Raises:
            jinja2.TemplateSyntaxError: the file cannot be read.
        """
        tree = self._env.parse(macro_file.text, name=macro_file.file)
        for name, line in renamed(tree):
            first = self._defined.setdefault((macro_file.package, name), (macro_file, line))
            if first != (macro_file, line):
                there, here = self._place(name, *first), self._place(name, macro_file, line)
                message = f"two macros have the name '{name}': {there} and {here}"
                found.append(Diagnostic("duplicate-name", message, "Rename one of them.", location=here))
            elif not macro_file.package and (taken := self._taken(name)) is not None:
                message = f"the macro '{name}' has the name of a built-in"
                here = self._place(name, macro_file, line)
                found.append(Diagnostic("duplicate-name", message, taken, location=here))
            else:
                self._add(name, macro_file)
        return tree

    def _place(self, name: str, macro_file: MacroFile, line: int) -> Location:
        file, text = macro_file.file, macro_file.text
        return place(text, find(self._env, file, text, line_start(text, line), [name]), file)

    def define_unread(self, macro_file: MacroFile, load: Callable[[], None] | None = None) -> None:
        """Make the macros of a file known that cannot be read, or is to be read at the first call."""
        for name in _MACRO.findall(macro_file.text):
            self._add(name, macro_file).load = load

    def _taken(self, name: str) -> str | None:
        """What to do about a macro that would replace a function of the engine; None if it does not."""
        if name not in self._env.globals:
            return None
        own = self._env.globals[name]
        return own.taken if isinstance(own, Absent) else "Rename it."

    def _add(self, name: str, macro_file: MacroFile) -> MacroCall:
        package = self._packages.setdefault(macro_file.package, {})
        return package.setdefault(name, MacroCall(name, macro_file.file, macro_file.package))

    def publish(self, found: list[Diagnostic]) -> None:
        project = self._macros("")
        own = {name: macro for name, macro in self._macros(OWN).items() if not name.startswith("_")}
        for name, macros in self._packages.items():
            if name and (name in project or name in own or self._taken(name) is not None):
                first = next(iter(macros.values()))
                message = f"the macro package '{name}' has the name of a macro or of a built-in"
                found.append(Diagnostic("duplicate-name", message, "Rename its folder.", location=Location(first.file)))
            elif name:
                self._env.globals[name] = Package(name, macros)
                self._env.packages[name] = macros
        self._env.globals.update({**own, **project})
        self._all = {**self._inside(), **own, **project}

    def _inside(self) -> dict[str, MacroCall]:
        called = {p: macros for p, macros in self._packages.items() if p in self._env.packages}
        return {f"{p}.{name}": macro for p, macros in called.items() for name, macro in macros.items()}

    def _macros(self, package: str) -> Mapping[str, MacroCall]:
        return self._packages.get(package, {})

    def names_for(self, package: str) -> dict[str, Any]:
        return {**self._env.globals, **self._macros(package)}

    def fill(self, macro_file: MacroFile, defined: Mapping[str, Any]) -> None:
        for name, macro in self._macros(macro_file.package).items():
            if macro.file == macro_file.file and name in defined:
                macro.body = defined[name]

    def settle(self) -> None:
        self.files = {name: macro.file for name, macro in self._all.items()}
        self.working = {name: macro for name, macro in self._all.items() if macro.works}
