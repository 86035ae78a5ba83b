"""Macros: of the project, of its packages, and the engine's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes

from engine.errors import ProjectError, near
from engine.jinja.opaque_values import Opaque
from engine.jinja.template_errors import INSIDE, Returned


def give_back(value: Any = None) -> NoReturn:
    """End a macro, whose call is then the value instead of a text: `return(value)`, as in dbt."""
    raise Returned(value)


class MacroCall(Opaque):
    """A macro by its name, so that macros of all files can call each other.

    Its body comes when its file has run; `load`, if there is one, runs the file at the first call.
    """

    __slots__ = ("body", "file", "load", "name", "package")

    def __init__(self, name: str, file: str, package: str) -> None:
        self.name, self.file, self.package = name, file, package
        self.body: Callable[..., str] | None = None
        self.load: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<macro {self.name}>"

    def shows(self, _: str) -> bool:
        """Nothing: a macro is called. Its body is that of all models."""
        return False

    @property
    def works(self) -> bool:
        """Whether its file could be read and run, or is still to be."""
        return self.body is not None or self.load is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.body is None and self.load is not None:
            self.load()
        if self.body is None:
            # Its file is broken, which is reported already.
            raise ProjectError.from_diagnostics(())
        try:
            return self.body(*args, **kwargs)
        except Returned as returned:
            return returned.value


class Package(Opaque):
    __slots__ = ("_macros", "_name")

    def __init__(self, name: str, macros: Mapping[str, MacroCall]) -> None:
        self._name, self._macros = name, macros

    def __repr__(self) -> str:
        return f"<package {self._name}>"

    def shows(self, name: str) -> bool:
        return name in self._macros

    def __getattr__(self, name: str) -> MacroCall:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._macros:
            message = f"the macro package '{self._name}' has no macro '{name}'"
            raise ProjectError("unknown-macro", message, near(name, self._macros))
        return self._macros[name]

    def __str__(self) -> str:
        name = self._name
        raise ProjectError("jinja-error", f"'{name}' is a package", f"Call one of its macros: {name}.name().")


def renamed(tree: nodes.Template) -> list[tuple[str, int]]:
    """Names and lines of the macros of a file, which get other names inside the tree."""
    macros = []
    waiting: list[nodes.Node] = [*tree.body]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, nodes.Macro):
            macros.append((node.name, node.lineno))
            node.name = f"{INSIDE}{node.name}"
        elif isinstance(node, nodes.If):
            waiting = [*node.body, *node.elif_, *node.else_, *waiting]
    return macros


def bodies(template: jinja2.Template) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file of macros defines, by name, and all values that its top level holds (macros too)."""
    context = template.new_context()
    for _ in template.root_render_func(context):
        pass
    macros = {n.removeprefix(INSIDE): v for n, v in context.vars.items() if n.startswith(INSIDE)}
    return macros, dict(context.vars)
