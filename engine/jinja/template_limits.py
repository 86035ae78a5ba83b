"""How much a template may make: texts, lists and numbers have a largest size, a rendering a largest number of steps.

A macro that calls itself twice, or a text repeated a billion times, ends with an error that says so and not with
a machine out of memory. What is bounded is what one operation can make of small operands, what is printed, and how
many calls and rounds of loops one rendering takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

from engine.errors import ProjectError

# Characters of a text, items of a list.
MAX_SIZE = 2_000_000
# Calls and rounds of loops in one rendering.
MAX_STEPS = 1_000_000
# A text is printed again by each macro that it comes through.
_MOST_PRINTED = 10 * MAX_SIZE
# Bits of a number that ** or * makes; some 4,300 digits, more than which Python does not print.
_MAX_BITS = 14_000
# Characters of one field of a format: '%10d', '{:>10}'.
_MAX_WIDTH = 10_000
_PERCENT = re.compile(r"%(?:\([^()%]*\))?[-+ #0]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?")
_DIGITS = re.compile("[0-9]+")
_HINT = "Produce less, or use SQL: repeat(), sequence() and explode() run in Spark."
_WIDTHS = {"ljust", "rjust", "center", "zfill"}


def too_large(what: str) -> ProjectError:
    """The error of something that would be larger than anything may be."""
    return ProjectError("template-too-large", what, _HINT)


def _check(size: int, what: str = "text") -> None:
    if size > MAX_SIZE:
        unit = "characters" if what == "text" else "items"
        raise too_large(f"the template creates a {what} of more than {MAX_SIZE:,} {unit}")


class Steps:
    """Counts what one rendering does.

    Attributes:
        taken: calls and rounds of loops since the rendering began.
        printed: characters of values that were printed since then, also inside macros.
    """

    __slots__ = ("printed", "taken")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with a rendering."""
        self.taken = self.printed = 0

    def prints(self, text: str) -> None:
        """Count a text that is printed."""
        self.printed += len(text)
        if self.printed > _MOST_PRINTED:
            _check(self.printed)

    def one(self) -> None:
        """Count one more."""
        self.taken += 1
        if self.taken > MAX_STEPS:
            raise too_large(f"the template takes more than {MAX_STEPS:,} calls and rounds of loops")

    def each(self, values: Iterable[Any]) -> Iterator[Any]:
        """The values of a loop, counted as they come."""
        for value in values:
            self.one()
            yield value


def joined(parts: Iterable[str]) -> str:
    """The texts as one."""
    pieces, size = [], 0
    for part in parts:
        pieces.append(part)
        size += len(part)
        if size > MAX_SIZE:
            _check(size)
    return "".join(pieces)


def concatenated(parts: Iterable[Any]) -> str:
    """What `~` makes."""
    return joined([str(whole(part)) for part in parts])


def whole(value: Any) -> Any:
    """The value, if all that is in it may be written out: a list of a list, twice each, grows like a text.

    Raises:
        ProjectError: it has too many items, or too many characters in them.
    """
    if isinstance(value, (list, tuple, dict)):
        size, waiting = 0, [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                waiting += [*part, *part.values()]
            elif isinstance(part, (list, tuple)):
                waiting += part
            size += len(part) if isinstance(part, str) else 1
            _check(size)
    return value


def checked(operator: str, left: Any, right: Any) -> None:
    """Raise if an operation would make something too large of its operands."""
    if operator == "*":
        for one, other in ((left, right), (right, left)):
            if isinstance(other, int) and isinstance(one, (str, bytes, list, tuple)):
                _check(len(one) * max(other, 0), "text" if isinstance(one, str) else "list")
        if isinstance(left, int) and isinstance(right, int):
            _check_bits(left.bit_length() + right.bit_length())
    elif operator == "**" and isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits(left.bit_length() * right if abs(left) > 1 else 0)
    elif operator == "+" and isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
        _check(len(left) + len(right), "text" if isinstance(left, str) else "list")
    elif operator == "%" and isinstance(left, str):
        _check_percent(left, right)


def _check_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise too_large(f"the template computes a number of more than {_MAX_BITS * 30103 // 100000:,} digits")


def _check_percent(text: str, values: Any) -> None:
    whole(values)
    given = values if isinstance(values, tuple) else (values,)
    for match in _PERCENT.finditer(text):
        for width in match.groups(default=""):
            if width == "*":
                _check_width(max((abs(v) for v in given if isinstance(v, int)), default=0))
            elif width:
                _check_width(int(width[:9]))


def _check_width(width: int) -> None:
    if width > _MAX_WIDTH:
        raise too_large(f"the template formats a value over more than {_MAX_WIDTH:,} characters")


def check_call(owner: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise if a method of a text or list would make too large a text of its arguments."""
    if isinstance(owner, list) and name == "extend" and args and isinstance(args[0], (list, tuple)):
        _check(len(owner) + len(args[0]), "list")
    elif isinstance(owner, str):
        _check_method(owner, name, args, kwargs)


def _check_method(text: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if name in _WIDTHS and args and isinstance(args[0], int):
        _check(args[0])
    elif name == "expandtabs":
        size = args[0] if args else kwargs.get("tabsize", 8)
        _check(text.count("\t") * size if isinstance(size, int) else 0)
    elif name == "replace":
        _check_replace(text, *args[:2])
    elif name == "join" and args and isinstance(args[0], (str, list, tuple)):
        _check(len(args[0]) * len(text))
        whole(args[0])
    elif name == "translate" and args and isinstance(args[0], Mapping):
        _check(len(text) * max((len(v) for v in args[0].values() if isinstance(v, str)), default=0))


def _check_replace(text: str, old: Any = None, new: Any = None, *_: Any) -> None:
    if isinstance(old, str) and isinstance(new, str) and len(new) > len(old):
        _check(len(text) + text.count(old) * (len(new) - len(old)))


def check_spec(spec: str) -> None:
    """Raise if a format's field (`>10`) is too wide."""
    for digits in _DIGITS.findall(spec):
        _check_width(int(digits[:9]))


def bounded_filters(filters: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Those of Jinja's filters that make large results of small arguments, with bounds."""

    def center(value: str, width: int = 80) -> Any:
        _check(width)
        return filters["center"](value, width)

    def indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> Any:
        size = len(width) if isinstance(width, str) else width
        _check(len(s) + (s.count("\n") + 1) * size)
        return filters["indent"](s, width, first, blank)

    def format_(value: str, *args: Any, **kwargs: Any) -> Any:
        _check_percent(str(value), args)
        return filters["format"](value, *args, **kwargs)

    def batch(value: Any, linecount: int, fill_with: Any = None) -> Any:
        _check(linecount, "list")
        return filters["batch"](value, linecount, fill_with)

    def slice_(value: Any, slices: int, fill_with: Any = None) -> Any:
        _check(slices, "list")
        return filters["slice"](value, slices, fill_with)

    @jinja2.pass_eval_context
    def replace(eval_ctx: Any, s: str, old: str, new: str, count: int | None = None) -> Any:
        _check_replace(str(s), str(old), str(new))
        return filters["replace"](eval_ctx, s, old, new, count)

    @jinja2.pass_eval_context
    def join(eval_ctx: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        values = list(value)
        whole(values)
        _check(len(values) * len(str(d)))
        return filters["join"](eval_ctx, values, d, attribute)

    def sum_(iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
        values = list(iterable)
        _check(sum(len(value) for value in values if isinstance(value, (list, tuple))), "list")
        return filters["sum"](values, attribute, start)

    written = {name: _whole_first(filters[name]) for name in ("string", "pprint", "escape", "e", "forceescape")}
    padded: dict[str, Callable[..., Any]] = {"center": center, "indent": indent, "format": format_}
    lists: dict[str, Callable[..., Any]] = {"batch": batch, "slice": slice_, "sum": sum_, "join": join}
    return {**padded, **lists, **written, "replace": replace, "tojson": _json(filters["tojson"])}


def _whole_first(filter_: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(value: Any) -> Any:
        return filter_(whole(value))

    return bounded


def _json(filter_: Callable[..., Any]) -> Callable[..., Any]:
    @jinja2.pass_eval_context
    def tojson(eval_ctx: Any, value: Any, indent: int | None = None) -> Any:
        _check_width(indent or 0)
        return filter_(eval_ctx, whole(value), indent)

    return tojson


def counted_loops(tree: nodes.Template) -> None:
    """Let each loop of a template count its rounds."""
    for loop in tree.find_all(nodes.For):
        if not isinstance(loop.iter, nodes.Call) or not isinstance(loop.iter.node, nodes.EnvironmentAttribute):
            loop.iter = nodes.Call(nodes.EnvironmentAttribute("counted"), [loop.iter], [], None, None).set_lineno(
                loop.lineno
            )


class Generator(CodeGenerator):
    """Jinja's, with `~` as an operation of the environment, and with numbers beyond the largest."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:  # noqa: N802 - Jinja's name
        """Write the module; 1e999 is written as Python prints it, which is not a literal of Python's."""
        super().visit_Template(node, frame)
        self.writeline("inf = 1e999")
        self.writeline("nan = inf - inf")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        """Write the call."""
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")
