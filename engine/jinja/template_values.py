"""What templates get from values: methods, values still to be made. Each has a fixed text and no parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from jinja2.runtime import LoopContext, Undefined
from jinja2.runtime import Macro as JinjaMacro
from jinja2.sandbox import modifies_known_mutable
from jinja2.utils import Namespace

from engine.jinja.opaque_values import Function, Opaque

# What has a text without an address, and is handed to templates as it is.
_PLAIN = (str, int, float, list, dict, tuple, type(None), Undefined, Namespace, JinjaMacro, LoopContext)


class Method(Function):
    """A method of a value; one that would change a shared value is rejected as it is called."""

    __slots__ = ("_owner", "_refused")

    def __init__(self, name: str, call: Callable[..., Any], owner: Any, refused: Callable[[Any, str], None]) -> None:
        super().__init__(name, call)
        self._owner, self._refused = owner, refused

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it.

        Raises:
            ProjectError: it would change a value that all models share.
        """
        if modifies_known_mutable(self._owner, self._name):
            self._refused(self._owner, self._name)
        return self._call(*args, **kwargs)


class Lazy(Opaque):
    """What a filter such as `map` gives: values, once."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterator[Any]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return self._values

    def __next__(self) -> Any:
        return next(self._values)

    def __repr__(self) -> str:
        return "<values>"

    def shows(self, _: str) -> bool:
        return False


def name_of(value: Any) -> str:
    if isinstance(value, Function):
        return value._name  # noqa: SLF001 - templates may not ask for it
    return str(getattr(value, "__name__", None) or getattr(value, "name", "it"))


def tamed(name: str, value: Any, owner: Any, refused: Callable[[Any, str], None]) -> Any:
    """Return an attribute of a value as templates get it; the callback raises if the owner may not be changed."""
    if isinstance(value, (_PLAIN, Opaque)):
        return value
    return Method(name, value, owner, refused) if callable(value) else value


def without_addresses(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose values have a fixed text while they are still to be made."""

    @functools.wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return Lazy(made) if isinstance(made, Iterator) else made

    return filtered
