"""Jinja's sandbox with what makes a rendered text the same in every run and for every model.

Names that are not defined are errors, and templates cannot reach Python. Lists and mappings may be changed
as in dbt (`{% do names.append('id') %}`), except those that several models share. What the sandbox does not
limit is time and memory: a project is trusted not to loop for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

import jinja2
from jinja2.sandbox import SandboxedEnvironment, modifies_known_mutable
from jinja2.utils import Namespace

from engine.errors import ProjectError

_COPY = "Copy it first ({% set own = names | list %}), or make it inside the macro."


class Environment(SandboxedEnvironment):
    """The sandbox; its globals are the given names and a few of Jinja's own."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=_printable,
            extensions=("jinja2.ext.do", "jinja2.ext.loopcontrols"),
        )
        self._shared: dict[int, Any] = {}
        # By package, the names of its macros.
        self.packages: dict[str, Collection[str]] = {}
        own = {"range": self.globals["range"], "dict": dict, "namespace": self._namespace()}
        self.globals.clear()
        self.globals.update({**own, **names})
        self.filters["random"] = _random
        # dbt's filters say what the text of a setting is to be read as; here every key knows.
        self.filters |= dict.fromkeys(("as_bool", "as_native", "as_number", "as_text"), _unchanged)

    def share(self, value: Any) -> None:
        """Protect a value, and what is in it, from changes."""
        if id(value) in self._shared or not isinstance(value, (list, dict, Namespace)):
            return
        self._shared[id(value)] = value
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for part in inner:
            self.share(part)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may use an attribute."""
        if id(obj) in self._shared and modifies_known_mutable(obj, attr):
            _refuse_change(attr)
        return super().is_safe_attribute(obj, attr, value)

    def _namespace(self) -> type[Namespace]:
        shared = self._shared

        class Own(Namespace):
            def __setitem__(self, name: str, value: Any) -> None:
                if id(self) in shared:
                    _refuse_change(name)
                super().__setitem__(name, value)

        return Own


def _refuse_change(name: str) -> NoReturn:
    raise ProjectError("jinja-security", f"'{name}' would change a value that all models share", _COPY)


def _unchanged(value: Any) -> Any:
    return value


@jinja2.pass_context
def _random(_: Any, __: Any) -> NoReturn:
    message = "the filter 'random' gives another value in each run"
    raise ProjectError("run-varying-value", message, "rand() is Spark's, drawn anew for each row.")


def _printable(value: Any) -> Any:
    """A value that is printed; what would print as Python's name of an object is an error."""
    if isinstance(value, (str, int, float, jinja2.Undefined)):
        return value
    if callable(value):
        name = getattr(value, "__name__", None) or getattr(value, "name", "it")
        raise ProjectError("jinja-error", f"'{name}' is a function, and is not called", f"Write {name}(...).")
    if isinstance(value, Iterator):
        hint = "Make a list of them: {{ names | map('upper') | join(', ') }}."
        raise ProjectError("jinja-error", "what a filter such as 'map' gives is no text", hint)
    return value
