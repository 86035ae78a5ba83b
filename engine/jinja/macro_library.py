"""All macros of a project and the names that clash; names that people know from elsewhere, each with its substitute."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes

from engine.errors import Diagnostic, Location, ProjectError
from engine.jinja.environment import Environment
from engine.jinja.macro_calls import MacroCall, Package, renamed
from engine.jinja.macro_file import OWN, MacroFile
from engine.jinja.template_tokens import find, line_start, place

# What the sandbox looks at before it calls something.
_CALL = {"unsafe_callable", "alters_data"}


class Absent(jinja2.StrictUndefined):
    """An undefined name whose every use is an error with an answer.

    `taken`: what to do about a macro or package of this name; None if there may be one.
    """

    __slots__ = ("_code", "_hint", "_message", "_parts", "name_hint")

    def __init__(
        self,
        name: str,
        hint: str,
        parts: Mapping[str, str] | None = None,
        *,
        code: str = "jinja-undefined",
        message: str = "'{}' is not available here",
        name_hint: str | None = None,
    ) -> None:
        super().__init__(name=name, exc=self._error)  # type: ignore[arg-type]
        self._code, self._hint, self._message, self._parts = code, hint, message, parts or {}
        self.name_hint = name_hint

    def _error(self, _: str | None = None) -> ProjectError:
        return ProjectError(self._code, self._message.format(self._undefined_name), self._hint)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _CALL:
            raise self._error()
        hint = self._parts.get(name, self._hint)
        raise ProjectError(self._code, self._message.format(f"{self._undefined_name}.{name}"), hint)

    def __getitem__(self, name: Any) -> NoReturn:
        self.__getattr__(str(name))


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

    def define(self, macro_file: MacroFile, diagnostics: list[Diagnostic]) -> nodes.Template:
        """Make the macros of a file known; they are empty until the file has run.

        Raises jinja2.TemplateSyntaxError: the file cannot be read.
        """
        tree = self._env.parse(macro_file.text, name=macro_file.file)
        for name, line in renamed(tree):
            first = self._defined.setdefault((macro_file.package, name), (macro_file, line))
            if first != (macro_file, line):
                first_place, second_place = self._place(name, *first), self._place(name, macro_file, line)
                message = f"two macros have the name '{name}': {first_place} and {second_place}"
                diagnostics.append(Diagnostic("duplicate-name", message, "Rename one of them.", location=second_place))
            elif not macro_file.package and (name_hint := self._built_in_hint(name)) is not None:
                message = f"the macro '{name}' has the name of a built-in"
                second_place = self._place(name, macro_file, line)
                diagnostics.append(Diagnostic("duplicate-name", message, name_hint, location=second_place))
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

    def _built_in_hint(self, name: str) -> str | None:
        """What to do about a macro that would replace a function of the engine; None if it does not."""
        if name not in self._env.globals:
            return None
        engine_macros = self._env.globals[name]
        return engine_macros.name_hint if isinstance(engine_macros, Absent) else "Rename it."

    def _add(self, name: str, macro_file: MacroFile) -> MacroCall:
        package = self._packages.setdefault(macro_file.package, {})
        return package.setdefault(name, MacroCall(name, macro_file.file, macro_file.package))

    def publish(self, diagnostics: list[Diagnostic]) -> None:
        project = self._macros("")
        engine_macros = {name: macro for name, macro in self._macros(OWN).items() if not name.startswith("_")}
        for name, macros in self._packages.items():
            if name and (name in project or name in engine_macros or self._built_in_hint(name) is not None):
                first = next(iter(macros.values()))
                message = f"the macro package '{name}' has the name of a macro or of a built-in"
                diagnostics.append(
                    Diagnostic("duplicate-name", message, "Rename its folder.", location=Location(first.file))
                )
            elif name:
                self._env.globals[name] = Package(name, macros)
                self._env.packages[name] = macros
        self._env.globals.update({**engine_macros, **project})
        self._all = {**self._inside(), **engine_macros, **project}

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

    def publish_names(self) -> None:
        self.files = {name: macro.file for name, macro in self._all.items()}
        self.working = {name: macro for name, macro in self._all.items() if macro.works}
