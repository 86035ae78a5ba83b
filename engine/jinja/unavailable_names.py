"""Names that people know from elsewhere: not defined here, each with the form that holds instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import jinja2

from engine.errors import ProjectError

# What the sandbox looks at before it calls something.
_CALL = {"unsafe_callable", "alters_data"}


class Absent(jinja2.StrictUndefined):
    """An undefined name whose every use is an error with an answer.

    Attributes:
        taken: what to do about a macro or package of this name; None if there may be one.
    """

    __slots__ = ("_code", "_hint", "_message", "_parts", "taken")

    def __init__(
        self,
        name: str,
        hint: str,
        parts: Mapping[str, str] | None = None,
        *,
        code: str = "jinja-undefined",
        message: str = "'{}' is not available here",
        taken: str | None = None,
    ) -> None:
        super().__init__(name=name, exc=self._error)  # type: ignore[arg-type]
        self._code, self._hint, self._message, self._parts = code, hint, message, parts or {}
        self.taken = taken

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
