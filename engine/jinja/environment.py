"""Jinja's sandbox with what makes a rendered text the same in every run and for every model.

Names that are not defined are errors, and templates cannot reach Python. Lists and mappings may be changed as in dbt
(`{% do names.append('id') %}`), except what can be reached from the values of a macro file, which all models share: a
list inside a tuple, a namespace's values, the variables that a macro closes over. Methods, and values still to be made,
have a fixed text and no parts. What one rendering may take is in `template_limits`.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import date, time, timedelta, tzinfo
from types import CellType, FunctionType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context, LoopContext, TemplateReference, Undefined
from jinja2.runtime import Macro as JinjaMacro
from jinja2.sandbox import SandboxedEnvironment, modifies_known_mutable
from jinja2.utils import Namespace

from engine.errors import ProjectError
from engine.jinja import template_limits
from engine.jinja.opaque_values import Function, Opaque

# What has a text without an address, and is handed to templates as it is.
_PLAIN = (str, int, float, list, dict, tuple, type(None), Undefined, Namespace, JinjaMacro, LoopContext)


class Method(Function):
    """A method of a value; one that would change a shared value is rejected as it is called."""

    __slots__ = ("_owner", "_reject")

    def __init__(self, name: str, call: Callable[..., Any], owner: Any, reject: Callable[[Any, str], None]) -> None:
        super().__init__(name, call)
        self._owner, self._reject = owner, reject

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it. Raises ProjectError: it would change a value that all models share."""
        if modifies_known_mutable(self._owner, self._name):
            self._reject(self._owner, self._name)
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


def as_template_value(name: str, value: Any, owner: Any, reject: Callable[[Any, str], None]) -> Any:
    """Return an attribute of a value as templates get it; the callback raises if the owner may not be changed."""
    if isinstance(value, (_PLAIN, Opaque)):
        return value
    return Method(name, value, owner, reject) if callable(value) else value


def without_addresses(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose values have a fixed text while they are still to be made."""

    @functools.wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return Lazy(result) if isinstance(result, Iterator) else result

    return filtered


def reachable(values: Mapping[str, Any]) -> dict[int, Any]:
    """All that holds other values, by its id, kept alive with it.

    Args:
        values: by the names they have in a macro file.

    Raises ProjectError: something can be read only once, or counts how often it is read.
    """
    reachable_values: dict[int, Any] = {}
    pending_values = [(name, value) for name, value in values.items()]
    while pending_values:
        name, value = pending_values.pop()
        if id(value) in reachable_values:
            continue
        if isinstance(value, (Lazy, LoopContext, Iterator)):
            message = f"'{name}' of a macro file is an iterator, which can be read only once"
            raise ProjectError("jinja-security", message, "Make it a list: {% set names = names | list %}.")
        parts = _parts(value)
        if parts is not None:
            reachable_values[id(value)] = value
            pending_values += [(name, part) for part in parts]
    return reachable_values


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


_COPY = "Copy it first ({% set own = names | list %}), or create it inside the macro."
# Values whose attributes are those of Python; of everything else only what is named here can be read.
_VALUES = (
    str, bytes, int, float, complex, list, tuple, dict, range, KeysView, ValuesView, ItemsView, date, time, timedelta,
    tzinfo, Namespace, TemplateReference, jinja2.Undefined,
)  # fmt: skip
_OF_LOOPS = frozenset((
    "index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem",
    "cycle", "changed",
))  # fmt: skip
_OF_MACROS = frozenset(("name", "arguments", "catch_kwargs", "catch_varargs", "caller"))
_SCALARS = (str, int, float, list, dict, tuple)


class Environment(SandboxedEnvironment):
    """The sandbox; its globals are the given names and a few of Jinja's own."""

    code_generator_class = template_limits.Generator
    intercepted_binops = frozenset({"+", "*", "**"})
    concat = staticmethod(template_limits.joined)

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=_printable,
            extensions=("jinja2.ext.do", "jinja2.ext.loopcontrols"),
        )
        self._shared: dict[int, Any] = {}
        self.steps = template_limits.Steps()
        # By package, the names of its macros.
        self.packages: dict[str, Collection[str]] = {}
        jinja_names = {"range": self.globals["range"], "dict": dict, "namespace": self._namespace()}
        self.globals.clear()
        self.globals.update({name: _as_function(name, value) for name, value in {**jinja_names, **names}.items()})
        self.filters["random"] = _random
        # dbt's filters say what the text of a setting is to be read as; here every key knows.
        self.filters |= dict.fromkeys(("as_bool", "as_native", "as_number", "as_text"), _unchanged)
        self.filters.update({name: without_addresses(function) for name, function in self.filters.items()})

    def counted(self, values: Any) -> Iterator[Any]:
        return self.steps.each(values)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        template_limits.checked(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063 - as in Jinja
        __self.steps.step()
        return super().call(__context, __obj, *args, **kwargs)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        template_limits.counted_loops(source)
        return super()._generate(source, *args, **kwargs)

    def share(self, values: Mapping[str, Any]) -> None:
        """Protect the values of a macro file, and all that is in them, from changes.

        Raises ProjectError: one can be read only once.
        """
        self._shared |= reachable(values)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._as_template_value(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._as_template_value(obj, argument, super().getitem(obj, argument))

    def _as_template_value(self, obj: Any, name: Any, value: Any) -> Any:
        if isinstance(value, _SCALARS):
            return tuple(value) if isinstance(obj, JinjaMacro) and isinstance(value, list) else value
        return as_template_value(str(name), value, obj, self._reject_shared)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr.startswith("_") or isinstance(obj, type):
            return False
        if isinstance(obj, Opaque):
            return obj.shows(attr)
        if isinstance(obj, (LoopContext, JinjaMacro)):
            return attr in (_OF_LOOPS if isinstance(obj, LoopContext) else _OF_MACROS)
        return isinstance(obj, _VALUES) and super().is_safe_attribute(obj, attr, value)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        # What is escaped stays so for the other models where a macro is left by return() inside such a block.
        if "autoescape" in source and (block := tree.find(nodes.ScopedEvalContextModifier)):
            raise jinja2.TemplateSyntaxError("Encountered unknown tag 'autoescape'", block.lineno, name, filename)
        return tree

    def _reject_shared(self, value: Any, name: str) -> None:
        """Refuse a change of a value that models share."""
        if id(value) in self._shared:
            message = f"'{name}' would change a value that all models share"
            raise ProjectError("jinja-security", message, _COPY)

    def _namespace(self) -> type[Namespace]:
        keep = self._reject_shared

        class Own(Namespace):
            def __setitem__(self, name: str, value: Any) -> None:
                keep(self, name)
                super().__setitem__(name, value)

        return Own


def _as_function(name: str, value: Any) -> Any:
    """A name that all templates have: of a function they get nothing but its calls."""
    if callable(value) and not isinstance(value, (Opaque, jinja2.Undefined)):
        return Function(name, value)
    return value


def _unchanged(value: Any) -> Any:
    return value


@jinja2.pass_context
def _random(_: Any, __: Any) -> NoReturn:
    message = "the filter 'random' returns another value in each run"
    raise ProjectError("run-varying-value", message, "Use Spark's rand(), which returns a new value for each row.")


@jinja2.pass_environment
def _printable(environment: Environment, value: Any) -> Any:
    """A value that is printed; what would print as Python's name of an object is an error."""
    if isinstance(value, str):
        environment.steps.prints(value)
        return value
    if isinstance(value, (int, float, jinja2.Undefined)):
        return value
    template_limits.whole(value)
    if callable(value):
        name = name_of(value)
        raise ProjectError("jinja-error", f"'{name}' is a function that is not called", f"Write {name}(...).")
    if isinstance(value, Iterator):
        hint = "Convert it to a list or string: {{ names | map('upper') | join(', ') }}."
        raise ProjectError("jinja-error", "the result of a filter such as 'map' is not a string", hint)
    return value
