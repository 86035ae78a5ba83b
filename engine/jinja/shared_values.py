"""What a value of a macro file holds: everything in it is shared by all models, so no template may change it.

A list inside a tuple, a namespace's values, the variables that a macro closes over: what can be reached is shared.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from types import CellType, FunctionType
from typing import Any

from jinja2.runtime import Context, LoopContext
from jinja2.runtime import Macro as JinjaMacro
from jinja2.utils import Namespace

from engine.errors import ProjectError
from engine.jinja.opaque_values import Function
from engine.jinja.template_values import Lazy


def reachable(values: Mapping[str, Any]) -> dict[int, Any]:
    """All that holds other values, by its id, kept alive with it.

    Args:
        values: by the names they have in a macro file.

    Raises:
        ProjectError: something can be read only once, or counts how often it is read.
    """
    found: dict[int, Any] = {}
    waiting = [(name, value) for name, value in values.items()]
    while waiting:
        name, value = waiting.pop()
        if id(value) in found:
            continue
        if isinstance(value, (Lazy, LoopContext, Iterator)):
            message = f"'{name}' of a macro file is an iterator, which can be read only once"
            raise ProjectError("jinja-security", message, "Make it a list: {% set names = names | list %}.")
        parts = _parts(value)
        if parts is not None:
            found[id(value)] = value
            waiting += [(name, part) for part in parts]
    return found


def _parts(value: Any) -> Iterable[Any] | None:
    """What a value holds; None: nothing that could be changed."""
    for kinds, parts in _PARTS:
        if isinstance(value, kinds) and not isinstance(value, Context):
            return parts(value)
    return None


def _attributes(value: Namespace) -> Iterable[Any]:
    attributes: Mapping[str, Any] = object.__getattribute__(value, "_Namespace__attrs")
    return (attributes, *attributes.values())


def _content(cell: CellType) -> tuple[Any, ...]:
    try:
        content = cell.cell_contents
    except ValueError:
        return ()
    return (content,)


# Of a macro and a function what they close over: Jinja has no other way to it.
_PARTS: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    (Namespace, _attributes),
    (Mapping, lambda value: (*value.keys(), *value.values())),
    ((list, tuple, set, frozenset), tuple),
    ((KeysView, ValuesView, ItemsView), gc.get_referents),
    (JinjaMacro, lambda value: (value._func, value.arguments)),  # noqa: SLF001
    (FunctionType, lambda value: value.__closure__ or ()),
    (CellType, _content),
    (Function, lambda value: [part for part in gc.get_referents(value) if not isinstance(part, type)]),
)
