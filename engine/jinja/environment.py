"""Jinja's sandbox with what makes a rendered text the same in every run and for every model.

Names that are not defined are errors, and templates cannot reach Python. Lists and mappings may be changed
as in dbt (`{% do names.append('id') %}`), except those that several models share. What one rendering may take is in
`template_limits`.
"""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import date, time, timedelta, tzinfo
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context, LoopContext, TemplateReference
from jinja2.runtime import Macro as JinjaMacro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from engine.errors import ProjectError
from engine.jinja import template_limits
from engine.jinja.opaque_values import Function, Opaque
from engine.jinja.shared_values import reachable
from engine.jinja.template_values import name_of, tamed, without_addresses

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
        own = {"range": self.globals["range"], "dict": dict, "namespace": self._namespace()}
        self.globals.clear()
        self.globals.update({name: _given(name, value) for name, value in {**own, **names}.items()})
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
        __self.steps.one()
        return super().call(__context, __obj, *args, **kwargs)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        template_limits.counted_loops(source)
        return super()._generate(source, *args, **kwargs)

    def share(self, values: Mapping[str, Any]) -> None:
        """Protect the values of a macro file, and all that is in them, from changes.

        Raises:
            ProjectError: one can be read only once.
        """
        self._shared |= reachable(values)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._tamed(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._tamed(obj, argument, super().getitem(obj, argument))

    def _tamed(self, obj: Any, name: Any, value: Any) -> Any:
        if isinstance(value, _SCALARS):
            return tuple(value) if isinstance(obj, JinjaMacro) and isinstance(value, list) else value
        return tamed(str(name), value, obj, self._keep)

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

    def _keep(self, value: Any, name: str) -> None:
        """Refuse a change of a value that models share."""
        if id(value) in self._shared:
            message = f"'{name}' would change a value that all models share"
            raise ProjectError("jinja-security", message, _COPY)

    def _namespace(self) -> type[Namespace]:
        keep = self._keep

        class Own(Namespace):
            def __setitem__(self, name: str, value: Any) -> None:
                keep(self, name)
                super().__setitem__(name, value)

        return Own


def _given(name: str, value: Any) -> Any:
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
