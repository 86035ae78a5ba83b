"""How much a template may take: of memory and processor time, of calls and rounds of loops, of printed text.

What a method or filter makes of its arguments cannot be listed: there are hundreds, and a division of two long numbers
takes as long as a billion rounds of a loop. A confined process (`engine.compile.templates.confined_process`) therefore
renders under limits of the operating system. The counts beside them give the same error on every machine, and bound
what leaves the process.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

from engine.errors import ProjectError

# Characters of a text, items of a list.
MAX_SIZE = 2_000_000
# Calls and rounds of loops in one rendering.
MAX_STEPS = 500_000
# A text is printed again by each macro that it comes through.
_MOST_PRINTED = 10 * MAX_SIZE
# Bits of a number that ** or * makes; some 4,300 digits, more than which Python does not print.
_MAX_BITS = 14_000
# Bytes of memory that one rendering may take, with what those before it in this process keep: variables of macro files,
# texts, `meta`.
_MEMORY = 400_000_000
# Seconds of processor time after which it ends with an error, and after which the system ends the process: a call that
# is long inside Python's C code sees no signal handler.
SECONDS = 3.0
_LAST_SECONDS = 5
NAME_BYTES = 512
_HINT = "Produce less, or use SQL: repeat(), sequence() and explode() run in Spark."


def too_large(kind_of_value: str) -> ProjectError:
    return ProjectError("template-too-large", kind_of_value, _HINT)


def _check(size: int, kind_of_value: str = "text") -> None:
    if size > MAX_SIZE:
        unit = "characters" if kind_of_value == "text" else "items"
        raise too_large(f"the template creates a {kind_of_value} of more than {MAX_SIZE:,} {unit}")


class Steps:
    """Counts what one rendering does.

    `taken`: calls and rounds of loops since the rendering began. `printed`: characters of values that were printed
    since then, also inside macros.
    """

    __slots__ = ("printed", "steps")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.steps = self.printed = 0

    def prints(self, text: str) -> None:
        self.printed += len(text)
        if self.printed > _MOST_PRINTED:
            _check(self.printed)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise too_large(f"the template takes more than {MAX_STEPS:,} calls and rounds of loops")

    def each(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.step()
            yield value


def joined(parts: Iterable[str]) -> str:
    pieces, size = [], 0
    for part in parts:
        pieces.append(part)
        size += len(part)
        if size > MAX_SIZE:
            _check(size)
    return "".join(pieces)


def whole(value: Any) -> Any:
    """The value, if all that is in it may be written out: a list of a list, twice each, grows like a text.

    Raises ProjectError: it has too many items, or too many characters in them.
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
    if operator == "*":
        for operand, factor in ((left, right), (right, left)):
            if isinstance(factor, int) and isinstance(operand, (str, bytes, list, tuple)):
                _check(len(operand) * max(factor, 0), "text" if isinstance(operand, str) else "list")
        if isinstance(left, int) and isinstance(right, int):
            _check_bits(left.bit_length() + right.bit_length())
    elif operator == "**" and isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits(left.bit_length() * right if abs(left) > 1 else 0)
    elif operator == "+" and isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
        _check(len(left) + len(right), "text" if isinstance(left, str) else "list")


def _check_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise too_large(f"the template computes a number of more than {_MAX_BITS * 30103 // 100000:,} digits")


def counted_loops(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        if not isinstance(loop.iter, nodes.Call) or not isinstance(loop.iter.node, nodes.EnvironmentAttribute):
            loop.iter = nodes.Call(nodes.EnvironmentAttribute("counted"), [loop.iter], [], None, None).set_lineno(
                loop.lineno
            )


class Generator(CodeGenerator):
    """Jinja's, with numbers beyond the largest."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:  # noqa: N802 - Jinja's name
        """Write the module; 1e999 is written as Python prints it, which is not a literal of Python's."""
        super().visit_Template(node, frame)
        self.writeline("inf = 1e999")
        self.writeline("nan = inf - inf")


class _Confined:
    """What a process that renders under limits knows.

    `page`: on which it writes the file that it renders, for the process that waits; None: this process has no limits.
    `active`: whether a rendering is under way; one inside another has the limits of the outer. `kept`: bytes that
    earlier renderings have mapped and not given back.
    """

    page: mmap | None = None
    active = False
    kept_bytes = 0


def confine(page: mmap) -> None:
    """Render under limits from now on; this process may be ended by the system.

    Args:
        page: `NAME_BYTES`, shared with the process that waits for this one.
    """
    _Confined.page = page
    _Confined.kept_bytes = 0
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def bounded(file: str) -> Iterator[None]:
    """Bound the memory and time of what renders a file, if this process is confined.

    Raises:
        MemoryError: it needs more.
        ProjectError: it takes longer.
    """
    page = _Confined.page
    if page is None or _Confined.active:
        yield
        return
    page[:] = file.encode("utf-8", "replace")[:NAME_BYTES].ljust(NAME_BYTES, b"\0")
    mapped = _address_space()
    memory, time_left = resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(time.process_time()) + _LAST_SECONDS
    _Confined.active = True
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_least(mapped + _MEMORY - _Confined.kept_bytes, *memory), memory[1]))
        resource.setrlimit(resource.RLIMIT_CPU, (_least(seconds, *time_left), time_left[1]))
        # Again and again: what is raised inside a destructor is lost.
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.2)
        yield
    finally:
        _Confined.active = False
        _Confined.kept_bytes = max(0, _Confined.kept_bytes + _address_space() - mapped)
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, time_left)
        resource.setrlimit(resource.RLIMIT_AS, memory)


def _least(amount: int, *limits: int) -> int:
    return min([amount, *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


def _address_space() -> int:
    """Bytes that this process has mapped (proc(5): the first number of statm, in pages)."""
    with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123 - for each model
        return int(file.read(32).split()[0]) * resource.getpagesize()


def too_long() -> ProjectError:
    return too_large(f"the template takes more than {SECONDS:.0f} seconds of processor time")


def too_much() -> ProjectError:
    memory_note = (
        f", with {_Confined.kept_bytes // 1_000_000} MB that earlier ones keep"
        if _Confined.kept_bytes > _MEMORY // 4
        else ""
    )
    return too_large(f"the template takes more than {_MEMORY // 1_000_000} MB of memory{memory_note}")


def _too_slow(*_: object) -> NoReturn:
    raise too_long()
