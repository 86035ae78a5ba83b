"""The regular expressions of a package, how each is used, and texts that make a bad one slow."""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

_CALLS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
_ANCHORED = {"match", "fullmatch"}
_CALLED = re.compile(rf"\.(?:{'|'.join(sorted(_CALLS))})\b")
# Not in any of the patterns: what comes after a pump so that it does not match.
_END = "\x00"
_SEVERAL = 3
# Seconds: what is short, and what is longer than is waited for.
_BRIEF, _LIMIT = 0.03, 0.25
# Characters for which no pattern may take that long, and characters that are enough for every comparison.
_SHORT, _LONG = 200, 1_000_000
# For four times the text a pattern that is linear takes 4 times as long, one that is quadratic 16 times: what other
# processes do to caches and clocks is less than what lies between.
_MOST = 8.0


class Use(NamedTuple):
    """A pattern and how it is used: it is tried at each place of a text, or at its start alone."""

    place: str
    pattern: re.Pattern[str]
    everywhere: bool
    whole: bool


def modules(package: str) -> Iterator[ModuleType]:
    """All modules of a package that can be imported."""
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def may_have_uses(package: str) -> list[str]:
    """The modules of a package whose text calls something of `re`: found without importing them."""
    root = Path(str(importlib.import_module(package).__file__)).parent
    files = (path for path in root.rglob("*.py") if re.search(r"\bre\.\w+\(", path.read_text(encoding="utf-8")))
    parts = (path.relative_to(root.parent).with_suffix("").parts for path in files)
    return sorted(".".join(part).removesuffix(".__init__") for part in parts)


@cache
def uses(package: str) -> tuple[Use, ...]:
    """Every regular expression of a package that is known when its modules are loaded."""
    # A private name is its module's; others may be imported.
    methods: dict[str, set[str]] = defaultdict(set)
    found: list[tuple[str, str, Any, str]] = []
    for module in modules(package):
        if not str(module.__file__).endswith(".py"):
            continue
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        if not _CALLED.search(text):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        named = _named(nodes)
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "re":
                methods[_key(node.value.id, module)].add(node.attr)
            elif _is_call(node) and (pattern := _evaluated(node, module)) is not None:
                name = named.get(id(node), "")
                place = f"{module.__name__}:{node.lineno} {name}"  # type: ignore[attr-defined]
                found.append((place, node.func.attr, pattern, name))  # type: ignore[attr-defined]
    made = []
    for place, call, pattern, name in found:
        key = f"{place.partition(':')[0]} {name}" if name.startswith("_") else name
        how = (methods[key] & _CALLS if name else set()) or {call}
        made.append(Use(place, pattern, bool(how - _ANCHORED), "fullmatch" in how))
    return tuple(made)


def _named(nodes: list[ast.AST]) -> dict[int, str]:
    """The variables that values are assigned to, by the id of the value's node."""
    found = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                found[id(node.value)] = target.id
    return found


def _key(name: str, module: ModuleType) -> str:
    return f"{module.__name__} {name}" if name.startswith("_") else name


def _is_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _CALLS
        and bool(node.args)
    )


def _evaluated(node: Any, module: ModuleType) -> re.Pattern[str] | None:
    """The pattern of a call, if it is made of constants of its module."""
    flags = [k.value for k in node.keywords if k.arg == "flags"]
    if node.func.attr == "compile":
        flags += node.args[1:2]
    try:
        values = [eval(compile(ast.Expression(part), "<pattern>", "eval"), dict(vars(module)))
                  for part in (node.args[0], *flags)]  # fmt: skip
    except NameError:
        return None
    pattern = values[0]
    if isinstance(pattern, re.Pattern):
        return pattern if isinstance(pattern.pattern, str) else None
    return re.compile(*values) if isinstance(pattern, str) else None


def pumps(pattern: re.Pattern[str]) -> list[Callable[[int], str]]:
    """Texts of any length on which a pattern may be slow."""
    tree = re._parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)  # type: ignore[attr-defined]
    made: dict[tuple[str, str, str], None] = {}
    for before, body in _repeats(tree, [""]):
        for prefix, piece in itertools.product(before[:_SEVERAL], body):
            made[prefix, piece, ""] = None
            made["", piece, ""] = None
            made["", prefix + piece, ""] = None
            if prefix:
                made["", prefix, ""] = None
    for one in (" ", "a", "1", "\n", "'", '"', "(", "`", "{", "/", "*", "-", "_", "."):
        made["", one, ""] = None
    return [_text(prefix, piece) for prefix, piece, _ in made if piece]


def _text(prefix: str, piece: str) -> Callable[[int], str]:
    def text(size: int) -> str:
        return prefix + piece * (size // len(piece)) + _END

    text.__name__ = f"{prefix!r} + {piece!r} * n"
    return text


def _repeats(tree: Any, before: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Each repetition of a pattern: texts that lead to it, and texts that it repeats."""
    for kind, value in tree:
        name = str(kind)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, body = value
            yield from _repeats(body, before)
            if high > 50:
                yield before, _samples(body) or ["a"]
            before = _joined(before, [s * max(low, 1) for s in _samples(body)] + ([""] if low == 0 else []))
            continue
        if name == "SUBPATTERN":
            yield from _repeats(value[-1], before)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(value, before)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _repeats(branch, before)
        elif name in {"ASSERT", "ASSERT_NOT"}:
            yield from _repeats(value[1], before)
            continue
        before = _joined(before, _samples([(kind, value)]))


def _joined(before: list[str], after: list[str]) -> list[str]:
    return list(dict.fromkeys(b + a for b in before for a in after or [""]))[: 2 * _SEVERAL]


def _samples(tree: Any) -> list[str]:
    """A few short texts that a part of a pattern matches."""
    texts = [""]
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            some = [chr(value)]
        elif name == "NOT_LITERAL":
            some = [c for c in "a \n1" if ord(c) != value][:_SEVERAL]
        elif name == "ANY":
            some = ["a", " "]
        elif name == "IN":
            some = _of_class(value)
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            some = [s * max(value[0], 1) for s in _samples(value[2])][:_SEVERAL] + ([""] if value[0] == 0 else [])
        elif name == "SUBPATTERN":
            some = _samples(value[-1])
        elif name == "ATOMIC_GROUP":
            some = _samples(value)
        elif name == "BRANCH":
            some = [s for branch in value[1] for s in _samples(branch)[:2]][: 2 * _SEVERAL]
        else:
            some = [""]
        texts = _joined(texts, some)
    return list(dict.fromkeys(texts))


def _of_class(parts: Any) -> list[str]:
    negated = str(parts[0][0]) == "NEGATE"
    given = set()
    for kind, value in parts[1:] if negated else parts:
        name = str(kind)
        if name == "LITERAL":
            given.add(chr(value))
        elif name == "RANGE":
            given |= {chr(value[0]), chr(value[1])}
        elif name == "CATEGORY":
            category = str(value)
            words = {"DIGIT": "1", "SPACE": " \n", "WORD": "a1_"}
            for word, chars in words.items():
                if category.endswith(f"NOT_{word}"):
                    given |= {c for c in "a 1\n(" if c not in chars}
                elif category.endswith(word):
                    given |= set(chars)
    if negated:
        return [c for c in "a 1\n'(_-" if c not in given][:_SEVERAL]
    return sorted(given, key=lambda c: (c not in " a1_", c))[: _SEVERAL + 1]


class TooSlowError(Exception):
    """A pattern took more than a second."""


def _alarm(_: int, __: FrameType | None) -> None:
    raise TooSlowError


def seconds(use: Use, text: str, limit: float) -> float:
    """Seconds of processor time that a pattern takes for a text; infinite beyond the limit."""
    calls: list[Callable[[str], Any]] = []
    if use.everywhere:
        calls.append(lambda t: sum(1 for _ in use.pattern.finditer(t)))
    calls.append(use.pattern.fullmatch if use.whole else use.pattern.match)
    old = signal.signal(signal.SIGVTALRM, _alarm)
    begin = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        for call in calls:
            call(text)
    except TooSlowError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
    return time.process_time() - begin


def is_slow(use: Use, text: Callable[[int], str], size: int = 32_000) -> bool:
    """Whether four times the text takes much more than four times the time; a short time is not slow.

    A quarter of the text must be longer than what a bounded repetition takes at most (4,000 characters).

    Times are of the processor, and the shortest of three counts. As the machine may be faster while the short text is
    read than while the long one is, three comparisons must agree. The processor's clock may tick as rarely as every 4 ms,
    so the text is made longer until its quarter, too, takes more than that.
    """
    # The first use may be held up by the machine.
    if seconds(use, text(size), _LIMIT) < _BRIEF or (long := seconds(use, text(size), _LIMIT)) < _BRIEF:
        return False
    while long == float("inf"):
        size //= 2
        if size < _SHORT:
            return True
        long = seconds(use, text(size), _LIMIT)
    while long < 4 * _BRIEF and size < _LONG:
        size *= 2
        long = seconds(use, text(size), 4 * _LIMIT)
    return all(_ratio(use, text, size) > _MOST for _ in range(3))


def _ratio(use: Use, text: Callable[[int], str], size: int) -> float:
    short = min(seconds(use, text(size // 4), _LIMIT) for _ in range(3))
    long = min(seconds(use, text(size), 4 * _LIMIT) for _ in range(3))
    return long / max(short, 1e-3)
