"""Objects with a fixed text and without parts; no Jinja is needed for them.

Whatever a template does with them (`string`, `pprint`, `%`, `~`, a key that is not found), no address of memory and
nothing of the engine gets into its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Opaque:
    """An object with a fixed text. Its slots begin with an underscore, which no template may reach."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower().strip('_')}>"

    def shows(self, name: str) -> bool:
        return name != "shows"


class Function(Opaque):
    __slots__ = ("_call", "_name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self._name, self._call = name, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<function {self._name}>"

    def shows(self, _: str) -> bool:
        return False
